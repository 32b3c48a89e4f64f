// Runs the agent of "probe agui" with HttpAgent, and parses events with the schemas of @ag-ui/core.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { buildResumeArray, HttpAgent } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";

const [url, ...recorded] = process.argv.slice(2);
const headers = { Authorization: "Bearer token-of-the-peer" };
let events = 0;

// check parses an event; nothing of it may get lost.
function check(event) {
  assert.deepEqual(EventSchemas.parse(event), event);
  events++;
}

for (const file of recorded) {
  for (const line of readFileSync(file, "utf8").trim().split("\n")) check(JSON.parse(line));
}
assert.ok(events > 50);
for (const bad of [{ type: "TOOL_CALL_START", toolCallId: "x" }, { type: "RUN_FINISHED", threadId: "t" }]) {
  assert.ok(!EventSchemas.safeParse(bad).success, "the schemas take anything");
}

// run runs the agent and returns its error, or else its interrupts and the last text.
async function run(agent, parameters) {
  let failure, outcome, interrupts = [];
  const onEvent = ({ event }) => check(event);
  const result = agent.runAgent(parameters, {
    onEvent,
    onRunErrorEvent: ({ event }) => void (failure = event),
    onRunFinishedEvent: (finished) => void ({ outcome, interrupts = [] } = finished),
  });
  await result.catch((error) => void (failure ??= error));
  return { failure, outcome, interrupts, text: agent.messages.at(-1)?.content };
}

function start(threadId) {
  const agent = new HttpAgent({ url, threadId, headers });
  agent.addMessage({ id: "m-" + threadId, role: "user", content: "Pay the rent." });
  return agent;
}

// answer answers the interrupt about each tool.
function answer(interrupts, byTool) {
  const name = (i) => i.metadata.agent_framework.function_call.name;
  return buildResumeArray(interrupts, Object.fromEntries(interrupts.map((i) => [i.id, byTool[name(i)]])));
}

const approved = (more = {}) => ({ status: "resolved", payload: { approved: true, ...more } });
const rejected = (more = {}) => ({ status: "resolved", payload: { approved: false, ...more } });

async function asked(threadId) {
  const agent = start(threadId);
  const first = await run(agent);
  assert.equal(first.outcome, "interrupt");
  assert.equal(first.interrupts.length, 2, "two calls need approval, the third runs");
  return [agent, first.interrupts];
}

const transfer = (changed) => JSON.stringify({ to: "bob", amount: 5, reason: "rent", ...changed });
for (const [thread, answers, expected] of [
  ["approve", { transfer: approved(), close_account: rejected({ reason: "keep it" }) }, [`ran transfer ${transfer()}`, "keep it"]],
  ["edit", { transfer: approved({ amount: 4 }), close_account: { status: "cancelled" } }, [`ran transfer ${transfer({ amount: 4 })}`, "cancelled by the user"]],
  ["reason", { transfer: approved({ reason: "looks fine", editedArgs: { to: "bob", amount: 3, reason: "food" } }), close_account: rejected() },
    [`ran transfer ${transfer({ amount: 3, reason: "food" })}`]],
  ["reject", { transfer: rejected({ reason: "not today" }), close_account: approved() }, ["not today", `ran close_account {"id":"9007199254740993"}`]],
]) {
  const [agent, interrupts] = await asked(thread);
  const { failure, outcome, text } = await run(agent, { resume: answer(interrupts, answers) });
  assert.equal(failure, undefined, `${thread}: ${failure?.message}`);
  assert.notEqual(outcome, "interrupt");
  assert.ok(text.includes("ran balance"), text);
  for (const words of expected) assert.ok(text.replaceAll("\\", "").includes(words), `${thread}: ${text} lacks ${words}`);
}

// What must be refused, with nothing run: a partial answer, a reason that could be an edit, an unknown argument, an answer to nothing.
for (const [thread, resume, code] of [
  ["partial", (all) => [{ interruptId: all[0].id, status: "resolved", payload: { approved: true } }], "APPROVAL_RESUME_MISSING_INTERRUPT"],
  ["doubtful", (all) => answer(all, { transfer: approved({ reason: "looks fine" }), close_account: rejected() }), "APPROVAL_RESUME_INVALID_RESPONSE"],
  ["more", (all) => answer(all, { transfer: approved({ iban: "x" }), close_account: rejected() }), "APPROVAL_RESUME_INVALID_RESPONSE"],
  ["unknown", () => [{ interruptId: "nothing", status: "resolved", payload: { approved: true } }], "APPROVAL_RESUME_NOT_FOUND"],
]) {
  const [, interrupts] = await asked(thread);
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ threadId: thread, runId: "r2", messages: [], resume: resume(interrupts) }) });
  const event = JSON.parse((await response.text()).replace(/^data: /, ""));
  check(event);
  assert.equal(event.type, "RUN_ERROR");
  assert.equal(event.code, code, `${thread}: ${event.message}`);
}
console.log(`${events} events as the schemas want them; approvals, edits, rejections and a cancellation resumed; 4 wrong answers refused`);
process.exit(0);
