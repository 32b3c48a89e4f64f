/** The cases of every adapter, with the OpenAI Agents SDK and a scripted model. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { RunState, Runner, tool } from "@openai/agents-core";
import { Client } from "assent";
import { Assent } from "assent/adapters/openai-agents";
import { z } from "zod";
import { Desk } from "../desk.js";
import { desk as agentOf, framework } from "./openai-agents.js";
import { QUICK, SESSION, cases, clientOf } from "./suite.js";

const held = cases(framework);

held(16, "a name that stands twice is presented to nobody", async (_, desk) => {
  const { ran } = await framework.turn(clientOf(desk), [{ tool: "trade", args: '{"amount": 1, "amount": 30000}' }]);
  assert.deepEqual(ran, []);
  assert.equal((await desk.api("GET", "/v1/requests", desk.mara)).total, 0);
});

test("a call of a tool that is not behind assent is not approved", async (t) => {
  const desk = await Desk.start(t);
  const given = agentOf(clientOf(desk), [{ tool: "free", args: "{}" }], { pause: true });
  const parameters = z.object({});
  const free = tool({ name: "free", description: "free", parameters, needsApproval: true, execute: () => assert.fail("it ran") });
  const agent = given.agent.clone({ tools: [free] });
  const runner = new Runner({ tracingDisabled: true });
  const first = await runner.run(agent, "go");
  assert.equal(first.interruptions.length, 1);
  assert(await given.gate.answer(first.state));
  const again = await runner.run(agent, await RunState.fromString(agent, first.state.toString()));
  assert.equal(again.interruptions.length, 1);
});

test("tools that run elsewhere are refused", () => {
  const gate = new Assent(new Client("http://127.0.0.1:1", "assent_x", QUICK), "desk", SESSION);
  const elsewhere = { type: "hosted_tool" as const, name: "web_search" };
  assert.throws(() => gate.tools([elsewhere]), /web_search is no function of this program/);
});

test("people see the defaults of a tool, and no call without what it needs", async (t) => {
  const desk = await Desk.start(t);
  const given = agentOf(clientOf(desk), [], {});
  const properties = { amount: { type: "number" as const }, force: { type: "boolean" as const, default: true } };
  const parameters = { type: "object" as const, properties, required: ["amount"], additionalProperties: true as const };
  const trade = tool({ name: "trade", description: "trade", parameters, strict: false, execute: (args) => JSON.stringify(args) });
  const [gated] = given.gate.tools([trade]);
  const call = (args: string) => gated!.invoke(undefined as never, args, { toolCall: { callId: args } as never });
  const got = call('{"amount": 20000}');
  const shown = '{"amount":20000,"force":true}';
  const request = (await desk.waiting())[0]!;
  assert.equal(request.revisions[0]!.call.args, shown);
  await desk.vote("approve", {}, request);
  assert.equal(await got, shown);
  assert.match(String(await call('{"force": false}')), /^Not run\. .*amount is missing/);
});
