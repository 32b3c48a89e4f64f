/** Tools of the Vercel AI SDK, behind assent. */

import { isDeepStrictEqual } from "node:util";
import { type ModelMessage, type ToolApprovalStatus, type ToolExecutionOptions, type ToolModelMessage, type ToolSet, asSchema } from "ai";
import { type Call, keyOf, tool } from "../call.js";
import type { Client } from "../client.js";
import { AssentError, CallError, NotRun, notRun } from "../errors.js";
import type { Opened, Request } from "../models.js";
import type { Taken } from "../wire.js";
import { type Seen, look } from "./look.js";
import { noted } from "./notes.js";

type Tool = ToolSet[string];
type Responses = Extract<ToolModelMessage["content"][number], { type: "tool-approval-response" }>;

/** A call of a model. */
interface Made {
  readonly toolName: string;
  readonly toolCallId: string;
  readonly input: unknown;
}

/** Why a tool did not run. The SDK tells the model what an error is as a text. */
export class Refused extends AssentError {
  override toString(): string {
    return this.message;
  }
}

export interface Waiting {
  readonly wait?: number; // seconds that a run waits for people; else as long as they have
}

/** Every tool that `tools` gives asks right before it runs. `session` is that of the conversation: ids of calls are its. */
export class Assent {
  readonly #gated = new WeakSet<object>();

  constructor(
    readonly client: Client,
    readonly agent: string,
    readonly session: string,
    readonly waiting: Waiting = {},
  ) {
    keyOf(session); // refuses what makes no key
  }

  /** The same tools, each of which runs only as a call that may, with the arguments that were approved. */
  tools<T extends ToolSet>(tools: T): T {
    return Object.fromEntries(Object.entries(tools).map(([name, each]) => [name, this.#behind(name, each)])) as T;
  }

  /** For `toolApproval`: pauses the run where people are still asked when `wait` is over. It approves nothing by itself. */
  readonly approval = async (o: { toolCall: Made; tools: ToolSet | undefined }): Promise<ToolApprovalStatus> => {
    const { toolName } = o.toolCall;
    const held = Object.entries(o.tools ?? {}).some(([name, each]) => name === toolName && this.#gated.has(each));
    if (!held) return { type: "denied", reason: `Not run. ${toolName} is not behind assent.` };
    try {
      const { request } = await this.#look(o.toolCall, this.waiting.wait ?? Infinity);
      return request?.state === "pending" ? "user-approval" : "not-applicable";
    } catch (error) {
      return { type: "denied", reason: notRun(error) };
    }
  };

  /**
   * What a run that paused goes on with: the message to put behind these, once people have answered all of its calls;
   * undefined while they are asked. It tells the SDK to go on; each tool asks assent again before it runs.
   */
  async answer(messages: readonly ModelMessage[], wait = 0): Promise<ToolModelMessage | undefined> {
    const until = Date.now() + wait * 1000;
    const content: Responses[] = [];
    for (const [approvalId, made] of paused(messages)) {
      const { opened, request } = await this.#look(made, (until - Date.now()) / 1000);
      if (request?.state === "pending") return undefined;
      content.push({ type: "tool-approval-response", approvalId, ...verdict(opened, request) });
    }
    return content.length > 0 ? { role: "tool", content } : undefined;
  }

  #behind(name: string, given: Tool): Tool {
    const run = given.execute;
    if (typeof run !== "function") {
      throw new CallError(`the tool ${name} is no function of this program: expected one with execute`);
    }
    if (this.#gated.has(given)) return given;

    const execute = async (input: unknown, options: ToolExecutionOptions<never>): Promise<unknown> => {
      const made = { toolName: name, toolCallId: options.toolCallId, input };
      const taken = await this.#take(made, given, options.abortSignal);
      const result = await last(await run.call(given, taken.args as never, options as never));
      if (!given.toModelOutput) return noted(result, taken.note);
      if (taken.note !== undefined) notes.set(options.toolCallId, taken.note);
      return result;
    };
    const notes = new Map<string, string>(); // about edits, by the ids of calls
    const output = given.toModelOutput;
    const toModelOutput = async (o: OutputOf) => withNote(await output!.call(given, o), notes.get(o.toolCallId));
    const gated = { ...given, execute, ...(output ? { toModelOutput } : {}) } as Tool;
    this.#gated.add(gated);
    return gated;
  }

  async #take(made: Made, given: Tool, signal: AbortSignal | undefined): Promise<Taken> {
    try {
      return await this.client.take(this.agent, this.#call(made), {
        key: this.#key(made),
        accept: (args) => fits(given, made, args),
        ...this.waiting,
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refused(notRun(error), { cause: error });
    }
  }

  #look(made: Made, wait: number): Promise<Seen> {
    return look(this.client, this.agent, this.#call(made), this.#key(made), Date.now() + wait * 1000);
  }

  #call(made: Made): Call {
    return tool(made.toolName, made.input as Record<string, unknown>, { session: this.session });
  }

  #key(made: Made): string {
    return keyOf(this.session, made.toolCallId);
  }
}

/** Arguments that an approver edited have to be such that the tool takes them. */
async function fits(given: Tool, made: Made, args: Record<string, unknown>): Promise<void> {
  if (isDeepStrictEqual(args, made.input)) return;
  const checked = await asSchema(given.inputSchema).validate?.(args);
  if (checked && !checked.success) {
    throw new CallError(`the tool ${made.toolName} does not take the edited arguments: ${checked.error.message}`);
  }
}

/** The calls that a run paused for and nobody has answered, by the ids of their approvals. */
function paused(messages: readonly ModelMessage[]): Map<string, Made> {
  const parts = messages.flatMap((message) => (typeof message.content === "string" ? [] : [...message.content]));
  const calls = new Map(parts.flatMap((part) => (part.type === "tool-call" ? [[part.toolCallId, part] as const] : [])));
  const found = new Map<string, Made>();
  for (const part of parts) {
    if (part.type === "tool-approval-response") found.delete(part.approvalId);
    if (part.type !== "tool-approval-request") continue;
    const call = calls.get(part.toolCallId);
    if (!call) throw new CallError(`the messages have no call ${part.toolCallId}, which they ask an approval for`);
    found.set(part.approvalId, call);
  }
  return found;
}

function verdict(opened: Opened, request: Request | undefined): { approved: boolean; reason?: string } {
  if (opened.outcome === "deny" || (request && request.state !== "approved")) {
    return { approved: false, reason: new NotRun(opened, request).message };
  }
  return { approved: true };
}

/** The result of a tool: of one that gives several, the last, which is the one that the SDK keeps. */
async function last(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) return result;
  let output: unknown;
  for await (output of result as AsyncIterable<unknown>);
  return output;
}

type OutputOf = Parameters<NonNullable<Tool["toModelOutput"]>>[0];
type Output = Awaited<ReturnType<NonNullable<Tool["toModelOutput"]>>>;

/** What the model reads of a result, with the line about an edit. */
function withNote(output: Output, note: string | undefined): Output {
  if (note === undefined) return output;
  if (output.type === "text" || output.type === "error-text") return { ...output, value: `${note}\n${output.value}` };
  if (output.type === "content") return { ...output, value: [{ type: "text", text: note }, ...output.value] };
  if (output.type === "execution-denied") return output;
  return { ...output, value: noted(output.value, note) as typeof output.value };
}
