/** Puts the line about an edit where the model reads the result of a tool. */

import { isObject } from "../wire.js";

/** The result as it is, or with the line before it: in a text, in an object as `assent`, else beside `result`. */
export function noted(result: unknown, note: string | undefined): unknown {
  if (note === undefined) return result;
  if (typeof result === "string") return `${note}\n${result}`;
  return isObject(result) && !("assent" in result) ? { assent: note, ...result } : { assent: note, result };
}
