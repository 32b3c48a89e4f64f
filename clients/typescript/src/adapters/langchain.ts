/** Tools of LangChain's createAgent (LangGraph), behind assent. */

import { getConfig, interrupt } from "@langchain/langgraph";
import { type AgentMiddleware, ToolMessage, createMiddleware } from "langchain";
import { byChecking, bySchema, isChecking } from "../arguments.js";
import { keyOf, tool } from "../call.js";
import type { Client } from "../client.js";
import { StillPending, notRun } from "../errors.js";
import { type Taken, isObject } from "../wire.js";
import { noted } from "./notes.js";

type Wrap = NonNullable<AgentMiddleware["wrapToolCall"]>;
type Asked = Parameters<Wrap>[0];

export interface Waiting {
  readonly wait?: number; // seconds that a call waits for people before it interrupts the graph; else as long as they have
}

/**
 * A middleware, behind which every tool that LangChain runs asks right before it runs. Put it last, so that no other one
 * changes a call after it. The graph's `thread_id` names the conversation: a call without one is refused.
 *
 * A graph that was interrupted is resumed with any value, in any process: what people have answered by then counts, and
 * nothing else.
 */
export function assent(client: Client, agent: string, waiting: Waiting = {}) {
  const wrapToolCall: Wrap = async (request, handler) => {
    const made = request.toolCall;
    const replayed = waiting.wait === undefined ? 0 : answered();
    for (let attempt = 0; ; attempt++) {
      const { run, why } = await take(client, agent, request, attempt < replayed ? { ...waiting, wait: 0 } : waiting);
      if (run) return withNote(await handler({ ...request, toolCall: { ...made, args: run.args } }), run.note, made.id);
      if (!(why instanceof StillPending)) {
        return new ToolMessage({ content: notRun(why), name: made.name, tool_call_id: made.id ?? "", status: "error" });
      }
      interrupt({ assent: why.request.id }); // what it returns was not said by people whom the server knows
    }
  };
  return createMiddleware({ name: "Assent", wrapToolCall });
}

/** How many interrupts of this task have answers, which a resume replays: what is asked before them need not wait again. */
function answered(): number {
  const { resume, nullResume } = getConfig()?.configurable?.["__pregel_scratchpad"] ?? {};
  return (Array.isArray(resume) ? resume.length : 0) + (nullResume === undefined ? 0 : 1);
}

/** The run of a call, or why it has none. */
async function take(client: Client, agent: string, request: Asked, waiting: Waiting): Promise<{ run?: Taken; why?: unknown }> {
  const { name, args, id } = request.toolCall;
  const { configurable, signal } = request.runtime;
  try {
    const session = String(configurable?.thread_id ?? "");
    const run = await client.take(agent, tool(name, await read(request, args), { session }), {
      key: keyOf(session, id ?? ""),
      accept: (edited) => read(request, edited),
      ...waiting,
      ...(signal ? { signal } : {}),
    });
    return { run };
  } catch (why) {
    if (signal?.aborted) throw why;
    return { why };
  }
}

/** The arguments as the tool reads them, with its defaults, which people are shown too. */
async function read({ tool, toolCall }: Asked, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const schema: unknown = (tool as { schema?: unknown } | undefined)?.schema;
  if (isChecking(schema)) return byChecking(toolCall.name, args, schema);
  return isObject(schema) ? (bySchema(toolCall.name, args, schema) as Record<string, unknown>) : args;
}

type Answer = Awaited<ReturnType<Wrap>>;

/** The tool's answer with the line about an edit. */
function withNote(answer: Answer, note: string | undefined, id: string | undefined): Answer {
  if (note === undefined) return answer;
  if (ToolMessage.isInstance(answer)) {
    const { content } = answer;
    const text = Array.isArray(content) ? [{ type: "text" as const, text: note }, ...content] : (noted(content, note) as string);
    answer.content = text as typeof content;
  } else if (isObject(answer.update) && Array.isArray(answer.update.messages)) {
    for (const each of answer.update.messages) if (ToolMessage.isInstance(each) && each.tool_call_id === id) withNote(each, note, id);
  }
  return answer;
}
