/** The whole way of a call, against a real server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CallError, Client, FROM_START, NotRun, ProblemError, StillPending, UnreachableError, guard, keyOf, told, tool,
} from "assent";
import { BIG, Desk, until } from "./desk.js";

const QUICK = { attempts: 3, pause: 0.01, maxPause: 0.05 };
const big = tool("trade", BIG);

async function desks(t: Parameters<typeof Desk.start>[0]): Promise<{ desk: Desk; client: Client }> {
  const desk = await Desk.start(t);
  return { desk, client: new Client(desk.url, desk.runtime) };
}

test("decide asks nobody", async (t) => {
  const { client } = await desks(t);
  assert.equal((await client.decide("desk", tool("quote", {}))).outcome, "allow");
  assert.equal((await client.decide("desk", big)).outcome, "ask");
  const denied = await client.decide("desk", tool("wire", {}));
  assert.deepEqual([denied.outcome, denied.reasons[0]?.code], ["deny", "not_declared"]);
});

test("an allowed call runs at once, with what was sent", async (t) => {
  const { client } = await desks(t);
  const ran: unknown[] = [];
  await client.do("desk", tool("quote", '{"b": 1.50, "a": "x"}'), (args) => ran.push(args));
  assert.deepEqual(ran, [{ b: 1.5, a: "x" }]);
  assert.equal((await client.take("desk", tool("quote", '{"b": 1.50}'))).text, '{"b": 1.50}');
});

test("arguments that change while they are decided run as they were", async (t) => {
  const { desk } = await desks(t);
  const args = { symbol: "ACME" };
  const changing = async (...given: Parameters<typeof fetch>): Promise<Response> => {
    const answer = await fetch(...given);
    args.symbol = "OTHER";
    return answer;
  };
  const client = new Client(desk.url, desk.runtime, { fetch: changing });
  assert.deepEqual((await client.take("desk", tool("quote", args))).args, { symbol: "ACME" });
});

test("what accept makes of arguments does not run", async (t) => {
  const { client } = await desks(t);
  const accept = (args: Record<string, unknown>): void => void (args.symbol = "OTHER");
  assert.deepEqual((await client.take("desk", tool("quote", { symbol: "ACME" }), { accept })).args, { symbol: "ACME" });
});

test("an approved call runs once", async (t) => {
  const { desk, client } = await desks(t);
  const key = keyOf("s-1", "call_1");
  const waits = client.take("desk", big, { key });
  await desk.vote("approve");
  const taken = await waits;
  assert.deepEqual([taken.args, taken.edited, taken.request?.state], [BIG, false, "consumed"]);
  await assert.rejects(client.take("desk", big, { key }), says("Not run again. The approval has been used already."));
});

test("what was opened is taken without its key", async (t) => {
  const { desk, client } = await desks(t);
  const opened = await client.open("desk", big);
  await assert.rejects(client.take("desk", big, { opened, wait: 0 }), StillPending);
  await desk.vote("approve");
  const another = /was opened for another call/;
  await assert.rejects(client.take("desk", tool("trade", { ...BIG, amount: 30000 }), { opened }), another);
  await assert.rejects(client.take("desk", tool("ship", BIG), { opened }), another);
  assert.deepEqual((await client.take("desk", big, { opened })).args, BIG);
  await assert.rejects(client.take("desk", big, { opened }), says("Not run again. The approval has been used already."));
});

test("a person denies, and says why", async (t) => {
  const { desk, client } = await desks(t);
  const waits = rejects(client.take("desk", big), says("Not run. mara@example.com denied this call: no. Do not try it again."));
  await desk.vote("deny", { reason: "no" });
  await waits;
  await assert.rejects(client.take("desk", big), /A person has just denied this same call/);
});

test("a person answers instead, and policy denies", async (t) => {
  const { desk, client } = await desks(t);
  const waits = rejects(client.take("desk", big), says("Not run. A person answered instead: Use the copy."));
  await desk.vote("respond", { response: "Use the copy." });
  await waits;
  await assert.rejects(client.take("desk", tool("drop_table", {})), /Policy denies this call: Dropping tables is not/);
});

test("what the approver edited runs", async (t) => {
  const { desk, client } = await desks(t);
  const waits = client.take("desk", big);
  await desk.edit('{"currency": "USD", "amount": 15000.50}');
  const taken = await waits;
  assert.equal(taken.text, '{"currency": "USD", "amount": 15000.50}');
  assert.deepEqual([taken.edited, Object.keys(taken.args)], [true, ["currency", "amount"]]);
});

test("an edit that can't be run is not taken", async (t) => {
  const { desk, client } = await desks(t);
  const accept = (args: object): void => {
    if ("note" in args) throw new CallError("the tool has no note");
  };
  const waits = rejects(client.take("desk", big, { accept }), /no note/);
  await desk.edit('{"amount": 15000, "note": "x"}');
  await waits;
  assert.equal((await desk.api("GET", "/v1/requests?state=approved", desk.mara)).total, 1);
  const other = rejects(client.take("desk", tool("trade", { amount: 30000 })), /no number of JavaScript/);
  await desk.edit('{"amount": 9007199254740993}');
  await other;
});

test("a deadline is no denial", async (t) => {
  const { client } = await desks(t);
  await assert.rejects(client.take("desk", tool("hurry", {})), /Nobody decided about this call in time \(until .* UTC\)\. That is/);
  await assert.rejects(client.take("desk", big, { within: 1 }), /Nobody decided/);
});

test("a wait that ends leaves the request open, or takes it back", async (t) => {
  const { desk, client } = await desks(t);
  const left = await client.take("desk", big, { key: "k", wait: 0.2 }).catch((error) => error);
  assert(left instanceof StillPending);
  const waits = client.take("desk", big, { key: "k" }); // the same question, not a second one
  assert.deepEqual((await desk.waiting()).map((each) => each.id), [left.request.id]);
  await desk.vote("approve");
  assert.equal((await waits).request?.id, left.request.id);
  const gone = await client.take("desk", tool("trade", { amount: 30000 }), { wait: 0.2, cancel: "stopped" }).catch((e) => e);
  assert(gone instanceof StillPending);
  assert.equal((await client.request(gone.request.id)).state, "cancelled");
});

test("a signal ends the wait and takes the request back", async (t) => {
  const { desk, client } = await desks(t);
  const stop = new AbortController();
  const waits = rejects(client.take("desk", big, { signal: stop.signal, cancel: "the run was stopped" }), { name: "AbortError" });
  const id = (await desk.waiting())[0]!.id;
  stop.abort();
  await waits;
  assert.equal((await client.request(id)).state, "cancelled");
});

test("a frozen agent runs nothing", async (t) => {
  const { desk, client } = await desks(t);
  const waits = client.take("desk", big).catch((error) => error);
  const request = (await desk.waiting())[0]!;
  await desk.freeze();
  await assert.rejects(client.take("desk", tool("quote", {})), /The agent is frozen by its operators/);
  await desk.vote("approve", {}, request);
  const refused = await waits;
  assert(refused instanceof ProblemError);
  assert.deepEqual([refused.code, refused.problem.status, refused.problem.outcome], ["frozen", 423, "deny"]);
  assert.equal(told(refused), "Not run. The agent is frozen by its operators. Do not try it again.");
});

test("rules that change ask once more", async (t) => {
  const { desk, client } = await desks(t);
  const asked = (await client.open("desk", big, { key: "k" })).request;
  await desk.vote("approve");
  await desk.change("gt: 10000", "gt: 9000");
  const waits = client.take("desk", big, { key: "k" });
  const again = (await desk.waiting())[0]!;
  assert.notEqual(again.id, asked?.id);
  await desk.vote("approve", {}, again);
  assert.equal((await waits).request?.id, again.id);
});

test("the same key for another call is refused", async (t) => {
  const { client } = await desks(t);
  await client.open("desk", big, { key: "k" });
  const refused = await client.take("desk", tool("trade", { amount: 30000 }), { key: "k" }).catch((error) => error);
  assert.deepEqual([refused.code, refused.problem.outcome], ["key_reuse", "deny"]);
});

test("a server that is killed while people are asked comes back", async (t) => {
  const { desk, client } = await desks(t);
  const waits = client.take("desk", big);
  const request = (await desk.waiting())[0]!;
  await desk.kill();
  await desk.start();
  await desk.vote("approve", {}, request);
  assert.equal((await waits).request?.id, request.id);
});

test("no server, no run; and no token in what is told", async (t) => {
  const { desk } = await desks(t);
  const client = new Client(desk.url, desk.runtime, QUICK);
  const waits = client.take("desk", big).catch((error) => error);
  await desk.waiting();
  await desk.kill();
  const lost = await waits;
  assert(lost instanceof UnreachableError);
  assert(told(lost).startsWith("Not run. It could not be established"));
  assert(!`${lost.stack}${JSON.stringify(client)}`.includes(desk.runtime));
  await assert.rejects(client.take("desk", tool("quote", {})), UnreachableError);
});

test("a wrong token runs nothing", async (t) => {
  const { desk } = await desks(t);
  const client = new Client(desk.url, "assent_" + "x".repeat(43));
  await assert.rejects(client.take("desk", tool("quote", {})), { code: "unauthenticated" });
});

test("a guarded function runs with what was approved, or not at all", async (t) => {
  const { desk, client } = await desks(t);
  const trade = guard(client, "desk", "trade", (args: { amount: number }) => `bought ${args.amount}`, {
    key: (args) => keyOf("s-1", String(args.amount)),
    session: "s-1",
  });
  assert.equal(await trade({ amount: 5 }), "bought 5");
  const waits = trade({ amount: 20000 });
  await desk.edit('{"amount": 15000}');
  assert.equal(await waits, "bought 15000");
  await assert.rejects(trade({ amount: 20000 }), /Not run again/);
});

test("of a function that ran the model is never told that it did not", async (t) => {
  const { client } = await desks(t);
  const inner = guard(client, "desk", "drop_table", () => "dropped");
  const raised = [new RangeError("oops"), Object.freeze(new CallError("oops")), "oops"];
  const fails = [...raised.map((error) => () => { throw error; }), () => inner({})];
  for (const fail of fails) {
    for (const run of [guard(client, "desk", "quote", fail), () => client.do("desk", tool("quote", {}), fail)]) {
      const text = told(await run({}).then(() => assert.fail(), (error) => error));
      assert.match(text, /^It (ran and )?failed \(\w+\)/);
      assert.doesNotMatch(text, /Not run|oops/);
    }
  }
  const early = [
    guard(client, "desk", "quote", () => "ran", { key: () => { throw new RangeError(); } }),
    guard(client, "desk", "quote", () => "ran", { accept: () => { throw new RangeError(); } }),
  ];
  for (const run of early) assert.match(told(await run({}).catch((error) => error)), /^Not run\. .*\(RangeError\)/);
});

test("a guarded method keeps its this, and undefined members are left out", async (t) => {
  const { desk, client } = await desks(t);
  class Broker {
    sum = 0;
    trade = guard(client, "desk", "trade", function (this: Broker, args: { amount: number; note?: string | undefined }) {
      return (this.sum += args.amount) + ("note" in args ? " noted" : "");
    });
  }
  const broker = new Broker();
  const waits = broker.trade({ amount: 20000, note: undefined });
  const request = (await desk.waiting())[0]!;
  assert.equal(request.revisions[0]!.call.args, '{"amount":20000}');
  await desk.vote("approve", {}, request);
  assert.equal(await waits, "20000");
  await assert.rejects(broker.trade(5 as never), /expected one object of named arguments/);
  assert.throws(() => guard(client, "desk", "trade", ((a: number, b: number) => a + b) as never), /takes 2 arguments/);
  assert.throws(() => guard(client, "desk", "trade", function* () {}), /is a generator/);
  await assert.rejects(client.take("desk", tool("quote", { list: [undefined] })), CallError);
});

test("equal calls without a key run once each", async (t) => {
  const { desk, client } = await desks(t);
  let ran = 0;
  const both = [1, 2].map(() => client.do("desk", big, () => ran++));
  for (const count of [1, 2]) {
    await desk.vote("approve");
    await until(() => ran >= count, "it does not run");
  }
  await Promise.all(both);
  assert.equal(ran, 2);
});

test("events go on where they were, over a server that was killed", async (t) => {
  const { desk, client } = await desks(t);
  await client.open("desk", big);
  const stream = client.events(FROM_START);
  const first = (await stream.next()).value;
  await stream.return();
  assert(first);
  const seen: number[] = [];
  const reads = (async () => {
    for await (const event of client.events(first.index)) {
      seen.push(event.index);
      if (event.type === "request_cancelled") return;
    }
  })();
  await until(() => seen.length > 0, "no event comes");
  const id = (await desk.waiting())[0]!.id;
  await desk.kill();
  await desk.start();
  await client.cancel(id);
  await reads;
  assert.deepEqual(seen, seen.map((_, i) => first.index + 1 + i));
});

const says = (text: string): ((error: unknown) => boolean) => (error) => {
  assert(error instanceof NotRun);
  assert.equal(told(error), text);
  return true;
};

/** assert.rejects that is looked at later. */
function rejects(promise: Promise<unknown>, what: Parameters<typeof assert.rejects>[1]): Promise<void> {
  const done = assert.rejects(promise, what);
  done.catch(() => {});
  return done;
}
