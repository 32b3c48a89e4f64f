/** Errors of this package, and the sentences that tell a model about a call that failed. */

import type { Opened, Problem, Request } from "./models.js";

/** Every error of this package. */
export class AssentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The call, or what was given beside it, can't be presented as it is. */
export class CallError extends AssentError {}

/** The server gave no answer. */
export class UnreachableError extends AssentError {}

/** The server's answer makes no sense, so nothing may run. */
export class UnreadableError extends AssentError {}

/** An error that the server gave; `problem` says what to do next. */
export class ProblemError extends AssentError {
  constructor(readonly problem: Problem) {
    super(`${problem.title} (${problem.code})` + (problem.detail ? `: ${problem.detail}` : ""));
  }

  get code(): string {
    return this.problem.code;
  }
}

/** Nobody has decided within the caller's time. The request stays open, and the same key goes on with it. */
export class StillPending extends AssentError {
  constructor(readonly request: Request) {
    super("Not run. People are still asked; nobody has decided yet.");
  }
}

/** A call may not run. It is an answer, not a failure: tell the agent the text as it is, and don't try again. */
export class NotRun extends AssentError {
  constructor(
    readonly opened: Opened,
    readonly request?: Request,
  ) {
    super(request ? ended(request) : denied(opened));
  }
}

const CONSUMED = "Not run again. The approval has been used already.";
const FROZEN = "Not run. The agent is frozen by its operators. Do not try it again.";

const RAN = new WeakMap<object, boolean>();

/** Records of an error whether the guarded function had started. The last record counts. */
export function mark(error: unknown, ran: boolean): void {
  if (isReference(error)) RAN.set(error, ran);
}

const isReference = (value: unknown): value is object => value !== null && ["object", "function"].includes(typeof value);

/**
 * The sentence for the model about a call that failed. It says "Not run" only if the function did not start. An error of
 * other packages is known to come before or after the start if guard, take or do threw it.
 */
export function told(error: unknown): string {
  const ran = isReference(error) ? RAN.get(error) : undefined;
  const name = error instanceof Error ? error.name : typeof error;
  if (ran) return `It ran and failed (${name}). Find out what it has done before you try it again.`;
  if (ran === undefined && !(error instanceof AssentError)) {
    return `It failed (${name}), and it may have run. Find out before you try it again.`;
  }
  return notRun(error);
}

/** The sentence for the model about a call whose function did not start. */
export function notRun(error: unknown): string {
  if (error instanceof NotRun || error instanceof StillPending) return error.message;
  if (error instanceof ProblemError && error.code === "consumed") return CONSUMED;
  if (error instanceof ProblemError && error.code === "frozen") return FROZEN;

  const unknown = "Not run. It could not be established that this call may run";
  if (error instanceof AssentError) return `${unknown}: ${error.message}`;
  // A program's own error may hold what no model should read.
  return `${unknown} (${error instanceof Error ? error.name : typeof error}).`;
}

function ended(r: Request): string {
  switch (r.state) {
    case "denied":
      if (r.response) return `Not run. A person answered instead: ${r.response}`;
      return because(`Not run. ${who(r)} denied this call`, r.reason) + " Do not try it again.";
    case "cancelled":
      return because("Not run. The request was taken back", r.reason);
    case "consumed":
      return CONSUMED;
    case "expired":
      return expired(r);
    default:
      return `Not run. The request is ${r.state}.`;
  }
}

function expired(r: Request): string {
  switch (r.cause) {
    case "deadline":
      return `Not run. Nobody decided about this call in time (until ${minute(r.deadline)}). That is no denial.`;
    case "late_deny":
      return because(`Not run. It was approved, and ${who(r)} denied it before it ran`, r.reason) + " Do not try it again.";
    case "permit_age":
      return "Not run. It was approved, and the approval was not used in time. That is no denial.";
    case "plan_changed":
      return "Not run. It was approved, and the rules changed before it ran. It may be asked again.";
    case "history":
      return "Not run. It was approved, and calls that ran since then used up a limit. It may be asked again.";
    case "superseded":
      return "Not run. A newer request stands in its place.";
    case "requester":
      return because("Not run. The request was taken back", r.reason);
    default:
      return `Not run. The request expired (${r.cause ?? ""}).`;
  }
}

function denied(o: Opened): string {
  if (o.denied === "frozen") return FROZEN;
  const what = o.denied === "cooling_down" ? "A person has just denied this same call" : "Policy denies this call";
  return because(`Not run. ${what}`, o.decision.message) + " Do not try it again.";
}

const who = (r: Request): string => r.by || "Somebody";

const minute = (time: string): string => new Date(time).toISOString().slice(0, 16).replace("T", " ") + " UTC";

const because = (text: string, reason?: string): string => text + (reason ? `: ${reason.replace(/\.+$/, "")}.` : ".");
