/** Turns of a scripted model in LangChain's createAgent, with tools that are behind assent. */

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { Command, MemorySaver } from "@langchain/langgraph";
import type { Client } from "assent";
import { assent } from "assent/adapters/langchain";
import { createAgent, tool } from "langchain";
import { z } from "zod";
import { type Framework, type Made, SESSION, TOOLS, type Turn, versionOf } from "./suite.js";

/** Makes its calls once, and ends. */
class Scripted extends BaseChatModel {
  constructor(readonly calls: readonly Made[]) {
    super({});
  }

  override _llmType(): string {
    return "scripted";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const tool_calls = messages.some((each) => AIMessage.isInstance(each))
      ? []
      : this.calls.map(({ id = "call_1", tool, args }) => ({ name: tool, args: read(args), id }));
    return { generations: [{ text: "", message: new AIMessage({ content: "", tool_calls }) }] };
  }
}

/** As JSON.parse, and NaN as some models' clients read it. */
const read = (args: string) => JSON.parse(args.replace("NaN", '"NaN"'), (_, value) => (value === "NaN" ? NaN : value));

/** A record keeps the order of its names, as no object of zod does. */
const schema = z.record(z.string(), z.unknown()).refine(({ amount }) => amount === undefined || typeof amount === "number", "an amount");

/** A turn of a graph, which `given` starts or resumes. */
export async function go(client: Client, calls: readonly Made[], given: unknown, saved: MemorySaver, wait?: number): Promise<Turn> {
  const ran: Turn["ran"] = [];
  const named = (name: string) =>
    tool(
      (args) => {
        ran.push([name, args as object]);
        return `${name} ran`;
      },
      { name, description: name, schema },
    );
  const middleware = [assent(client, "desk", wait === undefined ? {} : { wait })];
  const agent = createAgent({ model: new Scripted(calls), tools: TOOLS.map(named), middleware, checkpointer: saved });
  const result: any = await agent.invoke(given as any, { configurable: { thread_id: SESSION } });
  const answers: ToolMessage[] = result.messages.filter((each: BaseMessage) => ToolMessage.isInstance(each));
  const told = Object.fromEntries(answers.map((each) => [each.tool_call_id, String(each.content)]));
  return { told, ran, ...(result.__interrupt__ ? { waits: saved } : {}) };
}

export const framework: Framework = {
  product: `langchain (npm) ${versionOf("langchain")}`,
  example: "desk-langchain",
  module: import.meta.url,
  cells: {
    6: "yes; numbers that no double holds are refused",
    16: "yes; of a name that stands twice LangChain keeps the last, and shows that; numbers that no double holds are refused",
  },
  turn: (client, calls, wait) => go(client, calls, { messages: [{ role: "user", content: "go" }] }, new MemorySaver(), wait),
  resume: (client, waits) => go(client, [], new Command({ resume: 1 }), waits as MemorySaver, 0.1),
  forged(client, waits, amount) {
    const decisions = [{ type: "edit", editedAction: { name: "trade", args: { amount } } }, { type: "approve" }];
    return go(client, [], new Command({ resume: { decisions } }), waits as MemorySaver, 0.1);
  },
};
