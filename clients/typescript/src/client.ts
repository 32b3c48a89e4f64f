/** The client of one server. */

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Call, bodyOf, valuesOf } from "./call.js";
import { AssentError, CallError, NotRun, ProblemError, StillPending, UnreachableError, UnreadableError, mark } from "./errors.js";
import type { Decision, Opened, Request } from "./models.js";
import { type Event, FROM_NOW, Reader, SILENCE } from "./sse.js";
import * as wire from "./wire.js";
import type { Asking, Options, Taken } from "./wire.js";

/** One exchange with the server. */
interface Exchange {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly seconds?: number; // that an attempt may take
  readonly signal?: AbortSignal | undefined;
  readonly attempts?: number;
}

/** One call on its way. */
interface Way {
  readonly agent: string;
  readonly call: Call;
  readonly asking: Asking;
  readonly until: number; // when the caller has no more time, in milliseconds
  waits?: string | undefined; // the request that people are asked about, while they are
}

/** Speaks to one server with one token. */
export class Client {
  readonly options: Options;
  readonly #base: string;
  readonly #token: string;

  constructor(url: string, token: string, options: Partial<Options> = {}) {
    this.#base = wire.baseOf(url, token);
    this.#token = token;
    this.options = { ...wire.DEFAULTS, ...options };
  }

  /** Decides a call without asking anybody. */
  async decide(agent: string, call: Call): Promise<Decision> {
    const path = wire.pathOf("v1", "agents", agent, "decide");
    return wire.readDecision(await this.#exchange({ method: "POST", path, body: bodyOf(call).body }));
  }

  /** Presents a call that wants to run. */
  async open(agent: string, call: Call, asking: Asking = {}): Promise<Opened> {
    const answer = await this.#exchange({
      method: "POST",
      path: wire.pathOf("v1", "agents", agent, "requests"),
      body: `{"call":${bodyOf(call).body}${wire.fieldsOf(asking)}}`,
      headers: { "Idempotency-Key": asking.key ?? randomBytes(16).toString("hex") },
      signal: asking.signal,
    });
    return wire.readOpened(answer);
  }

  /** Reads a request; with a version as soon as it is another one, or when wait (seconds, 60 at most) is over. */
  async request(id: string, version?: number, wait = 0, signal?: AbortSignal): Promise<Request> {
    const seconds = Math.min(Math.max(wait, 0), wire.MAX_WAIT);
    const query = version === undefined ? "" : `?wait=${seconds.toFixed(3)}s&version=${version}`;
    const path = wire.pathOf("v1", "requests", id) + query;
    const answer = await this.#exchange({ method: "GET", path, seconds: this.options.timeout + seconds, signal });
    return wire.readRequest(id, answer);
  }

  /** Takes a request back. */
  async cancel(id: string, reason = ""): Promise<Request> {
    const path = wire.pathOf("v1", "requests", id, "cancel");
    const body = JSON.stringify(reason ? { reason } : {});
    return wire.readRequest(id, await this.#exchange({ method: "POST", path, body, attempts: 1 }));
  }

  /**
   * Presents a call, waits for people, and takes its one run. Run it now, with exactly what is returned. Throws NotRun
   * where it may not run, and another error where nobody can say. Where the wait is cut short (StillPending, an error,
   * `signal`), `cancel` takes the request back.
   */
  async take(agent: string, call: Call, asking: Asking = {}): Promise<Taken> {
    const until = asking.wait === undefined ? Infinity : Date.now() + asking.wait * 1000;
    const now = { ...call, args: bodyOf(call).args }; // as it is now, whoever changes it later
    const way: Way = { agent, call: now, asking, until };
    try {
      for (;;) {
        const taken = await this.#once(way);
        if (taken) return taken; // else an equal call without a key had joined this one, and ran
      }
    } catch (error) {
      mark(error, false);
      if (asking.cancel && way.waits) await this.cancel(way.waits, asking.cancel).catch(ignored);
      throw error;
    }
  }

  /** take, and then run with the arguments to use; run is called at most once. */
  async do<T>(
    agent: string, call: Call, run: (args: Record<string, unknown>) => T | Promise<T>, asking: Asking = {},
  ): Promise<T> {
    const taken = await this.take(agent, call, asking);
    try {
      return await run(taken.args);
    } catch (error) {
      mark(error, true);
      throw error;
    }
  }

  /** What happens after an entry of the ledger, in order and without holes; connections are made again. */
  async *events(after: number = FROM_NOW, signal?: AbortSignal): AsyncGenerator<Event, void, undefined> {
    const reader = new Reader(after);
    for (let failures = 0; ; ) {
      const before = reader.after;
      let pause: number | undefined;
      try {
        yield* this.#connection(reader, signal);
      } catch (error) {
        const problem = error instanceof ProblemError ? error.problem : undefined;
        if (signal?.aborted || (problem ? !wire.mends(problem) : !(error instanceof UnreachableError))) throw error;
        pause = problem?.retry_after;
      }
      failures = reader.after === before ? failures + 1 : 1;
      await sleep(wire.backoff(this.options, failures, pause), signal);
    }
  }

  /** The events of one connection. A line that breaks is UnreachableError. */
  async *#connection(reader: Reader, outer?: AbortSignal): AsyncGenerator<Event, void, undefined> {
    const over = new AbortController();
    const signal = outer ? AbortSignal.any([outer, over.signal]) : over.signal;
    let silence = setTimeout(() => over.abort(), SILENCE * 1000);
    try {
      const response = await this.#send({ method: "GET", path: "v1/events", headers: reader.connect(), signal });
      if (response.status !== 200) {
        throw new ProblemError(wire.problemOf(response.status, response.headers, await textOf(response)));
      }
      for await (const chunk of response.body ?? []) {
        clearTimeout(silence);
        silence = setTimeout(() => over.abort(), SILENCE * 1000);
        yield* reader.feed(chunk);
      }
    } catch (error) {
      throw lost(error, "GET /v1/events");
    } finally {
      clearTimeout(silence);
      over.abort();
    }
  }

  /** The run of a call; undefined if an equal call without a key took the run that people approved for both. */
  async #once(way: Way): Promise<Taken | undefined> {
    const { key, opened } = way.asking;
    try {
      // Where the rules change between the answer and the run, it is asked about once more, not for ever.
      const taken = (await this.#round(way, key, false)) ?? (await this.#round(way, key && `${key}~2`, true));
      if (taken) return taken;
    } catch (error) {
      if (key === undefined && !opened && isConsumed(error)) return undefined;
      throw error;
    }
    throw new UnreadableError("the last round gave nothing"); // it gives or throws
  }

  async #round(way: Way, key: string | undefined, last: boolean): Promise<Taken | undefined> {
    const { key: _, opened: before, ...rest } = way.asking;
    const opened = before?.request && !last
      ? await this.#again(way, before, before.request.id)
      : await this.open(way.agent, way.call, key === undefined ? rest : { ...rest, key });
    if (opened.outcome === "allow" || opened.outcome === "granted") {
      const text = bodyOf(way.call).args;
      return { text, args: await accepted(way, text), opened, edited: false };
    }
    if (opened.outcome !== "pending" || !opened.request) throw new NotRun(opened);

    const decided = await this.#decided(way, opened.request);
    const changed = decided.cause === "plan_changed" || decided.cause === "history";
    if (decided.state === "expired" && changed && !last) return undefined;
    if (decided.state !== "approved") throw new NotRun(opened, decided);
    return this.#taken(way, opened, decided, last);
  }

  /** What was opened before, as it stands now. */
  async #again(way: Way, before: Opened, id: string): Promise<Opened> {
    const request = await this.request(id, undefined, 0, way.asking.signal);
    const asked = request.revisions[0]!.call;
    const names = ["kind", "tool", "server", "agent", "skill"] as const;
    const same = names.every((name) => (asked[name] ?? "") === (way.call[name] ?? ""));
    if (!same || asked.args !== bodyOf(way.call).args.trim() || request.agent.id !== way.agent) {
      throw new CallError(`${id} was opened for another call`);
    }
    return { ...before, request };
  }

  async #decided(way: Way, first: Request): Promise<Request> {
    let got = first;
    while (got.state === "pending") {
      way.waits = got.id;
      const left = (way.until - Date.now()) / 1000;
      if (left <= 0) throw new StillPending(got);
      got = await this.request(got.id, got.version, left, way.asking.signal);
    }
    way.waits = undefined;
    return got;
  }

  async #taken(way: Way, opened: Opened, decided: Request, last: boolean): Promise<Taken | undefined> {
    const revision = lastOf(decided);
    const text = revision.call.args;
    const args = await accepted(way, text); // before the run is taken: what can't be run isn't
    const edited = decided.revisions.length > 1;
    const what = edited ? `"binding":${JSON.stringify(revision.binding)}` : `"call":${bodyOf(way.call).body}`;
    const path = wire.pathOf("v1", "requests", decided.id, "consume");
    const body = `{${what},"key":"${randomBytes(16).toString("hex")}"}`;
    let request: Request;
    try {
      request = wire.readRequest(decided.id, await this.#exchange({ method: "POST", path, body, signal: way.asking.signal }));
    } catch (error) {
      if (error instanceof ProblemError && error.code === "stale" && !last) return undefined;
      throw error;
    }
    if (request.state !== "consumed" || lastOf(request).call.args !== text) {
      throw new UnreadableError("the server let another call be consumed than the one that was approved");
    }
    const permit = request.permit?.signed;
    const note = edited ? { note: `A person changed this call before it ran. It ran with: ${line(text)}` } : {};
    return { text, args, opened, request, edited, ...note, ...(permit === undefined ? {} : { permit }) };
  }

  /** Tries until there is an answer that counts, and returns its body. */
  async #exchange(x: Exchange): Promise<string> {
    const most = x.attempts ?? this.options.attempts;
    for (let attempt = 1; ; attempt++) {
      let pause: number | undefined;
      try {
        return await this.#attempt(x);
      } catch (error) {
        const problem = error instanceof ProblemError ? error.problem : undefined;
        const mends = problem ? wire.mends(problem) : error instanceof UnreachableError;
        if (!mends || attempt >= most || x.signal?.aborted) throw error;
        pause = problem?.retry_after;
      }
      await sleep(wire.backoff(this.options, attempt, pause), x.signal);
    }
  }

  async #attempt(x: Exchange): Promise<string> {
    const over = AbortSignal.timeout((x.seconds ?? this.options.timeout) * 1000);
    const signal = x.signal ? AbortSignal.any([x.signal, over]) : over;
    try {
      const response = await this.#send({ ...x, signal });
      const text = await textOf(response);
      if (response.ok) return text;
      throw new ProblemError(wire.problemOf(response.status, response.headers, text));
    } catch (error) {
      if (x.signal?.aborted) throw x.signal.reason;
      throw lost(error, `${x.method} /${x.path.split("?")[0]}`);
    }
  }

  #send(x: Exchange): Promise<Response> {
    const headers = {
      "User-Agent": this.options.userAgent,
      Authorization: `Bearer ${this.#token}`,
      ...(x.body === undefined ? {} : { "Content-Type": "application/json" }),
      ...x.headers,
    };
    return this.options.fetch(`${this.#base}/${x.path}`, {
      method: x.method,
      headers,
      redirect: "manual",
      ...(x.body === undefined ? {} : { body: x.body }),
      ...(x.signal ? { signal: x.signal } : {}),
    });
  }
}

async function accepted(way: Way, text: string): Promise<Record<string, unknown>> {
  await way.asking.accept?.(valuesOf(text)); // values of its own: what it makes of them doesn't run
  return valuesOf(text);
}

/** A JSON text on one line. */
const line = (text: string): string => (/[\n\r\u2028\u2029]/.test(text) ? JSON.stringify(JSON.parse(text)) : text);

function isConsumed(error: unknown): boolean {
  return error instanceof ProblemError ? error.code === "consumed" : error instanceof NotRun && error.request?.state === "consumed";
}

const lastOf = (r: Request): Request["revisions"][number] => r.revisions[r.revisions.length - 1]!;

/** An error of the line as UnreachableError; others as they are. */
function lost(error: unknown, what: string): unknown {
  if (error instanceof AssentError) return error;
  const { name, message, cause } = error as Error;
  const why = cause instanceof Error ? cause.message : message;
  return new UnreachableError(`${what}: ${name}: ${why}`, { cause: error });
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > wire.MAX_ANSWER) throw new UnreadableError(`the answer has more than ${wire.MAX_ANSWER} bytes`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new UnreadableError("the answer is no UTF-8");
  }
}

/** Waits; throws the reason of a signal that ends it. */
async function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  await delay(seconds * 1000, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
}

const ignored = (): void => {};

