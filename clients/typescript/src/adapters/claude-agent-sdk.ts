/** Tools of the Claude Agent SDK, behind assent: those of Claude Code, of MCP servers and of the program itself. */

import type {
  CanUseTool, HookCallback, Options, PreToolUseHookInput, SyncHookJSONOutput,
} from "@anthropic-ai/claude-agent-sdk";
import { type Call, type ToolFields, keyOf, tool } from "../call.js";
import type { Client } from "../client.js";
import { CallError, StillPending, notRun } from "../errors.js";

type Answer = Omit<Extract<SyncHookJSONOutput["hookSpecificOutput"], { hookEventName: "PreToolUse" }>, "hookEventName">;

export interface Asks {
  readonly wait?: number; // seconds that a call waits for people before the session ends with it; else as long as they have
  readonly fields?: (tool: string) => ToolFields; // more of a call: a grant for a server's tool needs its tool_definition
}

const LONGEST = 2_147_483; // seconds: the longest timer there is. When it is over, Claude Code blocks the call
const ELSEWHERE = ["canUseTool", "permissionPromptToolName"] as const;

/**
 * The options of one query, with every tool behind assent. A hook asks right before a tool runs, in each permission mode
 * and whatever the rules allow. Other hooks may change arguments after it, so a rule makes Claude Code come to
 * `canUseTool` last, which gives it what was approved.
 *
 * A session that ended with a call (`deferred_tool_use` of its result) is resumed in any process: what people have
 * answered by then counts, and nothing else.
 */
export function assent(client: Client, agent: string, options: Options = {}, asks: Asks = {}): Options {
  const { wait, fields } = asks;
  const approved = new Map<string, Record<string, unknown>>(); // by the ids of calls that run next

  const hook: HookCallback = async (input, _, { signal }) => {
    if (input.hook_event_name !== "PreToolUse") throw new CallError(`a hook before ${input.hook_event_name} has no call`);
    return { hookSpecificOutput: { hookEventName: "PreToolUse", ...(await answer(input, signal)) } };
  };

  const answer = async (input: PreToolUseHookInput, signal: AbortSignal): Promise<Answer> => {
    try {
      const id = input.tool_use_id;
      const { args, note } = await client.take(agent, callOf(input, fields?.(input.tool_name)), {
        key: keyOf(input.session_id, id),
        accept: () => {
          if (approved.has(id)) throw new CallError(`two calls have the id ${id}: expected the options of one query`);
        },
        signal,
        ...(wait === undefined ? {} : { wait }),
      });
      approved.set(id, args);
      return { permissionDecision: "allow", updatedInput: args, ...(note === undefined ? {} : { additionalContext: note }) };
    } catch (error) {
      // The session of a subagent can't be resumed by itself.
      if (error instanceof StillPending && !input.agent_id) return { permissionDecision: "defer" };
      return { permissionDecision: "deny", permissionDecisionReason: notRun(error) };
    }
  };

  const last: CanUseTool = async (name, _, { toolUseID }) => {
    const updatedInput = approved.get(toolUseID);
    approved.delete(toolUseID);
    if (updatedInput) return { behavior: "allow", updatedInput };
    return { behavior: "deny", message: notRun(new CallError(`the call of ${name} did not come to assent`)) };
  };

  return {
    ...options,
    settings: asking(options),
    canUseTool: last,
    hooks: {
      ...options.hooks,
      PreToolUse: [...(options.hooks?.PreToolUse ?? []), { hooks: [hook], timeout: LONGEST, onFailure: "block" }],
    },
  };
}

/** The settings of a query, in which each tool asks `canUseTool`. What would keep it from that is refused. */
function asking(options: Options): Exclude<Options["settings"], string | undefined> {
  for (const name of ELSEWHERE) {
    if (options[name]) throw new CallError(`${name} can't stand beside assent, which has people asked: leave it out`);
  }
  if (options.permissionMode === "dontAsk" || options.permissionPrompts === "none") {
    throw new CallError("with permissionMode dontAsk or permissionPrompts none nothing runs that people approved");
  }
  const { settings = {} } = options;
  if (typeof settings === "string") throw new CallError("settings: expected an object, for a rule to be added");
  const { permissions } = settings;
  return { ...settings, permissions: { ...permissions, ask: [...(permissions?.ask ?? []), "*"] } };
}

/** The call of a tool. mcp__SERVER__TOOL is one of an MCP server, whose name has no two underscores. */
function callOf({ tool_name, tool_input, session_id, mcp_server }: PreToolUseHookInput, more: ToolFields = {}): Call {
  const [, server, name] = /^mcp__(.+?)__(.+)$/s.exec(tool_name) ?? [];
  if (mcp_server && mcp_server.name.replace(/[^A-Za-z0-9_-]/g, "_") !== server) {
    throw new CallError(`the server of ${tool_name} is ${mcp_server.name}: expected a name without two underscores`);
  }
  const args = tool_input as Record<string, unknown>;
  return tool(name ?? tool_name, args, { ...more, session: session_id, ...(server === undefined ? {} : { server }) });
}
