/** Arguments as a tool reads them: with its defaults, and refused before people are asked if the tool can't run. */

import { isDeepStrictEqual } from "node:util";
import { type Arguments, valuesOf } from "./call.js";
import { CallError } from "./errors.js";
import { isObject } from "./wire.js";

const DEPTH = 100; // of schemas and values; a schema may refer to itself

type Values = Record<string, unknown>;

/** A schema of https://standardschema.dev, as zod's are. */
export interface Checking {
  readonly "~standard": { validate(value: unknown): Checked | Promise<Checked> };
}
type Checked = { readonly issues?: readonly Issue[] | undefined; readonly value?: unknown };
type Issue = { readonly message: string; readonly path?: readonly unknown[] | undefined };

export const isChecking = (schema: unknown): schema is Checking =>
  schema !== null && ["object", "function"].includes(typeof schema) && isObject((schema as Values)["~standard"]);

/** Adds the defaults of a schema's library to arguments. Throws CallError if the schema does not take all of them. */
export async function byChecking(name: string, args: Values, schema: Checking): Promise<Values> {
  const { issues, value = args } = await schema["~standard"].validate(args);
  const left = Object.keys(args).filter((key) => !issues && !Object.hasOwn(Object(value), key));
  const why = [...(issues ?? []).map(reason), ...left.map((key) => `it takes no ${key}`)];
  if (why.length > 0) throw new CallError(`${name} can't be called with this: ${why.slice(0, 5).join("; ")}`);

  const filled = withMissing(name, args, value, DEPTH) as Values;
  if (isDeepStrictEqual(filled, args)) return args;
  const again = await schema["~standard"].validate(filled);
  return again.issues || !isDeepStrictEqual(again.value, value) ? args : filled; // a transformed value is no argument
}

/** Adds the defaults of a JSON schema to arguments. Throws CallError if a required one is missing. A text to which nothing is added stays. */
export function bySchema<A extends Arguments>(name: string, args: A, schema: unknown): A | string {
  const values = typeof args === "string" ? valuesOf(args) : args;
  const filled = filledIn(name, values, schema, schema, "", DEPTH);
  if (isDeepStrictEqual(filled, values)) return args;
  return typeof args === "string" ? JSON.stringify(filled) : (filled as A);
}

const segment = (part: unknown): unknown => (isObject(part) ? part.key : part);

function reason({ message, path = [] }: Issue): string {
  return path.length > 0 ? `${path.map(segment).join(".")}: ${message}` : message;
}

/** What was given, with the members that reading it added. */
function withMissing(name: string, given: unknown, read: unknown, depth: number): unknown {
  if (depth === 0) throw new CallError(`${name} can't be called with this: it is nested more than ${DEPTH} deep`);
  if (Array.isArray(given) && Array.isArray(read) && given.length === read.length) {
    return given.map((each, i) => withMissing(name, each, read[i], depth - 1));
  }
  if (!isObject(given) || !isObject(read)) return given;
  const added = Object.entries(read).filter(([key, value]) => !Object.hasOwn(given, key) && value !== undefined);
  const kept = Object.entries(given).map(([key, value]) => [key, withMissing(name, value, own(read, key), depth - 1)]);
  return Object.fromEntries([...kept, ...added.map(([key, value]) => [key, shown(name, key, value)])]);
}

const own = (of: Values, key: string): unknown => (Object.hasOwn(of, key) ? of[key] : undefined);

/** A default as JSON. One that JSON can't hold is refused, because people would not see what runs. */
function shown(name: string, field: string, value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text === undefined) throw new CallError(`the default of ${field} of ${name} can't be shown to people: expected a value of JSON`);
  return JSON.parse(text);
}

function filledIn(name: string, value: unknown, given: unknown, root: unknown, path: string, depth: number): unknown {
  const schema = resolved(given, root);
  if (depth === 0 || !isObject(schema)) return value;
  if (Array.isArray(value)) return value.map((each, i) => filledIn(name, each, schema.items, root, `${path}[${i}]`, depth - 1));
  if (!isObject(value)) return value;

  const out = new Map(Object.entries(value));
  for (const [field, of] of properties(schema, root, DEPTH)) {
    const sub = resolved(of, root);
    if (!out.has(field) && isObject(sub) && "default" in sub) out.set(field, sub.default);
    if (out.has(field)) out.set(field, filledIn(name, out.get(field), sub, root, path ? `${path}.${field}` : field, depth - 1));
  }
  for (const field of required(schema, root, DEPTH)) {
    if (!out.has(field)) throw new CallError(`${name} can't be called with this: ${path ? `${path}.${field}` : field} is missing`);
  }
  return Object.fromEntries(out);
}

const parts = (schema: Values, root: unknown, depth: number): Values[] =>
  depth > 0 && Array.isArray(schema.allOf) ? schema.allOf.map((each) => resolved(each, root)).filter(isObject) : [];

function properties(schema: Values, root: unknown, depth: number): [string, unknown][] {
  const inherited = parts(schema, root, depth).flatMap((each) => properties(each, root, depth - 1));
  return [...inherited, ...(isObject(schema.properties) ? Object.entries(schema.properties) : [])];
}

function required(schema: Values, root: unknown, depth: number): string[] {
  const inherited = parts(schema, root, depth).flatMap((each) => required(each, root, depth - 1));
  return [...inherited, ...(Array.isArray(schema.required) ? schema.required.filter((each) => typeof each === "string") : [])];
}

/** A schema behind its local references, and the one alternative of a schema that also takes null. */
function resolved(given: unknown, root: unknown): unknown {
  let schema = given;
  for (let i = 0; i < DEPTH && isObject(schema); i++) {
    const beside = "default" in schema ? { default: schema.default } : {};
    const ref = schema.$ref;
    const choices = schema.anyOf ?? schema.oneOf;
    const others = Array.isArray(choices) ? choices.filter((each) => !isDeepStrictEqual(each, { type: "null" })) : [];
    if (typeof ref === "string" && ref.startsWith("#")) {
      const names = ref.slice(1).split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
      const target = names.reduce((at: unknown, name) => (isObject(at) ? own(at, name) : undefined), root);
      schema = isObject(target) ? { ...target, ...beside } : {};
    } else if (others.length === 1 && !("properties" in schema) && isObject(others[0])) {
      schema = { ...others[0], ...beside };
    } else return schema;
  }
  return {};
}
