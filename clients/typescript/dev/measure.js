/** Measures the engine in process: node clients/typescript/dev/measure.js, where dist has the package and its engine. */

import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CALLS = 500; // of which the best of 20 rounds counts
const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const desk = at("../../../examples/trading-desk");
const { Engine } = await import("assent/engine");

/** How long something took, in milliseconds, and what it gave. */
async function timed(act) {
  const began = performance.now();
  const gave = await act();
  return [performance.now() - began, gave];
}

const names = readdirSync(desk, { recursive: true }).filter((name) => name.endsWith(".yaml"));
const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(desk, name), "utf8")]));

console.log(`module: ${(statSync(at("../dist/engine.wasm")).size / 1e6).toFixed(1)} MB`);
let engine;
for (const round of ["first", "second"]) {
  let took;
  [took, engine] = await timed(() => Engine.load());
  console.log(`load, ${round}: ${(took / 1e3).toFixed(2)} s`);
}
const [took, plan] = await timed(() => engine.plan({ files, agent: "agent.agf.yaml", policies: ["policies"] }));
console.log(`plan: ${took.toFixed(1)} ms`);

const lines = readFileSync(join(desk, "calls.jsonl"), "utf8").split("\n");
for (const line of [lines[0], lines[6]]) {
  let best = Infinity;
  for (let round = 0; round < 20; round++) {
    const [took] = await timed(() => {
      for (let call = 0; call < CALLS; call++) plan.decideText(line);
    });
    best = Math.min(best, took / CALLS);
  }
  console.log(`${JSON.parse(plan.decideText(line)).outcome}: ${(best * 1e3).toFixed(0)} µs a call`);
}
