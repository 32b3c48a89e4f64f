/** Where a call stands that a run paused for. */

import type { Call } from "../call.js";
import type { Client } from "../client.js";
import type { Opened, Request } from "../models.js";

export interface Seen {
  readonly opened: Opened;
  readonly request: Request | undefined; // where people were asked
}

/** Presents a call, or joins what the same key presented, and gives people until then (milliseconds). Nothing is taken. */
export async function look(client: Client, agent: string, call: Call, key: string, until: number): Promise<Seen> {
  const opened = await client.open(agent, call, { key });
  let request = opened.outcome === "pending" ? opened.request : undefined;
  while (request?.state === "pending" && Date.now() < until) {
    request = await client.request(request.id, request.version, (until - Date.now()) / 1000);
  }
  return { opened, request };
}
