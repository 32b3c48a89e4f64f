/** The engine in process: every recorded answer, and what happens when it breaks. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { tool } from "assent";
import { Engine, EngineError } from "assent/engine";
import { BIG, FILES, TOP } from "./desk.js";

let engine: Engine;
before(async () => {
  engine = await Engine.load();
});

/** Requests with their answers, whose line breaks the record leaves out. */
function recorded(): [string, string][] {
  const lines = readFileSync(join(TOP, "clients", "wasm", "testdata", "answers.jsonl"), "utf8").trim().split("\n");
  return lines.map((line) => {
    const size = JSON.stringify(JSON.parse(line).answer).length; // only to find where it may begin
    assert(size > 0);
    for (let at = line.indexOf(',"answer":'); at >= 0; at = line.indexOf(',"answer":', at + 1)) {
      const request = line.slice('{"request":'.length, at);
      if (isJSON(request)) return [request, line.slice(at + ',"answer":'.length, -1)];
    }
    throw new Error("no answer stands in the line");
  });
}

function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const desk = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(FILES, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".yaml"))
      .map((path) => [path, readFileSync(join(FILES, path), "utf8")]),
  );

test("every recorded answer, byte for byte", () => {
  const rows = recorded();
  assert(rows.length >= 20);
  for (const [request, answer] of rows) assert.equal(engine.run(request).replaceAll("\n", ""), answer);
});

test("it decides as the command does", () => {
  const plan = engine.plan({ files: desk(), agent: "agent.agf.yaml", policies: ["policies"] });
  const calls = [tool("quote", {}), tool("trade", BIG), tool("wire", {}), tool("drop_table", {})];
  const input = calls.map((call) => JSON.stringify(call) + "\n").join("");
  const args = ["decide", "--agent", "agent.agf.yaml", "--policies", "policies"];
  const told = execFileSync(process.env.ASSENT_BIN ?? "assent", args, { cwd: FILES, input, encoding: "utf8" });
  assert.deepEqual(calls.map((call) => plan.decideText(JSON.stringify(call))), told.trim().split("\n"));
  assert.deepEqual(calls.map((call) => plan.decide(call).outcome), ["allow", "ask", "deny", "deny"]);
  plan.close();
  assert.throws(() => plan.decide(calls[0]!), EngineError);
});

test("files that make no plan", () => {
  assert.throws(() => engine.plan({ files: { "a.agf.yaml": "{" }, agent: "a.agf.yaml" }), /a\.agf\.yaml:1: /);
  assert.throws(() => engine.plan({ files: {}, agent: "a.agf.yaml" }), EngineError);
});

test("a module that broke off is started anew, and plans go on", async () => {
  const own = await Engine.load();
  const plan = own.plan({ files: desk(), agent: "agent.agf.yaml", policies: ["policies"] });
  assert.equal(plan.decide(tool("quote", {})).outcome, "allow");
  const memory = WebAssembly.Memory.prototype;
  const buffer = Object.getOwnPropertyDescriptor(memory, "buffer")!;
  const once = (): never => {
    Object.defineProperty(memory, "buffer", buffer);
    throw new RangeError("gone");
  };
  Object.defineProperty(memory, "buffer", { get: once, configurable: true });
  assert.throws(() => plan.decide(tool("quote", {})), EngineError);
  assert.equal(own.starts, 2);
  assert.equal(plan.decide(tool("quote", {})).outcome, "allow");
});

test("a text that is none is not decided as another", () => {
  const plan = engine.plan({ files: desk(), agent: "agent.agf.yaml", policies: ["policies"] });
  assert.throws(() => plan.decideText('{"kind": "tool", "tool": "quote", "args": {"symbol": "\ud800"}}'), EngineError);
});

test("an input that is too large is refused", () => {
  assert.throws(() => engine.run(" ".repeat((64 << 20) + 1)), /no room/);
  assert(engine.run("{}").includes("exit"));
});
