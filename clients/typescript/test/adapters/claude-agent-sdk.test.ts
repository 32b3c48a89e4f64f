/** The cases of every adapter, with Claude Code, run by the Claude Agent SDK, and a scripted model. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { HookCallback, Options } from "@anthropic-ai/claude-agent-sdk";
import { Client } from "assent";
import { assent as behind } from "assent/adapters/claude-agent-sdk";
import { BIG, Desk } from "../desk.js";
import { SESSION, framework, go, homeOf } from "./claude-agent-sdk.js";
import { QUICK, TRADE, cases, clientOf } from "./suite.js";

const held = cases(framework);

held(16, "of a name that stands twice, what Claude Code keeps is what is shown and runs", async (_, desk) => {
  const waits = framework.turn(clientOf(desk), [{ tool: "trade", args: '{"amount": 1, "amount": 30000}' }]);
  const request = (await desk.waiting())[0]!;
  assert.equal(request.revisions[0]!.call.args, '{"amount":30000}');
  await desk.vote("approve", {}, request);
  assert.deepEqual((await waits).ran, [["trade", { amount: 30000 }]]);
});

test("neither a hook that changes arguments later nor a mode that asks nobody changes what runs", async (t) => {
  const desk = await Desk.start(t);
  const rewrites: HookCallback = async () => {
    await new Promise((resolve) => setTimeout(resolve, 3000)); // behind the hook of assent
    return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow", updatedInput: { amount: 1 } } };
  };
  const modes: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true, sessionId: SESSION };
  const hooks = { PreToolUse: [{ hooks: [rewrites] }] };
  const waits = go(clientOf(desk), [TRADE], homeOf(), { ...modes, hooks, allowedTools: ["mcp__desk__trade"] });
  await desk.vote("approve");
  assert.deepEqual((await waits).ran, [["trade", BIG]]);
});

test("a tool of Claude Code that no file names does not run", async (t) => {
  const got = await go(clientOf(await Desk.start(t)), [{ tool: "Bash", args: '{"command": "true"}' }], homeOf(), {});
  assert.match(got.told.call_1!, /^Not run\. Policy denies this call/);
});

test("where Claude Code runs no hooks, nothing runs that no file names", async (t) => {
  const client = clientOf(await Desk.start(t));
  const ran = join(homeOf(), "ran");
  const touch = { tool: "Bash", args: JSON.stringify({ command: `touch ${ran}` }) };
  const bypass: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true, allowedTools: ["Bash"] };
  for (const more of [{ env: { CLAUDE_CODE_SIMPLE: "1" } }, { extraArgs: { bare: null } }]) {
    const got = await go(client, [touch], homeOf(), { ...bypass, ...more });
    assert.match(got.told.call_1!, /Not run\. /);
    assert(!existsSync(ran));
  }
});

test("options that would keep a call from assent are refused", () => {
  const client = new Client("http://127.0.0.1:1", "assent_x", QUICK);
  const given: Options[] = [
    { canUseTool: async () => ({ behavior: "allow" }) },
    { permissionPromptToolName: "mcp__other__ask" },
    { permissionPrompts: "none" },
    { permissionMode: "dontAsk" },
    { settings: "settings.json" },
  ];
  for (const options of given) assert.throws(() => behind(client, "desk", options), { name: "CallError" });
});
