/**
 * An agent of LangChain whose tools ask; its model is a scripted one. Run it beside a server, with ASSENT_SERVER and
 * ASSENT_TOKEN, and answer in the inbox.
 */

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { MemorySaver } from "@langchain/langgraph";
import { Client } from "assent";
import { assent } from "assent/adapters/langchain";
import { ToolMessage, createAgent, tool } from "langchain";
import { z } from "zod";

const tools = [
  tool(({ symbol }) => `${symbol} is at 150.25`, { name: "quote", description: "Says a price.", schema: z.object({ symbol: z.string() }) }),
  tool(({ symbol, amount }) => `bought ${amount} of ${symbol}`, {
    name: "trade",
    description: "Buys.",
    schema: z.object({ symbol: z.string(), amount: z.number() }),
  }),
  tool(({ name }) => `${name} is gone`, { name: "drop_table", description: "Drops a table.", schema: z.object({ name: z.string() }) }),
];

const turn = [
  { id: "call_1", name: "quote", args: { symbol: "ACME" } },
  { id: "call_2", name: "trade", args: { symbol: "ACME", amount: 20000 } },
  { id: "call_3", name: "drop_table", args: { name: "trades" } },
];

class Scripted extends BaseChatModel {
  override _llmType(): string {
    return "scripted";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const done = messages.some((each) => AIMessage.isInstance(each));
    const message = new AIMessage({ content: done ? "done" : "", tool_calls: done ? [] : turn });
    return { generations: [{ text: "", message }] };
  }
}

const gate = assent(new Client(process.env.ASSENT_SERVER ?? "", process.env.ASSENT_TOKEN ?? ""), "desk");
const agent = createAgent({ model: new Scripted({}), tools, middleware: [gate], checkpointer: new MemorySaver() });
const { messages } = await agent.invoke({ messages: "Buy ACME." }, { configurable: { thread_id: "s-1" } });
for (const message of messages) {
  if (ToolMessage.isInstance(message)) console.log(`${message.tool_call_id} ${message.name}: ${message.content}`);
}
