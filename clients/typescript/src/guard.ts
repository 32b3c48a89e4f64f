/** A function that is an agent's tool, behind all of it. */

import { type Arguments, type ToolFields, tool } from "./call.js";
import type { Client } from "./client.js";
import { CallError, mark } from "./errors.js";
import { type Asking, isObject } from "./wire.js";

export interface Guarding<A> extends Omit<Asking, "key">, ToolFields {
  /** Makes the idempotency key of the model call; without it, each call of the function is a new one. */
  readonly key?: (args: A) => string;
}

/**
 * The function runs only as a call that may, with exactly the arguments that were approved; else NotRun is thrown. It
 * takes one object of named arguments, and keeps its `this`. Members that are undefined are left out, as JSON does.
 * `name` is the tool in the agent's file. `accept` throws where the function can't take arguments, such as an edit.
 */
export function guard<A extends Exclude<Arguments, string>, T, This = void>(
  client: Client, agent: string, name: string, run: (this: This, args: A) => T | Promise<T>, guarding: Guarding<A> = {},
): (this: This, args: A) => Promise<T> {
  if (run.length > 1) throw new CallError(`guard: ${name} takes ${run.length} arguments: expected one object with their names`);
  if (GENERATORS.includes(Object.prototype.toString.call(run))) {
    throw new CallError(`guard: ${name} is a generator, whose body runs after its call: return a list`);
  }
  const { key, server, session, principal, annotations, tool_definition, ...asking } = guarding;
  const fields = { server, session, principal, annotations, tool_definition };
  return async function (this: This, args: A): Promise<T> {
    let ran = false;
    try {
      if (!isObject(args)) throw new CallError(`${name} can't be called with this: expected one object of named arguments`);
      const own = key ? { key: key(args) } : {};
      const taken = await client.take(agent, tool(name, args, fields), { ...asking, ...own });
      ran = true;
      return await run.call(this, taken.args as A);
    } catch (error) {
      mark(error, ran);
      throw error;
    }
  };
}

const GENERATORS = ["[object GeneratorFunction]", "[object AsyncGeneratorFunction]"];
