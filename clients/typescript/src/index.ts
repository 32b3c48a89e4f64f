/** Client of an assent server: decides an agent's calls, has people asked, and runs exactly what they approved. */

export { type Arguments, type Call, type ToolFields, keyOf, tool } from "./call.js";
export { Client } from "./client.js";
export {
  AssentError, CallError, NotRun, ProblemError, StillPending, UnreachableError, UnreadableError, told,
} from "./errors.js";
export { type Guarding, guard } from "./guard.js";
export type { Context, Decision, Opened, Problem, Request } from "./models.js";
export { type Event, FROM_NOW, FROM_START } from "./sse.js";
export { type Arrived, type Message, Receiver, Replayed, WebhookError } from "./webhook.js";
export type { Asking, Options, Taken } from "./wire.js";
