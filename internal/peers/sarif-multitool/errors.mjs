// Prints the errors among the results of a validation, and fails when there are any.
import { readFileSync } from "node:fs";

const run = JSON.parse(readFileSync(process.argv[2])).runs[0];
const notes = run.invocations?.flatMap((i) => i.toolExecutionNotifications ?? []) ?? [];
const errors = [...run.results, ...notes].filter((r) => r.level === "error");
for (const e of errors.slice(0, 10)) {
  console.error(e.ruleId ?? e.descriptor?.id, JSON.stringify(e.message), e.locations?.[0]?.physicalLocation?.region ?? "");
}
process.exit(errors.length > 0 ? 1 : 0);
