/** Tools of LangChain's createAgent (LangGraph), behind assent. */

import { interrupt } from "@langchain/langgraph";
import { type AgentMiddleware, ToolMessage, createMiddleware } from "langchain";
import { keyOf, tool } from "../call.js";
import type { Client } from "../client.js";
import { CallError, StillPending, told } from "../errors.js";
import type { Taken } from "../wire.js";

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
    for (;;) {
      const { run, why } = await take(client, agent, request, waiting);
      if (run) return handler({ ...request, toolCall: { ...made, args: run.args } });
      if (!(why instanceof StillPending)) {
        return new ToolMessage({ content: told(why), name: made.name, tool_call_id: made.id ?? "", status: "error" });
      }
      interrupt({ assent: why.request.id }); // what it returns was not said by people whom the server knows
    }
  };
  return createMiddleware({ name: "Assent", wrapToolCall });
}

/** The run of a call, or why it has none. */
async function take(client: Client, agent: string, request: Asked, waiting: Waiting): Promise<{ run?: Taken; why?: unknown }> {
  const { name, args, id } = request.toolCall;
  const { configurable, signal } = request.runtime;
  try {
    const session = String(configurable?.thread_id ?? "");
    const run = await client.take(agent, tool(name, args, { session }), {
      key: keyOf(session, id ?? ""),
      accept: (edited) => fits(request, edited),
      ...waiting,
      ...(signal ? { signal } : {}),
    });
    return { run };
  } catch (why) {
    if (signal?.aborted) throw why;
    return { why };
  }
}

/** A schema of https://standardschema.dev, as zod's are. */
interface Checking {
  readonly "~standard"?: { validate(value: unknown): Checked | Promise<Checked> };
}
type Checked = { readonly issues?: readonly { readonly message: string }[] | undefined; readonly value?: unknown };

/** Arguments have to be such that the tool takes all of them, before their one run is taken. */
async function fits({ tool, toolCall }: Asked, args: Record<string, unknown>): Promise<void> {
  const schema = (tool as { schema?: Checking } | undefined)?.schema;
  const { issues, value = args } = (await schema?.["~standard"]?.validate(args)) ?? {};
  const left = Object.keys(args).filter((name) => !issues && !Object.hasOwn(Object(value), name));
  const why = [...(issues ?? []).map((each) => each.message), ...left.map((name) => `it leaves out ${name}`)];
  if (why.length > 0) throw new CallError(`the tool ${toolCall.name} does not take the arguments: ${why.join("; ")}`);
}
