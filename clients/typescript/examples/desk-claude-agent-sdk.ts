/**
 * An agent of the Claude Agent SDK whose tools ask; the model behind Claude Code is a scripted one. Run it beside a
 * server, with ASSENT_SERVER and ASSENT_TOKEN, and answer in the inbox.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { Client } from "assent";
import { assent } from "assent/adapters/claude-agent-sdk";
import { z } from "zod";

const says = (text: string) => ({ content: [{ type: "text" as const, text }] });
const desk = createSdkMcpServer({
  name: "desk",
  tools: [
    tool("quote", "Says a price.", { symbol: z.string() }, async ({ symbol }) => says(`${symbol} is at 150.25`)),
    tool("trade", "Buys.", { symbol: z.string(), amount: z.number() }, async ({ symbol, amount }) => says(`bought ${amount} of ${symbol}`)),
    tool("drop_table", "Drops a table.", { name: z.string() }, async ({ name }) => says(`${name} is gone`)),
  ],
});

const turn = [
  { id: "call_1", name: "quote", args: { symbol: "ACME" } },
  { id: "call_2", name: "trade", args: { symbol: "ACME", amount: 20000 } },
  { id: "call_3", name: "drop_table", args: { name: "trades" } },
];

/** What the model streams: its calls, and then that it is done. */
function* events(done: boolean): Generator<{ type: string; [field: string]: unknown }> {
  const usage = { input_tokens: 1, output_tokens: 1 };
  yield { type: "message_start", message: { id: `msg_${done}`, type: "message", role: "assistant", model: "m", content: [], usage } };
  const text = { block: { type: "text", text: "" }, delta: { type: "text_delta", text: "done" } };
  const calls = turn.map(({ id, name, args }) => ({
    block: { type: "tool_use", id, name: `mcp__desk__${name}`, input: {} },
    delta: { type: "input_json_delta", partial_json: JSON.stringify(args) },
  }));
  for (const [index, { block, delta }] of (done ? [text] : calls).entries()) {
    yield { type: "content_block_start", index, content_block: block };
    yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
  }
  yield { type: "message_delta", delta: { stop_reason: done ? "end_turn" : "tool_use", stop_sequence: null }, usage };
  yield { type: "message_stop" };
}

const model = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  response.setHeader("Content-Type", "text/event-stream");
  for (const event of events(text.includes("tool_result"))) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
});
await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
const home = mkdtempSync(join(tmpdir(), "desk-"));
const ANTHROPIC_BASE_URL = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
const env = { PATH: process.env.PATH, HOME: home, ANTHROPIC_API_KEY: "none", ANTHROPIC_BASE_URL };

const client = new Client(process.env.ASSENT_SERVER ?? "", process.env.ASSENT_TOKEN ?? "");
const options = assent(client, "desk", { cwd: home, env, tools: [], mcpServers: { desk }, settingSources: [] });
for await (const message of query({ prompt: "Buy ACME.", options })) {
  if (message.type !== "user" || typeof message.message.content === "string") continue;
  for (const part of message.message.content) {
    if (part.type !== "tool_result") continue;
    const made = turn.find(({ id }) => id === part.tool_use_id);
    const [first] = typeof part.content === "string" ? [{ type: "text" as const, text: part.content }] : (part.content ?? []);
    // Claude Code puts the name of its hook before what assent says.
    console.log(`${made?.id} ${made?.name}: ${first?.type === "text" && first.text.replace(/^PreToolUse:\w+ hook error: /, "")}`);
  }
}
model.closeAllConnections();
model.close();
rmSync(home, { recursive: true, force: true });
