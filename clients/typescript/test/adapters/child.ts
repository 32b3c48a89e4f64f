/** One turn in a process of its own, which is killed before or after it uses the permit. */

import { Client } from "assent";
import { type Framework, TRADE } from "./suite.js";

const { ASSENT_DIES, ASSENT_FRAMEWORK, ASSENT_SERVER, ASSENT_TOKEN } = process.env;

async function dies(url: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const uses = String(url).endsWith("/consume");
  if (uses && ASSENT_DIES === "before") process.kill(process.pid, "SIGKILL");
  const response = await fetch(url, init);
  if (uses) process.kill(process.pid, "SIGKILL");
  return response;
}

const { framework }: { framework: Framework } = await import(ASSENT_FRAMEWORK!);
await framework.turn(new Client(ASSENT_SERVER!, ASSENT_TOKEN!, { fetch: dies }), [TRADE]);
