/** Function tools of the OpenAI Agents SDK, behind assent. */

import type { FunctionTool, RunContext, RunState, Tool } from "@openai/agents-core";
import { bySchema } from "../arguments.js";
import { type Call, keyOf, tool } from "../call.js";
import type { Client } from "../client.js";
import { CallError, notRun } from "../errors.js";
import type { Taken } from "../wire.js";
import { look } from "./look.js";
import { noted } from "./notes.js";

type Details = Parameters<FunctionTool["invoke"]>[2];

export interface Waiting {
  readonly wait?: number; // seconds that a tool itself waits for people; else as long as they have
  readonly pause?: boolean; // every call interrupts its run: `answer` then says whether the run can go on
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
  tools<Context>(tools: readonly Tool<Context>[]): FunctionTool<Context, any, any>[] {
    return tools.map((each) => this.#behind(each));
  }

  /**
   * Lets the calls of a state go on to their tools that nobody needs to be asked about any more, in any process. It says
   * whether the run can go on: false while people are asked, who have `wait` seconds. Each tool asks assent again before
   * it runs. Calls of tools that are not behind assent stay as they are.
   */
  async answer(state: RunState<any, any>, wait = 0): Promise<boolean> {
    const until = Date.now() + wait * 1000;
    let left = 0;
    for (const item of state.getInterruptions()) {
      const made = item.rawItem;
      const given = item.agent.tools.find((each: Tool) => each.name === item.name);
      if (made.type !== "function_call" || !given || !this.#gated.has(given)) continue;
      let call: Call;
      try {
        call = this.#call(made.name, read(given, made.arguments));
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        state.approve(item); // the tool refuses it, and tells the model why
        continue;
      }
      const { request } = await look(this.client, this.agent, call, keyOf(this.session, made.callId), until);
      if (request?.state === "pending") left++;
      else state.approve(item);
    }
    return left === 0;
  }

  #behind<Context>(given: Tool<Context>): FunctionTool<Context, any, any> {
    if (given.type !== "function") {
      throw new CallError(`the tool ${given.name} is no function of this program, so nothing can stand before it`);
    }
    if (this.#gated.has(given)) return given;

    const invoke = async (context: RunContext<Context>, input: string, details?: Details): Promise<unknown> => {
      let taken: Taken;
      try {
        taken = await this.#take(given, input, details);
      } catch (error) {
        if (details?.signal?.aborted) throw error;
        return notRun(error);
      }
      return withNote(await given.invoke(context, taken.text, details), taken.note);
    };
    const changed = { invoke, ...(this.waiting.pause ? { needsApproval: async () => true } : {}) };
    const gated = Object.defineProperties({ ...given }, Object.getOwnPropertyDescriptors(given)); // also what is not enumerable
    Object.assign(gated, changed);
    this.#gated.add(gated);
    return gated;
  }

  async #take<Context>(given: FunctionTool<Context>, input: string, details: Details): Promise<Taken> {
    const { wait } = this.waiting;
    return this.client.take(this.agent, this.#call(given.name, read(given, input)), {
      accept: (edited) => bySchema(given.name, edited, given.parameters),
      key: keyOf(this.session, details?.toolCall?.callId ?? ""),
      ...(wait === undefined ? {} : { wait }),
      ...(details?.signal ? { signal: details.signal } : {}),
    });
  }

  #call(name: string, args: string): Call {
    return tool(name, args || "{}", { session: this.session });
  }
}

/** The model's own text, or one with the defaults of the tool. Refuses a call without an argument that it needs. */
const read = (given: Tool<any>, args: string): string =>
  given.type === "function" ? bySchema(given.name, args || "{}", given.parameters) : args;

const OUTPUTS = ["text", "image", "file"];

/** The tool's result with the line about an edit. Images and files stay outputs of their own. */
function withNote(result: unknown, note: string | undefined): unknown {
  if (note === undefined) return result;
  const outputs: unknown[] = Array.isArray(result) ? result : [result];
  const structured = outputs.length > 0 && outputs.every((each) => OUTPUTS.includes((each as { type?: string } | null)?.type ?? ""));
  return structured ? [{ type: "text", text: note }, ...outputs] : noted(result, note);
}
