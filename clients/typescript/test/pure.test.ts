/** What needs no server: texts, arguments, keys, answers that make no sense, webhooks and streams. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import {
  AssentError, CallError, Client, NotRun, ProblemError, Receiver, Replayed, UnreachableError, UnreadableError,
  WebhookError, keyOf, told, tool,
} from "assent";
import { BIG, Desk, TOP, until } from "./desk.js";


/** A module of the package as it is installed. */
const inside = (name: string): Promise<unknown> => import(new URL(name, import.meta.resolve("assent")).href);
const { bodyOf, valuesOf } = (await inside("call.js")) as typeof import("../src/call.js");
const { Reader } = (await inside("sse.js")) as typeof import("../src/sse.js");
const { DEFAULTS, backoff } = (await inside("wire.js")) as typeof import("../src/wire.js");

test("texts are those of every client, word for word", () => {
  const rows = JSON.parse(readFileSync(join(TOP, "client", "testdata", "texts.json"), "utf8"));
  assert(rows.length >= 35);
  for (const row of rows) {
    const error = row.problem ? new ProblemError(row.problem) : new NotRun(row.opened, row.request);
    assert.equal(error.message, row.text, row.name);
    if (!row.problem) assert.equal(told(error), row.text);
  }
});

test("only of an error of this package the agent is told that nothing ran", () => {
  for (const error of [new UnreachableError("gone"), new CallError("x")]) assert.match(told(error), /^Not run\./);
  for (const error of [new RangeError("oops"), "oops", undefined]) {
    assert.match(told(error), /^It failed \(\w+\), and it may have run\./);
    assert.doesNotMatch(told(error), /Not run|oops/);
  }
});

test("arguments are sent byte for byte", () => {
  for (const [args, text] of [
    [{}, "{}"],
    [{ a: undefined, b: { c: undefined } }, '{"b":{}}'],
    [{ b: 1, a: "ü\u2028" }, '{"b":1,"a":"ü\u2028"}'],
    ['{"b":1.50,  "a":1e2}', '{"b":1.50,  "a":1e2}'],
  ] as const) {
    assert.deepEqual(bodyOf(tool("t", args)), { body: `{"kind":"tool","tool":"t","args":${text}}`, args: text });
  }
});

test("arguments that could be read in two ways, or that JavaScript would change, are refused", () => {
  const deep = '{"a":'.repeat(20000) + "1" + "}".repeat(20000);
  for (const args of [
    '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999}', '{"a": 1e-999}', '{"a": 9007199254740993}', "[1]", "", "null", "7",
    '{"a": 0.1000000000000000055511151231257827}', deep, { a: Infinity }, { a: NaN }, { a: "\ud800" }, { "\ud800": 1 },
    { a: [undefined] }, { a: 1n }, { a: () => 1 }, { a: new Date() }, { a: new Map() }, { a: Symbol.iterator },
  ]) {
    assert.throws(() => bodyOf(tool("t", args as never)), CallError, String(args).slice(0, 40));
  }
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  assert.throws(() => bodyOf(tool("t", circle)), CallError);
  for (const twice of ['{"a":1,"a":1}', '{"a":[],"a":{}}', '{"b":[{"a":-0.0,"\\u0061" : 0}]}', '{"":1,"":1}']) {
    assert.throws(() => bodyOf(tool("t", twice)), CallError, twice);
  }
  for (const once of ['{"a":"\\"a\\":1,{","b":[{"a":1},{"a":1}],"c":["a","a"]}', '{"a":{"a":{"a":"a"}}}']) {
    assert.equal(bodyOf(tool("t", once)).args, once);
  }
  assert.throws(() => bodyOf(tool("t", {}, { session: "\ud800" })), /the call: expected what JSON can hold/);
});

test("values are those of the text", () => {
  const values = valuesOf('{"n": 9007199254740991, "x": 1.50, "z": 1e2, "__proto__": {"y": 1}}');
  assert.deepEqual(Object.entries(values), [["n", 9007199254740991], ["x", 1.5], ["z", 100], ["__proto__", { y: 1 }]]);
});

test("keys are the same for the same model call alone", () => {
  assert.equal(keyOf("s-1", "call_1"), "s-1/call_1");
  assert.notEqual(keyOf("s/1", "c"), keyOf("s", "1/c"));
  assert.equal(keyOf("ü!", "\ud800"), "%C3%BC%21/%ED%A0%80"); // as the client for Python has it
  assert(keyOf("s".repeat(500), "c").length <= 180);
  assert.notEqual(keyOf("s".repeat(500), "c"), keyOf("s".repeat(500), "d"));
  for (const parts of [[], [""], ["s", ""]]) assert.throws(() => keyOf(...parts), CallError);
});

test("addresses and tokens that can't be used", () => {
  for (const url of ["", "ftp://a", "http://u:p@a/", "http://a/?q", "http://a/#f", "a"]) {
    assert.throws(() => new Client(url, "t"), CallError, url);
  }
  assert.throws(() => new Client("http://a", "a b"), CallError);
});

/** A server that gives one answer to everything. */
async function answering(t: { after(f: () => void): void }, status: number, headers: Record<string, string>, body: string) {
  let came = 0;
  const server = createServer((_, response) => {
    came++;
    response.writeHead(status, headers).end(body);
  }).listen(0, "127.0.0.1");
  t.after(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { client: new Client(url, "assent_x", { attempts: 3, pause: 0.001 }), came: () => came };
}

test("answers that make no sense run nothing", async (t) => {
  const decision = { outcome: "ask", reasons: [], message: "" };
  const request = { id: "apr_1", state: "approved", deadline: "2026-01-01T00:00:00Z", version: 2 };
  for (const answer of [
    "", "null", "[]", "nonsense", "{}", '{"outcome":"allow"}', '{"outcome":"allow","decision":{"outcome":"yes"}}',
    JSON.stringify({ outcome: "pending", decision }), JSON.stringify({ outcome: "granted", decision }),
    JSON.stringify({ outcome: "pending", decision, request }),
    JSON.stringify({ outcome: "pending", decision, request: { ...request, revisions: [] } }),
    JSON.stringify({ outcome: "pending", decision, request: { ...request, revisions: [{ call: {} }] } }),
  ]) {
    const { client, came } = await answering(t, 200, { "Content-Type": "application/json" }, answer);
    await assert.rejects(client.take("desk", tool("t", {})), UnreadableError, answer);
    assert.equal(came(), 1);
  }
});

test("an outcome that a later version may bring runs nothing", async (t) => {
  const answer = JSON.stringify({ outcome: "maybe", decision: { outcome: "ask", reasons: [], message: "" } });
  const { client } = await answering(t, 200, {}, answer);
  await assert.rejects(client.take("desk", tool("t", {})), NotRun);
});

test("proxies are no servers: their errors are tried again where that may help, and redirects are not followed", async (t) => {
  for (const [status, times, code] of [[502, 3, "unavailable"], [429, 3, "unavailable"], [404, 1, "internal"], [302, 1, "internal"]] as const) {
    const { client, came } = await answering(t, status, { Location: "http://127.0.0.1:1/" }, "<html>");
    const error = await client.decide("desk", tool("t", {})).catch((e) => e);
    assert(error instanceof ProblemError, String(status));
    assert.deepEqual([error.code, came()], [code, times], String(status));
  }
});

const SECRET = "whsec_" + "a".repeat(32);
const BODY = '{"type": "request_opened", "data": {"request": "apr_1"}}';

function signed(body = BODY, age = 0): Record<string, string> {
  const at = new Date(Date.now() - age * 1000);
  const signature = new Webhook(SECRET).sign("msg_1", at, body);
  return { "Webhook-Id": "msg_1", "Webhook-Timestamp": `${Math.floor(at.getTime() / 1000)}`, "Webhook-Signature": signature };
}

test("a webhook is received once", () => {
  const receiver = new Receiver(["whsec_" + "b".repeat(32), SECRET]);
  const message = receiver.receive(signed(), BODY);
  assert.deepEqual([message.id, message.type, message.data], ["msg_1", "request_opened", { request: "apr_1" }]);
  assert.throws(() => receiver.receive(signed(), Buffer.from(BODY)), Replayed);
  receiver.forget("msg_1");
  receiver.receive(new Headers(signed()), BODY);
});

test("what the server did not sign is refused", () => {
  const receiver = new Receiver(SECRET);
  const { "Webhook-Signature": _, ...without } = signed();
  for (const [headers, body] of [
    [signed(), BODY.replace("apr_1", "apr_2")], [without, BODY], [signed(BODY, 600), BODY], [signed(BODY, -600), BODY],
    [{ ...signed(), "Webhook-Id": "msg_2" }, BODY], [{}, ""], [signed("[]"), "[]"], [signed("{}"), "{}"],
  ] as const) {
    assert.throws(() => receiver.verify(headers as Record<string, string>, body), WebhookError, body);
  }
  for (const secret of ["", "whsec_", "whsec_****************", "a".repeat(40), []]) {
    assert.throws(() => new Receiver(secret), WebhookError, String(secret));
  }
});

test("a webhook of a real server is received", async (t) => {
  const got: { headers: Record<string, string>; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    got.push({ headers: request.headers as Record<string, string>, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  }).listen(0, "127.0.0.1");
  t.after(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const desk = await Desk.start(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
  const asked = (await new Client(desk.url, desk.runtime).open("desk", tool("trade", BIG))).request;
  await until(() => got.length > 0, "no message comes");
  const message = new Receiver(desk.secret).receive(got[0]!.headers, got[0]!.body);
  assert.deepEqual([message.type, message.data.request], ["request_opened", asked?.id]);
});

test("whatever the package brings along has its line", () => {
  const page = readFileSync(join(TOP, "docs", "dependencies.md"), "utf8");
  const own = JSON.parse(readFileSync(new URL("../../package.json", import.meta.resolve("assent")), "utf8"));
  for (const name of Object.keys(own.dependencies)) assert(page.includes(`| \`${name}\` |`), name);
});

test("a stream of events is read however it is cut, and what can't be read is refused", () => {
  const text = 'id: 3\nevent: a\ndata: {"x":"ü"}\n\n: beat\n\nid: 4\n\nid: 5\r\ndata: {"y":\r\ndata: 1}\r\n\r\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 7, bytes.length]) {
    const reader = new Reader(2);
    assert.deepEqual(reader.connect(), { Accept: "text/event-stream", "Last-Event-ID": "2" });
    const found = [];
    for (let i = 0; i < bytes.length; i += size) found.push(...reader.feed(bytes.subarray(i, i + size)));
    assert.deepEqual(found, [{ index: 3, type: "a", leaf: { x: "ü" } }, { index: 5, type: "", leaf: { y: 1 } }]);
    assert.equal(reader.after, 5);
  }
  for (const bad of ["id: x\ndata: {}\n\n", "data: {}\n\n", "id: 1\ndata: nonsense\n\n", "id: -5\n\n", "id: 1\ndata: []\n\n"]) {
    const reader = new Reader(-2);
    reader.connect();
    assert.throws(() => reader.feed(new TextEncoder().encode(bad)), UnreadableError, bad);
  }
  const reader = new Reader(-2);
  reader.connect();
  assert.throws(() => reader.feed(new Uint8Array(5 << 20).fill(0x61)), UnreadableError);
  assert.throws(() => reader.feed(new Uint8Array([0xff, 0x0a])), AssentError);
});

test("a pause that a server can't ask for is none", () => {
  for (const after of [-1, 0, Number.NaN]) {
    const pauses = Array.from({ length: 20 }, () => backoff({ ...DEFAULTS, pause: 9 }, 9, after));
    assert(Math.max(...pauses) > 0 && Math.min(...pauses) >= 0, `${after}`);
  }
});
