/** The cases of every adapter, with the AI SDK and its own scripted model. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ModelMessage, jsonSchema, tool } from "ai";
import { Client } from "assent";
import { Assent } from "assent/adapters/ai-sdk";
import { z } from "zod";
import { Desk } from "../desk.js";
import { framework, turn } from "./ai-sdk.js";
import { QUICK, SESSION, TRADE, cases, clientOf } from "./suite.js";

const held = cases(framework);

held(6, "an edit that the tool doesn't take", async (_, desk) => {
  const waits = turn(clientOf(desk), [TRADE]);
  await desk.edit('{"amount": "all"}');
  const { ran, told } = await waits;
  assert.deepEqual(ran, []);
  assert.match(told.call_1!, /^Not run\. .*the tool trade does not take the edited arguments/s);
});

held(16, "of a name that stands twice, what the SDK keeps is what is shown and runs", async (_, desk) => {
  const waits = turn(clientOf(desk), [{ tool: "trade", args: '{"amount": 1, "amount": 30000}' }]);
  const request = (await desk.waiting())[0]!;
  assert.equal(request.revisions[0]!.call.args, '{"amount":30000}');
  await desk.vote("approve", {}, request);
  assert.deepEqual((await waits).ran, [["trade", { amount: 30000 }]]);
});

test("tools that are not behind assent are refused", async () => {
  const gate = new Assent(new Client("http://127.0.0.1:1", "assent_x", QUICK), "desk", SESSION, { wait: 1 });
  const elsewhere = tool({ inputSchema: jsonSchema<any>({ type: "object" }) });
  assert.throws(() => gate.tools({ elsewhere: elsewhere as any }), /elsewhere is no function of this program/);
  const free = tool({ inputSchema: jsonSchema({ type: "object" }), execute: () => "ran" });
  const toolCall = { toolName: "free", toolCallId: "call_1", input: {} };
  assert.deepEqual(await gate.approval({ toolCall, tools: { free } }), { type: "denied", reason: "Not run. free is not behind assent." });
  const down = await gate.approval({ toolCall, tools: gate.tools({ free }) });
  assert.match((down as { reason: string }).reason, /^Not run\. It could not be established that this call may run/);
});

test("of a tool that gives several results the last counts", async (t) => {
  const gate = new Assent(clientOf(await Desk.start(t)), "desk", SESSION);
  const several = tool({
    inputSchema: jsonSchema<object>({ type: "object" }),
    execute: async function* () {
      yield "some";
      yield "all";
    },
  });
  const { quote } = gate.tools({ quote: several });
  assert.equal(await quote.execute!({}, { toolCallId: "call_1", messages: [], context: undefined as never }), "all");
});

test("people see the defaults of a tool, also when the run pauses", async (t) => {
  const desk = await Desk.start(t);
  const inputSchema = z.object({ amount: z.number(), force: z.boolean().default(true) });
  const { waits } = await turn(clientOf(desk), [{ tool: "trade", args: '{"amount": 20000}' }], 0.1, undefined, inputSchema);
  const request = (await desk.waiting())[0]!;
  assert.equal(request.revisions[0]!.call.args, '{"amount":20000,"force":true}');
  await desk.vote("approve", {}, request);
  const messages = waits as ModelMessage[];
  const answer = await new Assent(clientOf(desk), "desk", SESSION).answer(messages);
  const { ran } = await turn(clientOf(desk), [], 0.1, [...messages, answer!], inputSchema);
  assert.deepEqual(ran, [["trade", { amount: 20000, force: true }]]);
  const missing = await turn(clientOf(desk), [{ tool: "trade", args: "{}", id: "call_2" }], undefined, undefined, inputSchema);
  assert.deepEqual(missing.ran, []);
  assert.match(JSON.stringify(missing.told), /amount/);
});
