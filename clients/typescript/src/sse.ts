/** Server-sent events of the ledger (GET /v1/events), without I/O. */

import { type EventSourceParser, createParser } from "eventsource-parser";
import { UnreadableError } from "./errors.js";
import { isObject, parsed } from "./wire.js";

export const FROM_NOW = -2; // begin with what happens next
export const FROM_START = -1; // begin with the first entry there is
export const SILENCE = 60; // seconds that a stream may bring nothing, not even a heartbeat
const MAX_EVENT = 4 << 20; // bytes without the end of an event

/** One sealed entry of the ledger. */
export interface Event {
  readonly index: number;
  readonly type: string;
  readonly leaf: Record<string, unknown>;
}

/** Reads the events of one connection after another. `after` is the entry to go on behind. */
export class Reader {
  #parser: EventSourceParser | undefined;
  #decoder = new TextDecoder("utf-8", { fatal: true });
  #found: Event[] = [];
  #since = 0; // bytes since the last event

  constructor(public after: number) {}

  /** The headers of the next connection. */
  connect(): Record<string, string> {
    this.#found = [];
    this.#since = 0;
    this.#decoder = new TextDecoder("utf-8", { fatal: true });
    this.#parser = createParser({
      onId: (id) => this.#move(id),
      onEvent: (event) => this.#event(event.id ?? "", event.event ?? "", event.data),
      onComment: () => (this.#since = 0),
    });
    return { Accept: "text/event-stream", ...(this.after === FROM_NOW ? {} : { "Last-Event-ID": String(this.after) }) };
  }

  feed(chunk: Uint8Array): Event[] {
    this.#since += chunk.length;
    if (this.#since > MAX_EVENT) throw new UnreadableError("the stream of events: an event without an end");
    try {
      this.#parser?.feed(this.#decoder.decode(chunk, { stream: true }));
    } catch (error) {
      if (error instanceof UnreadableError) throw error;
      throw new UnreadableError("the stream of events: it is no UTF-8");
    }
    return this.#found.splice(0);
  }

  /** Goes on behind an entry that was told of by its number, with what happened or without. */
  #move(id: string): void {
    if (!/^(-1|[0-9]{1,15})$/.test(id)) throw new UnreadableError(`the stream of events: the entry "${id.slice(0, 40)}" can't be read`);
    this.after = Number(id);
    this.#since = 0;
  }

  #event(id: string, type: string, data: string): void {
    const leaf = parsed(data);
    if (!/^[0-9]{1,15}$/.test(id) || !isObject(leaf)) {
      throw new UnreadableError(`the stream of events: the entry "${id.slice(0, 40)}" can't be read`);
    }
    this.#found.push({ index: Number(id), type, leaf });
  }
}
