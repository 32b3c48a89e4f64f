/** What goes over the wire: the fields of requests, and what answers mean. No I/O. */

import { CallError, UnreadableError } from "./errors.js";
import type { Context, Decision, Opened, Problem, Request } from "./models.js";

export const MAX_ANSWER = 128 << 20; // bytes: a request with several edits of the largest arguments
export const MAX_WAIT = 60; // seconds that the server lets one exchange wait

/** How often and how long to try. Times are in seconds. */
export interface Options {
  readonly attempts: number;
  readonly pause: number; // what waits between attempts grow from
  readonly maxPause: number; // where they stop; Retry-After is believed up to it
  readonly timeout: number; // of one attempt, without the time that the server was asked to wait
  readonly userAgent: string;
  readonly fetch: typeof globalThis.fetch;
}

export const DEFAULTS: Options = {
  attempts: 5,
  pause: 0.2,
  maxPause: 10,
  timeout: 30,
  userAgent: "assent-typescript",
  fetch: (...args) => globalThis.fetch(...args),
};

/** What goes along with a call. Times are in seconds. */
export interface Asking {
  readonly key?: string; // of the model call: keyOf(session, toolCallId); else one for this call alone
  readonly context?: Context; // what the agent says: a label with a text, a link or a diff
  readonly within?: number; // how long people have, where the rules give more
  readonly ask?: string; // why people are asked also where the rules allow the call
  readonly replaces?: string; // an earlier request that this one stands in for
  readonly wait?: number; // for people, then StillPending; else as long as they have
  readonly cancel?: string; // where waiting ends early, take the request back, for this reason
  readonly accept?: (args: Record<string, unknown>) => unknown; // throws where arguments can't be run, before they are taken
  readonly signal?: AbortSignal; // ends the wait
  readonly opened?: Opened; // what open answered for this call: goes on with its request, however old the key
}

/** The members that stand behind the call in a body. */
export function fieldsOf(asking: Asking): string {
  const { replaces, context, ask } = asking;
  const within = asking.within === undefined ? undefined : `${asking.within.toFixed(3)}s`;
  const given = Object.entries({ replaces, context, within, ask }).filter(([, value]) => value !== undefined && value !== "");
  return given.map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`).join("");
}

/** The right to run one call now, once: with exactly these arguments, which an approver may have edited. */
export interface Taken {
  readonly text: string; // the arguments, exactly
  readonly args: Record<string, unknown>;
  readonly opened: Opened;
  readonly request?: Request; // none where nobody was asked
  readonly edited: boolean;
  readonly note?: string; // one line for the model if a person changed the call, with the arguments that run
  readonly permit?: string; // what to hand to a tool that checks permits
}

/** The server's URL without a slash at its end, when the client can use both. */
export function baseOf(url: string, token: string): string {
  const u = URL.canParse(url) ? new URL(url) : undefined;
  if (!u || !/^https?:$/.test(u.protocol) || u.username || u.password || u.search || u.hash) {
    throw new CallError("the server's URL: expected http(s)://host[:port][/path]");
  }
  if (!/^[!-~]*$/.test(token)) {
    throw new CallError("the token holds what no token has: expected assent_ and 43 characters");
  }
  return u.href.replace(/\/+$/, "");
}

export function pathOf(...segments: string[]): string {
  for (const each of segments) {
    if (["", ".", ".."].includes(each) || !each.isWellFormed()) {
      throw new CallError(`${JSON.stringify(each)} is no name of anything on the server: expected an id`);
    }
  }
  return segments.map(encodeURIComponent).join("/");
}

/** Whether the same may go well a little later. */
export const mends = (p: Problem): boolean =>
  [429, 502, 504].includes(p.status) || (p.status === 503 && p.code !== "agent_unusable");

/** Seconds: what the server asked for, or a random part of a growing pause. */
export function backoff(options: Options, attempt: number, after?: number): number {
  if (after && after > 0) return Math.min(after, options.maxPause);
  return Math.random() * Math.min(options.maxPause, options.pause * 2 ** Math.min(Math.max(attempt, 1) - 1, 30));
}

/** Reads an error. One that did not come from assent (a proxy's) gets a code by its status. */
export function problemOf(status: number, headers: Headers, body: string): Problem {
  if (headers.get("content-type")?.startsWith("application/problem+json")) {
    const told = parsed(body);
    if (isObject(told) && [told.title, told.code, told.next_action].every(isText)) {
      return { ...(told as unknown as Problem), status };
    }
  }
  const retry = status >= 502 || status === 429;
  const after = headers.get("retry-after") ?? "";
  return {
    type: "about:blank",
    title: `the server answered ${status}`,
    status,
    code: retry ? "unavailable" : "internal",
    next_action: retry ? "retry" : "none",
    detail: "the answer is not from assent: look at the URL and at proxies on the way",
    ...(/^[0-9]{1,6}$/.test(after) ? { retry_after: Number(after) } : {}),
  };
}

export function readDecision(body: string): Decision {
  return decisionIn(parsed(body), "Decision");
}

export function readOpened(body: string): Opened {
  const o = parsed(body);
  must(isObject(o) && isText(o.outcome), "Opened.outcome");
  decisionIn(o.decision, "Opened.decision");
  if (o.request !== undefined) requestIn(o.request, "Opened.request");
  const opened = o as unknown as Opened;
  if ((opened.outcome === "pending" && !opened.request) || (opened.outcome === "granted" && !isObject(o.grant))) {
    throw new UnreadableError(`an answer that makes no sense: "${opened.outcome}" without what belongs to it`);
  }
  return opened;
}

export function readRequest(id: string, body: string): Request {
  const got = requestIn(parsed(body), "Request");
  if (got.id !== id) throw new UnreadableError(`the server was asked for ${id}, and answered with ${got.id}`);
  return got;
}

function decisionIn(d: unknown, place: string): Decision {
  must(isObject(d) && isText(d.outcome) && ["allow", "ask", "deny"].includes(d.outcome), `${place}.outcome`);
  must(isText(d.message ?? ""), `${place}.message`);
  must(Array.isArray(d.reasons ?? []), `${place}.reasons`);
  return d as unknown as Decision;
}

function requestIn(r: unknown, place: string): Request {
  must(isObject(r), place);
  for (const name of ["id", "state", "deadline"]) must(isText(r[name]), `${place}.${name}`);
  for (const name of ["by", "reason", "response", "cause"]) must(isText(r[name] ?? ""), `${place}.${name}`);
  must(Number.isSafeInteger(r.version), `${place}.version`);
  must(!Number.isNaN(Date.parse(r.deadline as string)), `${place}.deadline`);
  must(Array.isArray(r.revisions) && r.revisions.length > 0, `${place}.revisions`);
  for (const each of r.revisions) {
    must(isObject(each) && isText(each.binding) && isObject(each.call) && isText(each.call.args), `${place}.revisions`);
  }
  return r as unknown as Request;
}

function must(holds: boolean, place: string): asserts holds {
  if (!holds) throw new UnreadableError(`the answer can't be read: ${place}`);
}

const isText = (value: unknown): value is string => typeof value === "string";
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value of a JSON text; undefined where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
