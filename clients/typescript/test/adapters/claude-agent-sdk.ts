/** Turns of a scripted model in Claude Code, run by the Claude Agent SDK, with tools that are behind assent. */

import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Options, createSdkMcpServer, query } from "@anthropic-ai/claude-agent-sdk";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { Client } from "assent";
import { assent } from "assent/adapters/claude-agent-sdk";
import { type Framework, type Made, TOOLS, type Turn, versionOf } from "./suite.js";

export const SESSION = "00000000-0000-4000-8000-000000000001"; // Claude Code wants a UUID
const DIGEST = `sha256:${"0".repeat(64)}`; // of the definition of each tool

/** Serves Anthropic's Messages API. It makes its calls once, and ends; `told` is what it was told about them. */
export class Scripted {
  readonly told: Record<string, string> = {};
  readonly #server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    response.setHeader("Content-Type", "text/event-stream");
    for (const event of this.#events(JSON.parse(text))) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });

  constructor(readonly calls: readonly Made[]) {}

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  *#events({ model, messages, tools }: any): Generator<{ type: string; [field: string]: unknown }> {
    const parts = messages.flatMap(({ content }: any) => (typeof content === "string" ? [] : content));
    const results = parts.filter((each: any) => each.type === "tool_result");
    for (const each of results) this.told[each.tool_use_id] = textOf(each.content);

    const calls = results.length > 0 || !tools?.length ? [] : this.calls;
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: `msg_${Math.random()}`, type: "message", role: "assistant", model, content: [], usage };
    yield { type: "message_start", message };
    for (const [index, { tool, args, id = "call_1" }] of calls.entries()) {
      const name = (TOOLS as readonly string[]).includes(tool) ? `mcp__desk__${tool}` : tool;
      yield { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } };
      yield { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: args } };
      yield { type: "content_block_stop", index };
    }
    if (calls.length === 0) {
      yield { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
      yield { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "done" } };
      yield { type: "content_block_stop", index: 0 };
    }
    yield { type: "message_delta", delta: { stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null }, usage };
    yield { type: "message_stop" };
  }
}

/** A result without what Claude Code puts before the reason of a hook. */
function textOf(content: string | { text: string }[]): string {
  const text = typeof content === "string" ? content : content.map((each) => each.text).join("");
  return text.replace(/^PreToolUse:\w+ hook error: /, "");
}

/** A server in this program, whose tools take every object as it is. */
export function serverOf(ran: Turn["ran"]) {
  const server = createSdkMcpServer({ name: "desk" });
  const inside = server.instance.server;
  inside.registerCapabilities({ tools: {} });
  inside.setRequestHandler(ListToolsRequestSchema, () => {
    const annotations = { readOnlyHint: true }; // calls of such tools go to their hooks at once
    return { tools: TOOLS.map((name) => ({ name, description: name, inputSchema: { type: "object" as const }, annotations })) };
  });
  inside.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    ran.push([params.name, params.arguments ?? {}]);
    return { content: [{ type: "text", text: `${params.name} ran` }] };
  });
  return server;
}

/** A turn of a session, whose files are in `home`. `more` are options of the program. */
export async function go(client: Client, calls: readonly Made[], home: string, more: Options, wait?: number): Promise<Turn> {
  const ran: Turn["ran"] = [];
  const model = new Scripted(calls);
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    CLAUDE_CONFIG_DIR: home,
    ANTHROPIC_API_KEY: "sk-nothing",
    ANTHROPIC_BASE_URL: await model.start(),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    IS_SANDBOX: "1", // root may bypass permissions
    ...more.env,
  };
  const given: Options = { cwd: home, mcpServers: { desk: serverOf(ran) }, settingSources: [], ...more, env };
  const asks = { fields: () => ({ tool_definition: DIGEST }), ...(wait === undefined ? {} : { wait }) };
  let deferred = false;
  try {
    for await (const message of query({ prompt: "go", options: assent(client, "desk", given, asks) })) {
      if (message.type === "result") deferred = "deferred_tool_use" in message && message.deferred_tool_use !== undefined;
    }
  } finally {
    model.stop();
  }
  if (!deferred) rmSync(home, { recursive: true, force: true });
  return { ran, told: model.told, ...(deferred ? { waits: home } : {}) };
}

export const homeOf = (): string => mkdtempSync(join(tmpdir(), "assent-claude-"));

export const framework: Framework = {
  product: `@anthropic-ai/claude-agent-sdk ${versionOf("@anthropic-ai/claude-agent-sdk")}`,
  example: "desk-claude-agent-sdk",
  module: import.meta.url,
  hearsOfEdits: false, // Claude Code puts it beside the result
  cells: {
    2: "yes; for a tool of a server, where the program gives the digest of its definition",
    6: "yes; numbers that no double holds are refused",
    14: "yes; Claude Code presents calls one after another, but for those of tools that only read",
    16: "yes; of a name that stands twice Claude Code keeps the last, and shows that; numbers that no double holds are refused",
  },
  turn: (client, calls, wait) => go(client, calls, homeOf(), { sessionId: SESSION }, wait),
  resume: (client, waits) => go(client, [], waits as string, { resume: SESSION }, 0.1),
  forged(client, waits, amount) {
    const home = waits as string;
    const [path] = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((each) => each.endsWith(`${SESSION}.jsonl`));
    const session = readFileSync(join(home, path!), "utf8");
    writeFileSync(join(home, path!), session.replaceAll(/"amount":\d+/g, `"amount":${amount}`));
    writeFileSync(join(home, "settings.json"), JSON.stringify({ permissions: { allow: ["mcp__desk", "*"] } }));
    const allows: Options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true, settingSources: ["user"] };
    return go(client, [], home, { resume: SESSION, allowedTools: ["mcp__desk__trade"], ...allows }, 0.1);
  },
};
