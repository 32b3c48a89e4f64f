/** A function that is an agent's tool, behind all of it. */

import { type Arguments, type ToolFields, tool } from "./call.js";
import type { Client } from "./client.js";
import { mark } from "./errors.js";
import type { Asking } from "./wire.js";

export interface Guarding<A> extends Omit<Asking, "key">, ToolFields {
  /** Makes the idempotency key of the model call; without it, each call of the function is a new one. */
  readonly key?: (args: A) => string;
}

/**
 * The function runs only as a call that may, with exactly the arguments that were approved; else NotRun is thrown.
 * `name` is the tool in the agent's file. `accept` throws where the function can't take arguments, such as an edit.
 */
export function guard<A extends Exclude<Arguments, string>, T>(
  client: Client, agent: string, name: string, run: (args: A) => T | Promise<T>, guarding: Guarding<A> = {},
): (args: A) => Promise<T> {
  const { key, server, session, principal, annotations, tool_definition, ...asking } = guarding;
  const fields = { server, session, principal, annotations, tool_definition };
  return async (args) => {
    let ran = false;
    try {
      const own = key ? { key: key(args) } : {};
      const taken = await client.take(agent, tool(name, args, fields), { ...asking, ...own });
      ran = true;
      return await run(taken.args as A);
    } catch (error) {
      mark(error, ran);
      throw error;
    }
  };
}
