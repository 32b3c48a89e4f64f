/** Permits: what every verifier decides alike, ten thousand forgeries, and a permit of a real server. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { CallError, Client, tool } from "assent";
import { type Checking, PermitRefused, Verifier } from "assent/permit";
import { Desk, TOP } from "./desk.js";

const kept = JSON.parse(readFileSync(join(TOP, "approval", "permit", "testdata", "attempts.json"), "utf8"));
const good: { permit: string; target: string; arguments: string } = kept.attempts[0];

const verifier = (checking: Checking = {}): Verifier =>
  new Verifier(kept.issuer, kept.audience, { keys: kept.keys, clock: () => kept.now, ...checking });

async function reason(checks: Verifier, permit: string, target = good.target, args: unknown = good.arguments): Promise<string> {
  try {
    await checks.verify(permit, target, args as string);
    return "";
  } catch (error) {
    if (!(error instanceof PermitRefused)) throw error;
    return error.reason;
  }
}

test("it decides as every verifier does", async () => {
  assert(kept.attempts.length >= 38);
  for (const attempt of kept.attempts) {
    assert.equal(await reason(verifier(), attempt.permit, attempt.target, attempt.arguments), attempt.reason, attempt.name);
  }
});

/** Numbers that come out the same in every run. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

function forge(roll: (below: number) => number, other: string): string {
  const text = good.permit;
  const at = roll(text.length);
  const letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."[roll(65)]!;
  switch (roll(5)) {
    case 0:
      return text.slice(0, at) + letter + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + letter + text.slice(at);
    case 3:
      return text.slice(0, at) + other.slice(at);
    default: {
      const parts = text.split(".");
      parts[roll(3)] = other.split(".")[roll(3)] ?? "";
      return parts.join(".");
    }
  }
}

test("ten thousand forgeries are refused", async () => {
  const roll = dice(1);
  const checks = verifier();
  const others = kept.attempts.filter((a: typeof good & { reason: string }) => a.reason && a.permit !== good.permit);
  for (let n = 0; n < 10_000; n++) {
    const forged = forge(roll, others[roll(others.length)].permit);
    if (forged !== good.permit) assert.notEqual(await reason(checks, forged), "", forged);
  }
  assert.equal(await reason(checks, good.permit), "");
});

test("of many at once one runs", async () => {
  const checks = verifier();
  const got = await Promise.all(Array.from({ length: 32 }, () => reason(checks, good.permit)));
  assert.deepEqual(got.sort(), ["", ...Array(31).fill("used")]);
});

test("arguments may be values", async () => {
  const values = { amount: 20000, currency: "USD", note: "café", limits: [0.5, 1000, -7] };
  assert.equal(await reason(verifier(), good.permit, good.target, values), "");
  for (const other of [{ ...values, amount: 2 ** 60 }, { ...values, note: "\ud800" }, { ...values, amount: Number.NaN }]) {
    assert.equal(await reason(verifier(), good.permit, good.target, other), "arguments");
  }
});

test("a refused permit is not used up", async () => {
  const checks = verifier();
  assert.equal(await reason(checks, good.permit, good.target, {}), "arguments");
  assert.equal(await reason(checks, good.permit), "");
});

test("what is no text is no permit", async () => {
  for (const other of [undefined, null, 5, {}, []]) assert.equal(await reason(verifier(), other as never), "malformed");
});

test("keys are loaded again when one is unknown, but seldom, and are kept while the issuer is away", async (t) => {
  let [loads, up, now] = [0, false, kept.now as number];
  const server = createServer((_, answer) => {
    loads++;
    answer.writeHead(up ? 200 : 503).end(JSON.stringify(kept.keys));
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/permits/acme`;
  const checks = new Verifier(url, kept.audience, { clock: () => now });
  const tries = async (permit: string): Promise<Set<string>> =>
    new Set(await Promise.all(Array.from({ length: 20 }, () => reason(checks, permit))));
  const other = kept.attempts.find((attempt: { name: string }) => attempt.name === "by another key").permit;

  assert.deepEqual(await tries(good.permit), new Set(["unavailable"]));
  [up, now] = [true, now + 11];
  assert.deepEqual(await tries(good.permit), new Set(["issuer"]));
  now += 11;
  assert.deepEqual(await tries(other), new Set(["untrusted"]));
  assert.equal(loads, 3);
  [up, now] = [false, now + 3600];
  assert.deepEqual(await tries(good.permit), new Set(["issuer"]));
});

test("a memory that fails lets nothing run", async () => {
  const broken = verifier({ used: () => Promise.reject(new Error("gone")) });
  assert.equal(await reason(broken, good.permit), "unavailable");
  assert.equal(await reason(verifier({ used: () => undefined as never }), good.permit), "used");
});

test("an issuer that is not there lets nothing run", async () => {
  const checks = new Verifier("http://127.0.0.1:1/permits/default", kept.audience, { clock: () => kept.now });
  assert.equal(await reason(checks, good.permit), "unavailable");
});

test("configurations that check nothing are refused", () => {
  for (const [issuer, audience] of [["http://assent.example.com", "a"], ["acme", "a"], ["https://assent.example.com", ""]]) {
    assert.throws(() => new Verifier(issuer!, audience!), CallError);
  }
});

test("a permit of a real server", async (t) => {
  const desk = await Desk.start(t);
  const client = new Client(desk.url, desk.runtime);
  const taking = client.take("desk", tool("ship", { amount: 20000 }));
  await desk.vote("approve");
  const taken = await taking;
  assert(taken.permit);
  const checks = new Verifier(`${desk.url}/permits/default`, "broker");
  const got = await checks.verify(taken.permit, "tool ship", taken.args);
  assert.equal(got.request, taken.request?.id);
  assert.equal(await reason(checks, taken.permit, "tool ship", taken.args), "used");
});
