/** A real assent server for tests: the built binary, its own store, and people who answer through the API. */

import assert from "node:assert/strict";
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { copyFileSync, cpSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { promisify } from "node:util";

export const BIG = { amount: 20000, currency: "USD" };
export const TOP = process.env.ASSENT_ROOT ?? join(process.cwd(), "..", ".."); // of the repository
export const FILES = join(TOP, "clients", "python", "tests", "desk"); // the agent that all clients are tested with

const binary = (): string => process.env.ASSENT_BIN ?? "assent";

export interface Listed {
  readonly id: string;
  readonly version: number;
  readonly revisions: { binding: string; call: { args: string } }[];
}

/** One server, which may be killed and started again at the same address. */
export class Desk {
  readonly folder = mkdtempSync(join(tmpdir(), "assent-ts-"));
  readonly store = join(this.folder, "assent.db");
  readonly url: string;
  readonly secret = "whsec_" + Buffer.from("0123456789abcdef0123456789abcdef").toString("base64");
  runtime = "";
  mara = "";
  #process: ChildProcess | undefined;

  private constructor(readonly port: number) {
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(t: TestContext, webhook?: string): Promise<Desk> {
    const desk = new Desk(await freePort());
    t.after(() => desk.remove());
    desk.#write(webhook);
    await desk.start();
    desk.runtime = desk.#token("runtime", "decide,request,read");
    desk.mara = desk.#token("mara", "read,vote", "mara@example.com");
    return desk;
  }

  #write(webhook?: string): void {
    cpSync(FILES, join(this.folder, "desk"), { recursive: true });
    writeFileSync(join(this.folder, "hook.secret"), this.secret, { mode: 0o600 });
    const hook = { name: "test", url: webhook, secret_file: join(this.folder, "hook.secret"), loopback: true };
    const config = {
      agents: join(this.folder, "desk"),
      policies: join(this.folder, "desk", "policies"),
      people: join(this.folder, "desk", "people.yaml"),
      listen: `127.0.0.1:${this.port}`,
      store: this.store,
      permits: [{ audience: "broker", targets: ["tool ship"] }],
      ...(webhook ? { notify: { webhooks: [hook] } } : {}),
    };
    writeFileSync(join(this.folder, "serve.yaml"), JSON.stringify(config));
  }

  async start(): Promise<void> {
    const log = openSync(join(this.folder, "serve.log"), "a");
    const child = spawn(binary(), ["serve", "--config", join(this.folder, "serve.yaml")], { stdio: ["ignore", log, log] });
    this.#process = child;
    await until(async () => {
      if (child.exitCode !== null) throw new Error(readFileSync(join(this.folder, "serve.log"), "utf8"));
      const answer = await fetch(`${this.url}/readyz`).catch(() => undefined);
      return answer?.status === 200;
    }, "the server does not start");
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #token(name: string, scopes: string, person?: string): string {
    const args = ["token", "create", "--store", this.store, "--name", name, "--scopes", scopes, "--agents", "*", "--json"];
    return JSON.parse(execFileSync(binary(), [...args, ...(person ? ["--person", person] : [])], { encoding: "utf8" })).secret;
  }

  async api(method: string, path: string, token: string, body?: unknown, headers: Record<string, string> = {}): Promise<any> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return JSON.parse(text);
  }

  /** Requests that people are asked about, once there are so many; whole. */
  async waiting(count = 1): Promise<Listed[]> {
    let found: Listed[] = [];
    await until(async () => {
      found = (await this.api("GET", "/v1/requests?state=pending", this.mara)).requests;
      return found.length >= count;
    }, `no ${count} requests wait`);
    return Promise.all(found.map((each) => this.api("GET", `/v1/requests/${each.id}`, this.mara)));
  }

  async vote(verdict: string, fields: object = {}, request?: Listed): Promise<void> {
    await this.#answer("votes", { verdict, ...fields }, request);
  }

  async edit(args: string, request?: Listed): Promise<void> {
    await this.#answer("edits", { arguments: args, reason: "less" }, request);
  }

  async #answer(what: string, fields: object, given?: Listed): Promise<void> {
    const request = given ?? (await this.waiting())[0]!;
    const body = { ...fields, binding: request.revisions.at(-1)!.binding, shown_fully: true };
    await this.api("POST", `/v1/requests/${request.id}/${what}`, this.mara, body, { "If-Match": `"${request.version}"` });
  }

  async freeze(): Promise<void> {
    await this.api("POST", "/v1/freezes", this.mara, { agent: "desk", reason: "stop" });
  }

  /** Changes the agent's file, and waits until the change is in force. */
  async change(old: string, text: string): Promise<void> {
    const path = join(this.folder, "desk", "agent.agf.yaml");
    const plan = async (): Promise<string> => (await this.api("GET", "/v1/agents", this.runtime)).agents[0].plan;
    const before = await plan();
    writeFileSync(`${path}.new`, readFileSync(path, "utf8").replace(old, text));
    renameSync(`${path}.new`, path);
    await until(async () => (await plan()) !== before, "the change is not in force");
  }
}

export async function until(holds: () => Promise<boolean> | boolean, otherwise: string, seconds = 60): Promise<void> {
  const last = Date.now() + seconds * 1000;
  while (!(await holds())) {
    if (Date.now() > last) throw new Error(otherwise);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Runs an example beside the installed package, with a person who edits its one trade. */
export async function runsExample(t: TestContext, name: string): Promise<void> {
  const desk = await Desk.start(t);
  const path = join(process.cwd(), `example-${process.pid}-${name}.js`);
  copyFileSync(new URL(`../examples/${name}.js`, import.meta.url), path);
  t.after(() => rmSync(path));
  const env = { ...process.env, ASSENT_SERVER: desk.url, ASSENT_TOKEN: desk.runtime };
  const runs = promisify(execFile)("node", [path], { env });
  await desk.edit('{"symbol": "ACME", "amount": 15000}');
  const note = 'A person changed this call before it ran. It ran with: {"symbol": "ACME", "amount": 15000}\n';
  const printed = (await runs).stdout;
  assert.equal(printed.includes(note), !["desk", "desk-claude-agent-sdk"].includes(name));
  assert.deepEqual(printed.replace(note, "").trim().split("\n"), [
    "call_1 quote: ACME is at 150.25",
    "call_2 trade: bought 15000 of ACME",
    "call_3 drop_table: Not run. Policy denies this call: Dropping tables is not delegated to agents. Do not try it again.",
  ]);
}
