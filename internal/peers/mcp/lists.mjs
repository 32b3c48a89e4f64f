// Reads lists with the schemas of the official TypeScript SDKs, 1 and 2. Fails if one of the gateway is refused.
//
// usage: lists.mjs FILE
import { readFileSync } from "node:fs";
import * as v1 from "@modelcontextprotocol/sdk/types.js";
import * as v2 from "@modelcontextprotocol/core";

const names = {
  "tools/list": "ListToolsResultSchema",
  "prompts/list": "ListPromptsResultSchema",
  "resources/list": "ListResourcesResultSchema",
  "resources/templates/list": "ListResourceTemplatesResultSchema",
};
let raw = 0;
for (const line of readFileSync(process.argv[2], "utf8").trim().split("\n")) {
  const list = JSON.parse(line);
  for (const [sdk, schemas] of Object.entries({ v1, v2 })) {
    const read = schemas[names[list.method]].safeParse(list.result);
    if (read.success) continue;
    if (list.raw) raw++;
    else {
      console.log(`${sdk}, ${list.version}: ${JSON.stringify(list.result)}: ${read.error.message}`);
      process.exitCode = 1;
    }
  }
}
console.log(`refused as drawn: ${raw}`);
