// Starts `agf-validate lsp` for the folder that is open, and ends it with
// the editor.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate(context) {
  const settings = vscode.workspace.getConfiguration("agf-validate");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const server = {
    command: settings.get("path"),
    args: ["lsp", ...settings.get("arguments")],
    options: { cwd: folder },
  };
  client = new LanguageClient("agf-validate", "agf-validate", server, {
    documentSelector: [
      { scheme: "file", pattern: "**/*.{agf,policy}.{yaml,yml,json}" },
      { scheme: "file", pattern: "**/people.{yaml,yml,json}" },
    ],
    synchronize: {
      fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{agf,policy}.{yaml,yml,json}"),
    },
  });
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("agf-validate")) {
        vscode.window.showInformationMessage("agf-validate: reload the window, so that the settings count.");
      }
    }),
  );

  try {
    await client.start();
  } catch (err) {
    vscode.window.showErrorMessage(
      `agf-validate can't be started as ${server.command}: ${err.message}. ` +
        "Install it, or set agf-validate.path.",
    );
  }
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
