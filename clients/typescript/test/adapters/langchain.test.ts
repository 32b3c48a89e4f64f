/** The cases of every adapter, with LangChain and a scripted model. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Command, MemorySaver } from "@langchain/langgraph";
import { Client } from "assent";
import { assent as middleware } from "assent/adapters/langchain";
import { ToolMessage } from "langchain";
import { z } from "zod";
import { BIG, Desk } from "../desk.js";
import { framework, go } from "./langchain.js";
import { QUICK, TRADE, cases, clientOf } from "./suite.js";

const held = cases(framework);

held(6, "an edit that the tool doesn't take", async (_, desk) => {
  const waits = framework.turn(clientOf(desk), [TRADE]);
  await desk.edit('{"amount": "all"}');
  const { ran, told } = await waits;
  assert.deepEqual(ran, []);
  assert.match(told.call_1!, /^Not run\. .*trade can't be called with this: an amount/);
  assert.equal((await desk.api("GET", "/v1/requests?state=approved", desk.mara)).total, 1);
});

held(16, "of a name that stands twice, what LangChain keeps is what is shown and runs", async (_, desk) => {
  const waits = framework.turn(clientOf(desk), [{ tool: "trade", args: '{"amount": 1, "amount": 30000}' }]);
  const request = (await desk.waiting())[0]!;
  assert.equal(request.revisions[0]!.call.args, '{"amount":30000}');
  await desk.vote("approve", {}, request);
  assert.deepEqual((await waits).ran, [["trade", { amount: 30000 }]]);
});

test("a resume waits once, however often the turn was interrupted", async (t) => {
  const client = clientOf(await Desk.start(t));
  const waited: unknown[] = [];
  const take = client.take.bind(client);
  client.take = (agent, call, asking) => (waited.push(asking?.wait), take(agent, call, asking));
  const saved = new MemorySaver();
  const given = [{ messages: [{ role: "user", content: "go" }] }, ...[1, 2, 3].map(() => new Command({ resume: 1 }))];
  for (const [resumes, each] of given.entries()) {
    assert((await go(client, [TRADE], each, saved, 0.1)).waits);
    assert.deepEqual(waited.splice(0), [...Array(resumes).fill(0), 0.1]);
  }
});

test("two calls of a paused turn go on, each when people have answered it", async (t) => {
  const desk = await Desk.start(t);
  const saved = new MemorySaver();
  const given = { messages: [{ role: "user", content: "go" }] };
  const calls = [TRADE, { tool: "trade", args: '{"amount": 30000}', id: "call_2" }];
  assert((await go(clientOf(desk), calls, given, saved, 0.1)).waits);
  const requests = await desk.waiting(2);
  const ran: object[] = [];
  for (const request of requests) {
    await desk.vote("approve", {}, request);
    ran.push(...(await go(clientOf(desk), [], new Command({ resume: 1 }), saved, 0.1)).ran);
  }
  assert.deepEqual(new Set(ran.map((each) => JSON.stringify(each))), new Set([["trade", BIG], ["trade", { amount: 30000 }]].map((each) => JSON.stringify(each))));
  assert.equal(ran.length, 2);
});

test("an edit with an argument that the tool would leave out runs nothing", async (t) => {
  const desk = await Desk.start(t);
  const gate = middleware(clientOf(desk), "desk");
  const schema = z.object({ amount: z.number(), currency: z.string().optional() });
  const toolCall = { name: "trade", args: BIG, id: "call_1" };
  const request = { toolCall, tool: { schema }, state: { messages: [] }, runtime: { configurable: { thread_id: "s-1" } } };
  const answers = gate.wrapToolCall!(request as never, () => assert.fail("it ran"));
  await desk.edit('{"amount": 1, "other": 2}');
  const answer = await answers;
  assert(answer instanceof ToolMessage);
  assert.match(String(answer.content), /^Not run\. .*trade can't be called with this: it takes no other/);
});

test("a call of no thread is refused", async () => {
  const gate = middleware(new Client("http://127.0.0.1:1", "assent_x", QUICK), "desk");
  const request = { toolCall: { name: "trade", args: BIG, id: "call_1" }, tool: undefined, state: { messages: [] }, runtime: {} };
  const answer = await gate.wrapToolCall!(request as never, () => assert.fail("it ran"));
  assert(answer instanceof ToolMessage);
  assert.match(String(answer.content), /^Not run\. .*an idempotency key/);
});

test("people see the defaults of a tool, and no call without what it needs", async (t) => {
  const desk = await Desk.start(t);
  const gate = middleware(clientOf(desk), "desk");
  const nested = z.object({ path: z.string(), force: z.boolean().default(true) });
  const schema = z.object({ amount: z.number(), recursive: z.boolean().default(true), inside: nested.optional() });
  const json = z.toJSONSchema(schema, { io: "input" });
  const call = (id: string, args: object, of: unknown, run: (request: any) => any) => {
    const toolCall = { name: "trade", args, id };
    const runtime = { configurable: { thread_id: "s-1" } };
    return gate.wrapToolCall!({ toolCall, tool: { schema: of }, state: { messages: [] }, runtime } as never, run);
  };
  for (const [id, of] of [["call_1", schema], ["call_2", json]] as const) {
    const got = call(id, { amount: 20000, inside: { path: "/srv" } }, of, (request) => request.toolCall.args);
    const request = (await desk.waiting())[0]!;
    const shown = { amount: 20000, inside: { path: "/srv", force: true }, recursive: true };
    assert.deepEqual(JSON.parse(request.revisions[0]!.call.args), shown);
    await desk.vote("approve", {}, request);
    assert.deepEqual(await got, shown);
    const refused: any = await call(`${id}b`, { amount: 20000, inside: {} }, of, () => assert.fail("it ran"));
    assert.match(refused.content, /^Not run\. .*inside\.path/);
  }
});
