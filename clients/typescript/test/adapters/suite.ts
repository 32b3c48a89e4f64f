/** The cases that every adapter passes, with the framework itself, a scripted model of it, and a real server. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type TestContext, after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "assent";
import { BIG, Desk, TOP, runsExample } from "../desk.js";

export const SESSION = "s-1";
export const TOOLS = ["quote", "trade", "hurry", "drop_table"] as const;
export const QUICK = { attempts: 2, pause: 0.01 };

/** A call of the scripted model. */
export interface Made {
  readonly tool: string;
  readonly args: string;
  readonly id?: string;
}

export const TRADE: Made = { tool: "trade", args: JSON.stringify(BIG) };

/** What became of the calls of one turn. */
export interface Turn {
  readonly told: Record<string, string>; // what the model was told, by the call's id
  readonly ran: [tool: string, args: object][];
  readonly waits?: unknown; // where the turn is not over: what it goes on with
}

/** One framework with tools that are behind assent; each turn is one of another process. */
export interface Framework {
  readonly product: string; // with its version
  readonly example: string;
  readonly hearsOfEdits?: boolean; // whether the line about an edit is in a tool's result; true by default
  readonly module: string; // the URL of the module that exports this as `framework`
  readonly cells: Readonly<Record<number, string>>; // of its row, where it says more than yes
  /** One turn; with `wait` it pauses when people have had so many seconds. */
  turn(client: Client, calls: readonly Made[], wait?: number): Promise<Turn>;
  /** Goes on with a turn after people have answered. */
  resume(client: Client, waits: unknown): Promise<Turn>;
  /** Goes on with a turn, with all in it saying that this amount was approved. */
  forged(client: Client, waits: unknown, amount: number): Promise<Turn>;
}

/** The version of an installed package. */
export function versionOf(name: string): string {
  const path = createRequire(import.meta.url).resolve(name);
  const folder = path.slice(0, path.lastIndexOf(name) + name.length);
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

/** The client of a server, which does something before each exchange of a name. */
export function clientOf(desk: Desk, before: Partial<Record<string, () => Promise<void>>> = {}): Client {
  return new Client(desk.url, desk.runtime, {
    ...QUICK,
    fetch: async (url, init) => {
      const name = String(url).split("?")[0]!.split("/").at(-1)!;
      await before[{ requests: "open", consume: "consume" }[name] ?? "wait"]?.();
      return fetch(url, init);
    },
  });
}

export async function total(desk: Desk): Promise<number> {
  return (await desk.api("GET", "/v1/requests", desk.mara)).total;
}

export function refused(turn: Turn, begins: string): void {
  assert.deepEqual(turn.ran, []);
  assert(turn.told.call_1?.startsWith(begins), JSON.stringify(turn.told));
}

/** A case of the table; several tests may hold one. */
export type Held = (number: number, name: string, act: (t: TestContext, desk: Desk) => Promise<void>) => void;

/** Holds a framework to the cases, and its row to what came out. What it gives holds it to more of them. */
export function cases(framework: Framework): Held {
  const came = new Map<number, boolean>();
  const held: Held = (number, name, act) => {
    test(`${number} ${name}`, async (t) => {
      const before = came.get(number) ?? true;
      came.set(number, false);
      await act(t, await Desk.start(t));
      came.set(number, before);
    });
  };
  answers(framework, held);
  changes(framework, held);
  failures(framework, held);
  pauses(framework, held);
  test("one turn of the example with three answers", (t) => runsExample(t, framework.example));
  after(() => keep(framework, came));
  return held;
}

function keep({ product, cells }: Framework, came: Map<number, boolean>): void {
  if (came.size !== 16) return; // only some cases were run
  const page = join(TOP, "docs", "reference", "adapters.md");
  const told = [...came].sort(([a], [b]) => a - b).map(([number, passed]) => (passed ? (cells[number] ?? "yes") : "**no**"));
  const row = `| ${[product, ...told].join(" | ")} |\n`;
  const text = readFileSync(page, "utf8");
  const found = text.split(/(?<=\n)/).find((line) => line.startsWith(`| ${product.slice(0, product.lastIndexOf(" ") + 1)}`));
  if (!process.env.ASSENT_UPDATE) return assert.equal(found, row, `${page} has another row than the tests: ASSENT_UPDATE=1 writes it`);
  writeFileSync(page, found ? text.replace(found, row) : text.replace("\n<!-- end of table -->", `${row}\n<!-- end of table -->`));
}

function answers(framework: Framework, held: Held): void {
  const now = (desk: Desk, ...calls: Made[]): Promise<Turn> => framework.turn(clientOf(desk), calls);

  held(1, "allowed", async (_, desk) => {
    const got = await now(desk, { tool: "quote", args: '{"symbol": "ACME"}' });
    assert.deepEqual(got, { ran: [["quote", { symbol: "ACME" }]], told: { call_1: "quote ran" } });
    assert.equal(await total(desk), 0);
  });

  held(2, "granted", async (_, desk) => {
    const waits = now(desk, TRADE);
    await desk.vote("approve", { grant: { max_uses: 3 } });
    assert.equal((await waits).ran.length, 1);
    assert.deepEqual((await now(desk, { ...TRADE, id: "call_2" })).ran, [["trade", BIG]]);
    assert.equal(await total(desk), 1);
  });

  held(3, "denied by policy", async (_, desk) => {
    refused(await now(desk, { tool: "drop_table", args: "{}" }), "Not run. Policy denies this call: Dropping tables is not delegated");
  });

  held(4, "denied by a person", async (_, desk) => {
    const waits = now(desk, TRADE);
    await desk.vote("deny", { reason: "not from this branch" });
    refused(await waits, "Not run. mara@example.com denied this call: not from this branch. Do not try it again.");
  });

  held(5, "answered instead", async (_, desk) => {
    const waits = now(desk, TRADE);
    await desk.vote("respond", { response: "Use the copy." });
    refused(await waits, "Not run. A person answered instead: Use the copy.");
  });

  held(8, "expired", async (_, desk) => {
    refused(await now(desk, { tool: "hurry", args: "{}" }), "Not run. Nobody decided about this call in time (until ");
  });

  held(9, "taken back", async (_, desk) => {
    const waits = now(desk, TRADE);
    const { id } = (await desk.waiting())[0]!;
    await desk.api("POST", `/v1/requests/${id}/cancel`, desk.runtime, { reason: "the run was stopped" });
    refused(await waits, "Not run. The request was taken back: the run was stopped.");
  });

  held(10, "frozen while pending", async (_, desk) => {
    const waits = now(desk, TRADE);
    const request = (await desk.waiting())[0]!;
    await desk.freeze();
    await desk.vote("approve", {}, request);
    refused(await waits, "Not run. The agent is frozen by its operators. Do not try it again.");
  });
}

function changes(framework: Framework, held: Held): void {
  const now = (desk: Desk, ...calls: Made[]): Promise<Turn> => framework.turn(clientOf(desk), calls);

  held(6, "edited", async (_, desk) => {
    const waits = now(desk, TRADE);
    await desk.edit('{"note": {"z": 1, "a": 2.50}, "amount": 15000}');
    const { ran, told } = await waits;
    assert.equal(JSON.stringify(ran), '[["trade",{"note":{"z":1,"a":2.5},"amount":15000}]]');
    assert.match(told.call_1!, /trade ran$/);
    const note = 'A person changed this call before it ran. It ran with: {"note": {"z": 1, "a": 2.50}, "amount": 15000}\n';
    assert.equal(told.call_1!.split(note).length, framework.hearsOfEdits === false ? 1 : 2, told.call_1);
  });

  held(6, "an edit to a number that no double holds", async (_, desk) => {
    const waits = now(desk, TRADE);
    await desk.edit('{"amount": 9007199254740993}');
    const { ran, told } = await waits;
    assert.deepEqual(ran, []);
    assert.match(told.call_1!, /^Not run\. .*no number of JavaScript/);
  });

  held(7, "an edit that the rules deny", async (_, desk) => {
    const waits = now(desk, TRADE);
    const request = (await desk.waiting())[0]!;
    await assert.rejects(desk.edit('{"amount": 1, "Amount": 2}', request), /edit_denied/);
    await desk.vote("deny", { reason: "no" }, request);
    refused(await waits, "Not run. mara@example.com denied this call: no. Do not try it again.");
  });

  for (const args of ['{"amount": NaN}', '{"amount": 9007199254740993}', '{"amount": 20000, "note": "\\ud800"}']) {
    held(16, `arguments that are presented to nobody: ${args}`, async (_, desk) => {
      assert.deepEqual((await now(desk, { tool: "trade", args })).ran, []);
      assert.equal(await total(desk), 0);
    });
  }
}

function failures(framework: Framework, held: Held): void {
  const now = (desk: Desk, ...calls: Made[]): Promise<Turn> => framework.turn(clientOf(desk), calls);

  for (const step of ["open", "wait", "consume"]) {
    held(11, `the server is gone at ${step}`, async (_, desk) => {
      let voted = Promise.resolve(); // the person has their answer before the server is gone
      const waits = framework.turn(clientOf(desk, { [step]: () => voted.then(() => desk.kill()) }), [TRADE]);
      if (step === "consume") await (voted = desk.vote("approve"));
      refused(await waits, "Not run. It could not be established that this call may run: ");
    });
  }

  held(12, "killed before the permit is used", async (_, desk) => {
    await killed(framework, desk, "before");
    assert.deepEqual((await now(desk, TRADE)).ran, [["trade", BIG]]);
    assert.equal(await total(desk), 1);
  });

  held(12, "killed before the run", async (_, desk) => {
    await killed(framework, desk, "after");
    refused(await now(desk, TRADE), "Not run again. The approval has been used already.");
  });

  held(13, "the same call twice", async (_, desk) => {
    const waits = now(desk, TRADE);
    await desk.vote("approve");
    assert.equal((await waits).ran.length, 1);
    refused(await now(desk, TRADE), "Not run again. The approval has been used already.");
    const other = await now(desk, { tool: "trade", args: '{"amount": 30000}' });
    refused(other, "Not run. ");
    assert.match(other.told.call_1!, /key_reuse/);
  });

  held(14, "two calls of one turn", async (_, desk) => {
    const waits = now(desk, TRADE, { tool: "trade", args: '{"amount": 30000}', id: "call_2" });
    for (const request of await desk.waiting(2)) {
      const first = JSON.parse(request.revisions[0]!.call.args).amount === BIG.amount;
      await desk.vote(first ? "approve" : "deny", first ? {} : { reason: "too much" }, request);
    }
    const { ran, told } = await waits;
    assert.deepEqual(ran, [["trade", BIG]]);
    assert.equal(told.call_1, "trade ran");
    assert.match(told.call_2!, /^Not run\. mara@example\.com denied this call: too much\./);
  });
}

/** The turn in a process of its own, which has been killed when people have approved. */
async function killed(framework: Framework, desk: Desk, when: string): Promise<void> {
  const given = { ASSENT_DIES: when, ASSENT_FRAMEWORK: framework.module, ASSENT_SERVER: desk.url, ASSENT_TOKEN: desk.runtime };
  const path = fileURLToPath(new URL("child.js", import.meta.url));
  const child = spawn(process.execPath, [path], { env: { ...process.env, ...given }, stdio: "inherit", detached: true });
  const exits = once(child, "exit");
  await desk.vote("approve");
  assert.equal((await exits)[1], "SIGKILL");
  try {
    process.kill(-child.pid!, "SIGKILL"); // what the framework started, and left behind
  } catch {} // nothing
}

function pauses(framework: Framework, held: Held): void {
  held(15, "forged approvals", async (_, desk) => {
    const { waits, ran } = await framework.turn(clientOf(desk), [TRADE], 0.1);
    assert(waits && ran.length === 0);
    for (const amount of [BIG.amount, 99999]) {
      const got = await framework.forged(clientOf(desk), waits, amount);
      assert.deepEqual(got.ran, []);
      assert.match(got.told.call_1 ?? "Not run. It is still asked.", /^Not run\. /);
    }
    assert.equal((await desk.waiting()).length, 1);
  });

  held(15, "people answer after the process has ended", async (_, desk) => {
    const first = (await framework.turn(clientOf(desk), [TRADE], 0.1)).waits;
    const early = await framework.resume(clientOf(desk), first);
    assert(early.waits && early.ran.length === 0);
    await desk.vote("approve");
    assert.deepEqual(await framework.resume(clientOf(desk), early.waits), { ran: [["trade", BIG]], told: { call_1: "trade ran" } });
    const { waits } = await framework.turn(clientOf(desk), [{ tool: "trade", args: '{"amount": 40000}', id: "call_2" }], 0.1);
    await desk.vote("deny", { reason: "no" });
    const denied = await framework.resume(clientOf(desk), waits);
    assert.deepEqual(denied, { ran: [], told: { call_2: "Not run. mara@example.com denied this call: no. Do not try it again." } });
  });

  test("a pause for a call that is allowed is none", async (t) => {
    const got = await framework.turn(clientOf(await Desk.start(t)), [{ tool: "quote", args: "{}" }], 0.1);
    assert.deepEqual(got, { ran: [["quote", {}]], told: { call_1: "quote ran" } });
  });
}
