/** docs/guides/typescript.md, as a reader goes through it, and the example. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import * as assent from "assent";
import { Desk, TOP, runsExample } from "./desk.js";

const run = promisify(execFile);
const guide = readFileSync(join(TOP, "docs", "guides", "typescript.md"), "utf8");

/** The program of a name in the guide. */
function program(name: string): string {
  const found = new RegExp("`" + name.replace(".", "\\.") + "`[^`]*:\\n\\n```js\\n(.*?)```", "s").exec(guide);
  assert(found?.[1], name);
  return found[1];
}

/** What the guide shows that a command prints. */
function shown(command: string): string[] {
  return [...guide.matchAll(/```console\n\$ (.*)\n([^]*?)```/g)].filter((m) => m[1] === command).map((m) => m[2]!);
}

/** Starts a program of the guide beside the installed package. */
function starts(desk: Desk, name: string): Promise<{ stdout: string }> {
  const path = join(process.cwd(), `guide-${process.pid}-${name}`);
  writeFileSync(path, program(name));
  return run("node", [path], { env: { ...process.env, ASSENT_SERVER: desk.url, ASSENT_TOKEN: desk.runtime } });
}

test("the programs of the guide print what it shows", async (t) => {
  const desk = await Desk.start(t);
  const agent = /`desk\/agent\.agf\.yaml`:\n\n```yaml\n(.*?)```/s.exec(guide)?.[1];
  const linked = readFileSync(join(TOP, "docs", "guides", "python.md"), "utf8");
  assert(agent && linked.includes(agent), "both guides have one agent");
  await desk.change(readFileSync(join(desk.folder, "desk", "agent.agf.yaml"), "utf8"), agent);

  const [first, second] = shown("node one.js");
  const edited = starts(desk, "one.js");
  await desk.edit('{"symbol": "ACME", "amount": 15000}');
  assert.equal((await edited).stdout, first);
  assert.equal((await starts(desk, "one.js")).stdout, second);

  const tools = starts(desk, "tools.js");
  await desk.vote("deny", { reason: "Too much for one day." });
  assert.equal((await tools).stdout, shown("node tools.js")[0]);
});

test("the guide names what there is", () => {
  for (const [, name] of guide.matchAll(/^\| `(\w+Error|NotRun|StillPending)` \|/gm)) assert(name! in assent, name);
});

test("one turn of the example with three answers", (t) => runsExample(t, "desk"));
