/**
 * An agent of the Vercel AI SDK whose tools ask; its model is a scripted one. Run it beside a server, with ASSENT_SERVER
 * and ASSENT_TOKEN, and answer in the inbox.
 */

import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Client } from "assent";
import { Assent } from "assent/adapters/ai-sdk";
import { z } from "zod";

const gate = new Assent(new Client(process.env.ASSENT_SERVER ?? "", process.env.ASSENT_TOKEN ?? ""), "desk", "s-1");
const tools = gate.tools({
  quote: tool({ inputSchema: z.object({ symbol: z.string() }), execute: ({ symbol }) => `${symbol} is at 150.25` }),
  trade: tool({
    inputSchema: z.object({ symbol: z.string(), amount: z.number() }),
    execute: ({ symbol, amount }) => `bought ${amount} of ${symbol}`,
  }),
  drop_table: tool({ inputSchema: z.object({ name: z.string() }), execute: ({ name }) => `${name} is gone` }),
});

const turn: [id: string, name: string, args: string][] = [
  ["call_1", "quote", '{"symbol": "ACME"}'],
  ["call_2", "trade", '{"symbol": "ACME", "amount": 20000}'],
  ["call_3", "drop_table", '{"name": "trades"}'],
];
const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const answers = prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
    for (const answer of answers) {
      if (answer.type !== "tool-result" || !("value" in answer.output)) continue;
      console.log(`${answer.toolCallId} ${answer.toolName}: ${answer.output.value}`);
    }
    const content = turn.map(([toolCallId, toolName, input]) => ({ type: "tool-call" as const, toolCallId, toolName, input }));
    const done = answers.length > 0;
    return {
      content: done ? [{ type: "text", text: "done" }] : content,
      finishReason: { unified: done ? "stop" : "tool-calls", raw: undefined },
      usage,
      warnings: [],
    };
  },
});

await generateText({ model, tools, prompt: "Buy ACME.", stopWhen: stepCountIs(2) });
