/** Calls: what an agent is about to do, and the exact text of its arguments. */

import { createHash } from "node:crypto";
import { isSafeNumber, parse } from "lossless-json";
import { CallError } from "./errors.js";

/** Arguments as an object, or as a JSON text, which is sent byte for byte. */
export type Arguments = { readonly [name: string]: unknown } | string;

/** A call, in the words of docs/contracts/decide.md. */
export interface Call {
  readonly kind: "tool" | "mcp_tool" | "skill" | "delegation";
  readonly args?: Arguments;
  readonly [field: string]: unknown;
}

export interface ToolFields {
  readonly server?: string | undefined;
  readonly session?: string | undefined;
  readonly principal?: string | undefined;
  readonly annotations?: { readonly [name: string]: unknown } | undefined;
  readonly tool_definition?: string | undefined;
}

/** The call of a tool, or of an MCP server's tool. */
export function tool(name: string, args: Arguments, fields: ToolFields = {}): Call {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { kind: fields.server ? "mcp_tool" : "tool", tool: name, args, ...Object.fromEntries(given) };
}

/** The idempotency key of one model call, such as keyOf(session, toolCallId): the same parts, the same key. */
export function keyOf(...parts: string[]): string {
  if (parts.length === 0 || parts.some((part) => part === "")) {
    throw new CallError("an idempotency key: expected texts that are not empty, such as a session and a tool call's id");
  }
  const key = parts.map(quoted).join("/");
  return key.length <= 180 ? key : "sha256:" + createHash("sha256").update(key).digest("hex");
}

/** Escapes what a header can't hold, in UTF-8; half a pair of surrogates as its own three bytes, for no key to be lost. */
function quoted(part: string): string {
  const one = (c: string): string => {
    const code = c.charCodeAt(0);
    if (c.length > 1 || code < 0xd800 || code > 0xdfff) return encodeURIComponent(c);
    return [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)].map(escaped).join("");
  };
  return Array.from(part, (c) => (/^[A-Za-z0-9_.~:@+=,-]$/.test(c) ? c : /^[!'()*]$/.test(c) ? escaped(c.charCodeAt(0)) : one(c))).join("");
}

const escaped = (byte: number): string => "%" + byte.toString(16).toUpperCase().padStart(2, "0");

/** The JSON text of arguments: a text as it is, an object in JSON. It can be read in one way only. */
export function textOf(args: Arguments): string {
  const text = typeof args === "string" ? args : written(args, "arguments");
  valuesOf(text);
  return text;
}

/** The values of arguments. Those that JavaScript would change, such as numbers that no double holds, are refused. */
export function valuesOf(text: string): Record<string, unknown> {
  let values: unknown;
  try {
    parse(text, null, numberOf); // refuses numbers that no double holds
    values = JSON.parse(text);
    namesOnce(text);
  } catch (error) {
    if (error instanceof CallError) throw error;
    throw new CallError(`arguments: expected a JSON object: ${(error as Error).message}`);
  }
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new CallError(`arguments: expected a JSON object, such as {}, not ${text.slice(0, 20)}`);
  }
  return values as Record<string, unknown>;
}

/** Refuses a name that stands twice in one object of a JSON text. */
function namesOnce(text: string): void {
  const open: (Set<string> | undefined)[] = []; // of each object the names so far; of a list nothing
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (name !== undefined) {
      const key: string = JSON.parse(name);
      if (open.at(-1)!.has(key)) throw new CallError(`arguments: ${name.slice(0, 40)} stands twice in one object`);
      open.at(-1)!.add(key);
    } else if (token === "{" || token === "[") open.push(token === "{" ? new Set() : undefined);
    else if (token === "}" || token === "]") open.pop();
  }
}

function numberOf(text: string): number {
  if (!Number.isFinite(Number(text)) || !isSafeNumber(text)) {
    throw new CallError(`arguments: no number of JavaScript is ${text.slice(0, 40)}: expected a text, or a smaller number`);
  }
  return Number(text);
}

/** The JSON of a call, and the text of its arguments, which stands in it byte for byte. */
export function bodyOf(call: Call): { body: string; args: string } {
  const { args = "{}", ...rest } = call;
  const text = textOf(args);
  return { body: `${written(rest, "the call").slice(0, -1)},"args":${text}}`, args: text };
}

/** Writes JSON; what it would leave out or change is refused. */
function written(value: object, what: string): string {
  try {
    whole(value, 0);
    return JSON.stringify(value);
  } catch (error) {
    throw new CallError(`${what}: expected what JSON can hold: ${(error as Error).message}`);
  }
}

function whole(value: unknown, depth: number): void {
  if (depth > 1000) throw new TypeError("it is nested more than 1000 deep");
  if (typeof value === "string" && !value.isWellFormed()) throw new TypeError("half a pair of surrogates");
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value}`);
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return;
  if (typeof value !== "object" || ("toJSON" in value && typeof value.toJSON === "function")) {
    throw new TypeError(`a ${typeof value} is no JSON`);
  }
  if (!Array.isArray(value) && ![Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    throw new TypeError(`a ${value.constructor.name} is no plain object`);
  }
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined && !Array.isArray(value)) continue; // JSON leaves such a member out
    whole(name, depth);
    whole(item, depth + 1);
  }
}
