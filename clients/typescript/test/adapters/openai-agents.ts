/** Turns of a scripted model in the OpenAI Agents SDK, with tools that are behind assent. */

import { Agent, type Model, type ModelRequest, type ModelResponse, RunState, Runner, Usage, tool } from "@openai/agents-core";
import type { Client } from "assent";
import { Assent, type Waiting } from "assent/adapters/openai-agents";
import { type Framework, type Made, SESSION, TOOLS, type Turn, versionOf } from "./suite.js";

/** Makes its calls once, and ends. */
class Scripted implements Model {
  constructor(readonly calls: readonly Made[]) {}

  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    const done = typeof input !== "string" && input.some((each) => each.type === "function_call_result");
    const calls = this.calls.map(({ id = "call_1", tool, args }) => {
      return { type: "function_call" as const, callId: id, name: tool, arguments: args, status: "completed" as const };
    });
    const text = { role: "assistant" as const, status: "completed" as const, content: [{ type: "output_text" as const, text: "done" }] };
    return { usage: new Usage(), output: done ? [{ type: "message", ...text }] : calls };
  }

  getStreamedResponse(): never {
    throw new Error("no run of the tests streams");
  }
}

const parameters = { type: "object" as const, properties: {}, required: [], additionalProperties: true as const };

/** An agent with these calls, its gate, and what ran. */
export function desk(client: Client, calls: readonly Made[], waiting: Waiting) {
  const ran: Turn["ran"] = [];
  const gate = new Assent(client, "desk", SESSION, waiting);
  const named = (name: string) =>
    tool({
      name,
      description: name,
      parameters,
      strict: false,
      execute: (args) => {
        ran.push([name, args as object]);
        return `${name} ran`;
      },
    });
  return { ran, gate, agent: new Agent({ name: "desk", model: new Scripted(calls), tools: gate.tools(TOOLS.map(named)) }) };
}

const runner = new Runner({ tracingDisabled: true });

type Given = ReturnType<typeof desk>;

/** Runs until the agent is done, or people are still asked. */
export async function go({ ran, gate, agent }: Given, given: string | RunState<any, any>, wait = 0): Promise<Turn> {
  let result = await runner.run(agent, given);
  while (result.interruptions.length > 0) {
    if (!(await gate.answer(result.state, wait))) return { ran, told: {}, waits: result.state.toString() };
    result = await runner.run(agent, result.state);
  }
  const told: Record<string, string> = {};
  for (const { rawItem } of result.newItems) {
    if (rawItem?.type === "function_call_result") told[rawItem.callId] = textOf(rawItem.output);
  }
  return { ran, told };
}

const textOf = (output: unknown): string => (typeof output === "string" ? output : (output as { text: string }).text);

export const framework: Framework = {
  product: `@openai/agents-core ${versionOf("@openai/agents-core")}`,
  example: "desk-openai-agents",
  module: import.meta.url,
  cells: {
    6: "yes; numbers that no double holds are refused",
    16: "yes; numbers that no double holds are refused",
  },
  turn: (client, calls, wait) => go(desk(client, calls, { pause: wait !== undefined }), "go", wait),
  async resume(client, waits) {
    const given = desk(client, [], { pause: true });
    const state = await RunState.fromString(given.agent, waits as string);
    return (await given.gate.answer(state)) ? go(given, state) : { ran: [], told: {}, waits };
  },
  async forged(client, waits, amount) {
    const given = desk(client, [], { pause: true, wait: 0.1 });
    const state = await RunState.fromString(given.agent, (waits as string).replaceAll("20000", String(amount)));
    for (const item of state.getInterruptions()) state.approve(item, { alwaysApprove: true });
    return go(given, state);
  },
};
