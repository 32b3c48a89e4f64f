/**
 * Decisions in this process, without a server: the engine as a WebAssembly module. The answers are those of `assent
 * decide` and `agf-validate`, byte for byte. The module has no files, no network and no environment. Whoever decides
 * here asks nobody: where the outcome is ask, take the call from a server.
 */

import { type Call, bodyOf } from "./call.js";
import { AssentError } from "./errors.js";
import type { Decision } from "./models.js";
import { isObject, parsed, readDecision } from "./wire.js";

const MOST_INPUT = 64 << 20; // bytes, of the module

/** The engine gave no answer that can be used. Nothing may run. */
export class EngineError extends AssentError {}

/** What a plan is made of: texts of files by their paths. Policies are folders; the others are paths in files. */
export interface Files {
  readonly files: { readonly [path: string]: string };
  readonly agent: string;
  readonly policies?: readonly string[];
  readonly parents?: readonly string[];
  readonly config?: string;
}

export interface Finding {
  readonly file: string;
  readonly line?: number;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** What a module exports (docs/contracts/engine.md). */
interface Exports {
  readonly memory: WebAssembly.Memory;
  _initialize(): void;
  assent_input(size: number): number;
  assent_run(): number;
  assent_open(): number;
  assent_decide(decider: number): number;
  assent_close(decider: number): void;
  assent_output(): number;
}

/** The module, compiled and started. */
export class Engine {
  #exports!: Exports;
  /** How often it was started: once, and after each time that it broke off. */
  starts = 0;

  private constructor(private readonly module: WebAssembly.Module) {
    this.#start();
  }

  /** Compiles the package's own module, or another one's bytes: outside of Node, fetch engine.wasm and give them. */
  static async load(bytes?: BufferSource): Promise<Engine> {
    return new Engine(await WebAssembly.compile(bytes ?? (await own())));
  }

  /** The answer to a request (docs/contracts/engine.md), which has kind lint or decide. */
  run(request: object | string): string {
    return this.ask("assent_run", typeof request === "string" ? request : JSON.stringify(request));
  }

  /** Compiles an agent with its policies. */
  plan(files: Files): Plan {
    return new Plan(this, JSON.stringify({ kind: "decide", ...files }));
  }

  /** Gives an export an input. A module that trapped has ended: it is started anew, and plans open again. */
  ask(name: "assent_run" | "assent_open" | "assent_decide", text: string, decider = 0): string {
    if (!text.isWellFormed()) throw new EngineError("half a pair of surrogates is no text");
    const data = new TextEncoder().encode(text);
    try {
      const at = data.length <= MOST_INPUT ? this.#exports.assent_input(data.length) >>> 0 : 0;
      if (at === 0) throw new EngineError(`there is no room for an input of ${data.length} bytes`);
      new Uint8Array(this.#exports.memory.buffer, at, data.length).set(data);
      const size = this.#exports[name](decider) >>> 0;
      const out = this.#exports.assent_output() >>> 0;
      return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(this.#exports.memory.buffer, out, size));
    } catch (error) {
      if (error instanceof EngineError) throw error;
      this.#start();
      throw new EngineError(`the engine broke off: ${(error as Error).message}`, { cause: error });
    }
  }

  close(decider: number): void {
    this.#exports.assent_close(decider);
  }

  #start(): void {
    const instance = new WebAssembly.Instance(this.module, nothing(this.module, () => this.#exports.memory));
    this.#exports = instance.exports as unknown as Exports;
    this.starts++;
    this.#exports._initialize();
  }
}

/** An agent with its policies, which decides calls. `findings` say what is wrong with the files. */
export class Plan {
  findings: readonly Finding[] = [];
  #decider = 0;
  #started = 0;

  constructor(
    private readonly engine: Engine,
    private readonly request: string,
  ) {
    this.#open();
  }

  /** Decides a call without asking anybody. */
  decide(call: Call): Decision {
    return readDecision(this.decideText(bodyOf(call).body));
  }

  /** The decision about a call in JSON, as `assent decide` prints it. */
  decideText(call: string): string {
    if (this.#decider && this.#started !== this.engine.starts) this.#open();
    const answer = this.engine.ask("assent_decide", call, this.#decider);
    if (!answer) throw new EngineError("the plan decides nothing: it has been closed");
    return answer;
  }

  /** Frees what the engine keeps of it. It denies every call from then on. */
  close(): void {
    if (this.#started === this.engine.starts) this.engine.close(this.#decider);
    this.#decider = 0;
  }

  #open(): void {
    const said = parsed(this.engine.ask("assent_open", this.request));
    const answer = isObject(said) ? said : {};
    const report = isObject(answer.findings) ? answer.findings.findings : [];
    this.findings = Array.isArray(report) ? report : [];
    this.#started = this.engine.starts;
    this.#decider = typeof answer.decider === "number" ? answer.decider : 0;
    if (this.#decider) return;
    const told = this.findings.map((f) => `\n${f.file}:${f.line ?? 1}: ${f.message}`).join("");
    throw new EngineError(`${answer.error ?? "there is no plan"}${told}`);
  }
}

/** The module in the package. */
async function own(): Promise<BufferSource> {
  const { readFile } = await import("node:fs/promises");
  try {
    return await readFile(new URL("../engine.wasm", import.meta.url));
  } catch (error) {
    throw new EngineError("this package was built without its engine: build it with clients/typescript/build", { cause: error });
  }
}

/** WASI preview 1 for a module that needs nothing of it: time and random numbers are there, files and streams are not. */
function nothing(module: WebAssembly.Module, memory: () => WebAssembly.Memory): WebAssembly.Imports {
  const view = (): DataView => new DataView(memory().buffer);
  const DONE = 0;
  const NO_FILE = 8;
  const known: Record<string, (...args: number[]) => number> = {
    args_sizes_get: (count = 0, size = 0) => (view().setUint32(count, 0, true), view().setUint32(size, 0, true), DONE),
    environ_sizes_get: (count = 0, size = 0) => (view().setUint32(count, 0, true), view().setUint32(size, 0, true), DONE),
    args_get: () => DONE,
    environ_get: () => DONE,
    sched_yield: () => DONE,
    clock_time_get: (clock = 0, _precision = 0, at = 0) => {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(milliseconds * 1e6)), true);
      return DONE;
    },
    random_get: (at = 0, size = 0) => {
      const bytes = new Uint8Array(memory().buffer, at, size);
      for (let i = 0; i < size; i += 65536) crypto.getRandomValues(bytes.subarray(i, Math.min(i + 65536, size)));
      return DONE;
    },
    fd_write: (_file = 0, parts = 0, count = 0, written = 0) => {
      let size = 0;
      for (let i = 0; i < count; i++) size += view().getUint32(parts + 8 * i + 4, true);
      view().setUint32(written, size, true);
      return DONE;
    },
    proc_exit: (code = 0) => {
      throw new EngineError(`it ended with ${code}`);
    },
  };
  const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = known[name] ?? (() => NO_FILE);
  }
  return imports;
}
