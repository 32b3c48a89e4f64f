/** Webhooks, as Standard Webhooks lays down: who sent one, when, and whether it came before. */

import { Webhook } from "standardwebhooks";
import { AssentError } from "./errors.js";
import { isObject, parsed } from "./wire.js";

/** Answer with 400: this is no message of the server. */
export class WebhookError extends AssentError {}

/** Answer with 204: this message has been received already. */
export class Replayed extends WebhookError {}

/** It wakes you up, no more: read the request before you act. Nothing that arrives here approves a call. */
export interface Message {
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** Headers of a request, as node:http or fetch has them. */
export type Arrived = Headers | { readonly [name: string]: string | readonly string[] | undefined };

/** Checks messages: signature, age, and ids that came before, of which it remembers the last `remember`. */
export class Receiver {
  readonly #hooks: Webhook[];
  readonly #seen = new Set<string>();

  constructor(
    secrets: string | readonly string[],
    readonly remember = 100_000,
  ) {
    const given = typeof secrets === "string" ? [secrets] : secrets;
    if (given.length === 0 || given.some((secret) => !/^whsec_[A-Za-z0-9+/]{16,}={0,2}$/.test(secret))) {
      throw new WebhookError("the secret of the webhook: expected whsec_ and base64");
    }
    this.#hooks = given.map((secret) => new Webhook(secret));
  }

  /** The message, once. Where acting on it fails, `forget` it: it is delivered again. */
  receive(headers: Arrived, body: string | Uint8Array): Message {
    const message = this.verify(headers, body);
    if (this.#seen.has(message.id)) throw new Replayed(`${message.id} has been received already`);
    this.#seen.add(message.id);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= this.remember) break;
      this.#seen.delete(oldest);
    }
    return message;
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }

  /** The message, whether it came before or not. */
  verify(headers: Arrived, body: string | Uint8Array): Message {
    const pairs = headers instanceof Headers ? [...headers] : Object.entries(headers);
    const lower = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), String(value)]));
    let text: string;
    try {
      text = typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body);
    } catch {
      throw new WebhookError("the body is no message of the server");
    }
    if (!this.#hooks.some((hook) => fits(hook, text, lower))) {
      throw new WebhookError("no signature of the last five minutes fits: look at the secret, at clocks, and at proxies");
    }
    const content = parsed(text);
    if (!isObject(content) || typeof content.type !== "string" || !isObject(content.data)) {
      throw new WebhookError("the body is no message of the server");
    }
    return { id: lower["webhook-id"] ?? "", type: content.type, data: content.data };
  }
}

function fits(hook: Webhook, body: string, headers: Record<string, string>): boolean {
  try {
    hook.verify(body, headers, { jsonParse: false });
    return true;
  } catch {
    return false;
  }
}
