// An editing session by the protocol library that the extension uses.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const protocol = createRequire(import.meta.url)("vscode-languageserver-protocol/node");

const folder = mkdtempSync(join(tmpdir(), "editor-"));
writeFileSync(join(folder, "acme.policy.yaml"), 'schema_version: "1.0.0"\npolicy_ref: acme.pay\nrules: [{id: all, approval: true}]\n');
writeFileSync(join(folder, ".agf-validate.yaml"), "policies: [.]\n");
const text = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
constraints: {governance_policies: [{policy_ref: acme.pay}]}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space:
  local_tools:
    - alias: pay
      aproval: {condition: {args_match: {amount: {gt: 10}}}}
`;
const uri = pathToFileURL(join(folder, "desk.agf.yaml")).href;
const at = (mark) => {
  const lines = text.slice(0, text.indexOf(mark)).split("\n");
  return { textDocument: { uri }, position: { line: lines.length - 1, character: lines.at(-1).length } };
};

const server = spawn(process.argv[2], ["lsp"], { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((done) => server.on("exit", done));
const connection = protocol.createProtocolConnection(
  new protocol.StreamMessageReader(server.stdout),
  new protocol.StreamMessageWriter(server.stdin),
);
setTimeout(() => { console.error("no answer within 20 s"); process.exit(1); }, 20_000).unref();

const found = new Promise((done) => connection.onNotification(protocol.PublishDiagnosticsNotification.type, done));
connection.onError(([err]) => { throw err; });
connection.listen();
const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, {
  processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities: {},
});
assert.equal(capabilities.textDocumentSync.change, protocol.TextDocumentSyncKind.Full);
await connection.sendNotification(protocol.InitializedNotification.type, {});
await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
  textDocument: { uri, languageId: "yaml", version: 1, text },
});
const { diagnostics } = await found;
assert.deepEqual(diagnostics.map((d) => d.code), ["approval-misplaced"]);
assert.equal(diagnostics[0].severity, protocol.DiagnosticSeverity.Error);

const [action] = await connection.sendRequest(protocol.CodeActionRequest.type, {
  textDocument: { uri }, range: diagnostics[0].range, context: { diagnostics },
});
assert.equal(action.edit.changes[uri][0].newText, "approval");
const { contents } = await connection.sendRequest(protocol.HoverRequest.type, at("governance_policies"));
assert.match(contents.value, /./);
const target = await connection.sendRequest(protocol.DefinitionRequest.type, at("acme.pay"));
assert.match(target.uri, /acme\.policy\.yaml$/);
const items = await connection.sendRequest(protocol.CompletionRequest.type, at("aproval"));
assert.ok(items.some((i) => i.label === "approval"));
await assert.rejects(connection.sendRequest("textDocument/formatting", {}), /not offered/);

await connection.sendRequest(protocol.ShutdownRequest.type);
await connection.sendNotification(protocol.ExitNotification.type);
assert.equal(await ended, 0);
console.log("an editing session works");
