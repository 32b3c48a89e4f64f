/** Permits: a tool checks for itself that people approved the call which it got (docs/contracts/permits.md). */

import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { type CompactVerifyGetKey, type JSONWebKeySet, compactVerify, createLocalJWKSet, errors } from "jose";
import { type Arguments, textOf, valuesOf } from "./call.js";
import { AssentError, CallError } from "./errors.js";
import { isObject, parsed } from "./wire.js";

export const HEADER = "assent-permit";

const AHEAD = 60; // seconds
const LONGEST_LIFE = 3600; // seconds
const LONGEST = 8192; // characters

/** Why a call may not run; the contract's words. */
export type Reason =
  | "malformed" | "untrusted" | "unavailable" | "issuer" | "audience" | "early" | "expired" | "target" | "arguments" | "used";

/** The call may not run. The message may be shown to who sent the call. */
export class PermitRefused extends AssentError {
  constructor(
    readonly reason: Reason,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(`permit refused (${reason}): ${detail}`, options);
  }
}

/** What a permit says: people approved this call, and it may run now, once. */
export interface Permit {
  readonly issuer: string;
  readonly audience: string;
  readonly agent: string;
  readonly request: string; // id of the request that people approved
  readonly binding: string; // digest of the approved call, as the ledger has it
  readonly target: string;
  readonly principal: string; // for whom the call is made; "" when the runtime didn't say
  readonly issued: number; // seconds since 1970
  readonly expires: number;
}

/** Whether this is the first use of an id, which it keeps until the time given, in seconds since 1970. */
export type Used = (id: string, until: number) => boolean | Promise<boolean>;

export interface Checking {
  readonly keys?: JSONWebKeySet; // the issuer's; else they are loaded from it when needed
  readonly used?: Used; // else this process remembers 100,000
  readonly clock?: () => number; // seconds since 1970
}

/** Holds calls against permits. */
export class Verifier {
  readonly #keys: CompactVerifyGetKey;
  readonly #used: Used;
  readonly #clock: () => number;

  constructor(
    readonly issuer: string,
    readonly audience: string,
    checking: Checking = {},
  ) {
    const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
    const near = url?.protocol === "http:" && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname);
    if (!audience || !url || !(url.protocol === "https:" || near)) {
      throw new CallError("permits: expected the issuer's URL, https:// unless on this machine, and an audience");
    }
    this.#clock = checking.clock ?? (() => Date.now() / 1000);
    this.#used = checking.used ?? memory(this.#clock);
    this.#keys = checking.keys
      ? createLocalJWKSet(checking.keys)
      : loaded(issuer.replace(/\/$/, "") + "/.well-known/jwks.json", this.#clock);
  }

  /** Uses the permit for a call that is about to run, or throws PermitRefused: then nothing may run. */
  async verify(permit: string, target: string, args: Arguments): Promise<Permit> {
    const claims = await this.#opened(permit);
    const got = this.#checked(claims, target, args);
    let first: unknown;
    try {
      first = await this.#used(got.request, got.expires + AHEAD);
    } catch (cause) {
      throw new PermitRefused("unavailable", "whether it was used can't be told", { cause });
    }
    if (first !== true) throw new PermitRefused("used", "it was used already; a permit is for one run");
    return got;
  }

  async #opened(permit: string): Promise<Record<string, unknown>> {
    const parts = typeof permit === "string" ? permit.split(".") : [];
    if (parts.length !== 3 || permit.length > LONGEST) throw new PermitRefused("malformed", "expected a JWS in the compact form");
    const [head, body] = parts.map(textIn);
    const header = objectIn(head!);
    const members = Object.keys(header).every((name) => ["alg", "kid", "typ"].includes(name));
    const named = header.kid === undefined || typeof header.kid === "string";
    if (!members || !named || header.alg !== "EdDSA" || header.typ !== "assent-permit+jwt") {
      throw new PermitRefused("malformed", "expected the header of a permit: alg EdDSA, kid and typ");
    }

    try {
      if (header.kid === undefined) throw new errors.JWKSNoMatchingKey();
      await compactVerify(permit, this.#keys, { algorithms: ["EdDSA"] });
    } catch (cause) {
      const wrong = [errors.JWSSignatureVerificationFailed, errors.JWKSNoMatchingKey, errors.JWSInvalid];
      if (wrong.some((kind) => cause instanceof kind)) {
        throw new PermitRefused("untrusted", "it is not signed by a key of its issuer", { cause });
      }
      throw new PermitRefused("unavailable", "the issuer's keys can't be had now", { cause });
    }
    return objectIn(body!);
  }

  #checked(claims: Record<string, unknown>, target: string, args: Arguments): Permit {
    const { permit, digest } = permitOf(claims);
    const now = Math.floor(this.#clock());
    if (permit.issuer !== this.issuer) throw new PermitRefused("issuer", "it is of another issuer");
    if (permit.audience !== this.audience) throw new PermitRefused("audience", "it is for another tool");
    if (permit.issued > now + AHEAD) {
      throw new PermitRefused("early", "it is of a time to come: compare the clocks of tool and server");
    }
    if (permit.expires <= now) throw new PermitRefused("expired", "its time is over: run the call right after it was taken");
    if (permit.target !== target) throw new PermitRefused("target", `it is for another operation than ${target}`);
    if (digestOf(args) !== digest) {
      throw new PermitRefused("arguments", "it is for other arguments: run what the server answered with");
    }
    return permit;
  }
}

const FRESH = 900; // seconds after which keys are loaded anew
const AGAIN = 10; // seconds between two loads
const KEPT = 24 * 3600; // seconds that keys count while they can't be loaded
const PATIENCE = 5000; // milliseconds for a load

/** The issuer's keys: loaded when a permit names one that is unknown, but seldom, and when they are old. */
function loaded(url: string, clock: () => number): CompactVerifyGetKey {
  let [known, at, tried]: [JSONWebKeySet, number, number] = [{ keys: [] }, 0, 0];
  let failed: unknown;
  let loading: Promise<void> = Promise.resolve();
  const load = async (): Promise<void> => {
    try {
      const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
      const keys = (await answer.json()) as JSONWebKeySet;
      createLocalJWKSet(keys); // refuses what is no set
      [known, at, failed] = [keys, clock(), undefined];
    } catch (error) {
      failed = error;
    }
  };

  return async (header, token) => {
    const now = clock();
    const has = (): boolean => known.keys.some((key) => key.kid === header.kid);
    if (now - at > KEPT) known = { keys: [] };
    if ((!has() || now - at > FRESH) && now - tried >= AGAIN) {
      tried = now;
      loading = load();
    }
    if (!has()) await loading;
    if (!has() && failed !== undefined) throw failed;
    return createLocalJWKSet(known)(header, token);
  };
}

/** The text of a part, in its one spelling. */
function textIn(part: string): string {
  const bytes = Buffer.from(part, "base64url");
  if (bytes.toString("base64url") !== part) throw new PermitRefused("malformed", "expected base64url as it is written");
  return bytes.toString("utf8");
}

function objectIn(text: string): Record<string, unknown> {
  const value = parsed(text);
  if (!isObject(value)) throw new PermitRefused("malformed", "expected a JSON object");
  return value;
}

function permitOf(claims: Record<string, unknown>): { permit: Permit; digest: string } {
  const text = (name: string, otherwise?: string): string => {
    const value = claims[name] ?? otherwise;
    if (typeof value !== "string") throw new PermitRefused("malformed", "expected the claims of a permit");
    return value;
  };
  const [issued, expires] = [claims.iat, claims.exp];
  const times = Number.isSafeInteger(issued) && Number.isSafeInteger(expires);
  const [from, to] = [issued as number, expires as number];
  if (!text("jti") || !times || from <= 0 || to <= from || to - from > LONGEST_LIFE) {
    throw new PermitRefused("malformed", "expected an id, and a life of at most an hour");
  }

  const permit = {
    issuer: text("iss"),
    audience: text("aud"),
    agent: text("sub"),
    request: text("jti"),
    binding: text("binding"),
    target: text("target"),
    principal: text("principal", ""),
    issued: from,
    expires: to,
  };
  return { permit, digest: text("arguments") };
}

function digestOf(args: Arguments): string {
  try {
    const canonical = canonicalize(valuesOf(textOf(args)));
    return "sha256:" + createHash("sha256").update(canonical ?? "").digest("hex");
  } catch (cause) {
    throw new PermitRefused("arguments", cause instanceof AssentError ? cause.message : "expected a JSON object", { cause });
  }
}

/** Remembers what was used in this process, and refuses rather than forget what is still good. */
function memory(clock: () => number, limit = 100_000): Used {
  const known = new Map<string, number>();
  let swept = 0;
  return (id, until) => {
    const now = clock();
    if (known.size >= limit || now - swept > 60) {
      for (const [old, over] of known) if (over < now) known.delete(old);
      swept = now;
    }
    if (known.has(id)) return false;
    if (known.size >= limit) throw new RangeError("too many permits are remembered at once");
    known.set(id, until);
    return true;
  };
}
