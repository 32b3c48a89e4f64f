// Opens good and bad files in the language server and holds its diagnostics against what is known of them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { createMessageConnection, StreamMessageReader, StreamMessageWriter } = createRequire(import.meta.url)("vscode-jsonrpc/node");
const root = process.argv[2];
const schemas = Object.fromEntries(["agent", "policy", "people"].map((kind) => [kind, pathToFileURL(resolve(`${kind}.schema.json`)).href]));

const server = spawn("node_modules/.bin/yaml-language-server", ["--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const lsp = createMessageConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
const waiting = new Map();
lsp.onNotification("textDocument/publishDiagnostics", ({ uri, diagnostics }) => waiting.get(uri)?.(diagnostics));
lsp.onRequest("workspace/configuration", ({ items }) => items.map(() => null));
lsp.onRequest("client/registerCapability", () => null);
lsp.listen();
await lsp.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
await lsp.sendNotification("initialized", {});

// diagnose tells the server which schema a file has, as an editor's modeline does, and waits for what it says.
async function diagnose(kind, file) {
  const text = `# yaml-language-server: $schema=${schemas[kind]}\n${readFileSync(file, "utf8")}`;
  const uri = pathToFileURL(resolve(file)).href;
  const said = new Promise((done) => waiting.set(uri, done));
  await lsp.sendNotification("textDocument/didOpen", { textDocument: { uri, languageId: "yaml", version: 1, text } });
  const lines = text.split("\n");
  return (await said).map(({ range, message }) => ({ at: lines[range.start.line].slice(range.start.character).split("\n")[0], message, uri }));
}

const good = [
  ["agent", "examples/trading-desk/agent.agf.yaml"],
  ["agent", "examples/customer-support/agent.agf.yaml"],
  ["policy", "examples/trading-desk/policies/trade-controls.policy.yaml"],
  ["policy", "examples/trading-desk/policies/prod-baseline.policy.yaml"],
  ["people", "internal/peers/people.yaml"],
];
for (const [kind, file] of good) {
  assert.deepEqual(await diagnose(kind, resolve(root, file)), [], file);
}

// What each bad file has, as the text where a diagnostic must begin.
const bad = [
  ["agent", "bad.agf.yaml", ["metadata", "1.0", "5", "above"]],
  ["policy", "bad.policy.yaml", ["transfer", "two", "allow"]],
  ["people", "bad.people.yaml", ["{name: Mara", "risk"]],
];
for (const [kind, file, expected] of bad) {
  const found = await diagnose(kind, file);
  for (const text of expected) {
    assert.ok(found.some((d) => d.at.startsWith(text)), `${file}: nothing is said at ${JSON.stringify(text)}: ${JSON.stringify(found, null, 1)}`);
  }
  console.log(`${file}: ${found.length} diagnostics; none in the good files`);
}

const uri = pathToFileURL(resolve("bad.agf.yaml")).href;
const hover = await lsp.sendRequest("textDocument/hover", { textDocument: { uri }, position: { line: 1, character: 3 } });
assert.ok(JSON.stringify(hover).length > 40, "no hover");
lsp.dispose();
server.kill();
