/**
 * An agent of the OpenAI Agents SDK whose tools ask; its model is a scripted one. Run it beside a server, with
 * ASSENT_SERVER and ASSENT_TOKEN, and answer in the inbox.
 */

import { Agent, type Model, type ModelRequest, type ModelResponse, Runner, Usage, tool } from "@openai/agents-core";
import { Client } from "assent";
import { Assent } from "assent/adapters/openai-agents";
import { z } from "zod";

const tools = [
  tool({
    name: "quote",
    description: "Says a price.",
    parameters: z.object({ symbol: z.string() }),
    execute: ({ symbol }) => `${symbol} is at 150.25`,
  }),
  tool({
    name: "trade",
    description: "Buys.",
    parameters: z.object({ symbol: z.string(), amount: z.number() }),
    execute: ({ symbol, amount }) => `bought ${amount} of ${symbol}`,
  }),
  tool({
    name: "drop_table",
    description: "Drops a table.",
    parameters: z.object({ name: z.string() }),
    execute: ({ name }) => `${name} is gone`,
  }),
];

const call = (callId: string, name: string, args: string) => {
  return { type: "function_call" as const, callId, name, arguments: args, status: "completed" as const };
};
const turn = [
  call("call_1", "quote", '{"symbol": "ACME"}'),
  call("call_2", "trade", '{"symbol": "ACME", "amount": 20000}'),
  call("call_3", "drop_table", '{"name": "trades"}'),
];

class Scripted implements Model {
  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    const done = typeof input !== "string" && input.some((each) => each.type === "function_call_result");
    const content = [{ type: "output_text" as const, text: "done" }];
    const message = { type: "message" as const, role: "assistant" as const, status: "completed" as const, content };
    return { usage: new Usage(), output: done ? [message] : turn };
  }

  getStreamedResponse(): never {
    throw new Error("this example does not stream");
  }
}

const gate = new Assent(new Client(process.env.ASSENT_SERVER ?? "", process.env.ASSENT_TOKEN ?? ""), "desk", "s-1");
const agent = new Agent({ name: "desk", model: new Scripted(), tools: gate.tools(tools) });
const { newItems } = await new Runner({ tracingDisabled: true }).run(agent, "Buy ACME.");
for (const item of newItems) {
  if (item.type !== "tool_call_output_item" || item.rawItem.type !== "function_call_result") continue;
  console.log(`${item.rawItem.callId} ${item.rawItem.name}: ${item.output}`);
}
