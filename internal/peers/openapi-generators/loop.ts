// The whole way of a call with the types that openapi-typescript made, and openapi-fetch.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { env: Record<string, string | undefined> };
type Request = components["schemas"]["Request"];

const client = (name: string) =>
  createClient<paths>({ baseUrl: process.env["url"] ?? "", headers: { Authorization: `Bearer ${process.env[name]}` } });
const [runtime, mara, omar, admin] = ["runtime", "mara", "omar", "admin"].map(client) as [Client, Client, Client, Client];
type Client = ReturnType<typeof client>;
let calls = 0;

function must(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

// ok unwraps an answer that must be one.
async function ok<T, E>(answer: Promise<{ data?: T; error?: E; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  calls++;
  must(response.ok && data !== undefined, `${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data;
}

// refused wants a problem of this code.
async function refused<T, E extends { code?: string }>(answer: Promise<{ data?: T; error?: E; response: Response }>, code: components["schemas"]["Code"]) {
  const { error, response } = await answer;
  calls++;
  must(error?.code === code, `${response.url}: ${response.status} ${JSON.stringify(error)}, not ${code}`);
}

const agent = { agent: "trading-desk" };
const trade = { kind: "tool" as const, tool: "execute_trade", args: { amount: 20000, currency: "USD" }, session: "ts-1" };
const path = (id: string) => ({ path: { id } });
const last = (request: Request) => {
  const revision = request.revisions.at(-1);
  must(revision, "a request without a revision");
  return revision;
};
const vote = (who: Client, request: Request) =>
  who.POST("/v1/requests/{id}/votes", {
    params: { ...path(request.id), header: { "If-Match": `"${request.version}"` } },
    body: { verdict: "approve", binding: last(request).binding, shown_fully: true, channel: "typescript" },
  });
const consume = (request: Request, key: string) =>
  runtime.POST("/v1/requests/{id}/consume", { params: path(request.id), body: { key, binding: last(request).binding } });

const decision = await ok(runtime.POST("/v1/agents/{agent}/decide", { params: { path: agent }, body: trade }));
must(decision.outcome === "ask" && decision.require?.stages?.[0]?.people === 2, JSON.stringify(decision));

const opened = await ok(runtime.POST("/v1/agents/{agent}/requests", { params: { path: agent }, body: { call: trade } }));
must(opened.outcome === "pending" && opened.request, JSON.stringify(opened));
const voted = await ok(vote(mara, opened.request));
must(voted.outcome === "counted", JSON.stringify(voted));
await refused(vote(omar, opened.request), "version_mismatch");
const request = await ok(omar.GET("/v1/requests/{id}", { params: { ...path(opened.request.id), query: { wait: "10ms" } } }));
must((await ok(vote(omar, request))).outcome === "approved", "two people of risk have approved");
const consumed = await ok(consume(request, "run-1"));
must(consumed.state === "consumed" && JSON.parse(last(consumed).call.args).amount === 20000, JSON.stringify(consumed));
await refused(consume(request, "run-2"), "consumed");

const page = await ok(mara.GET("/v1/requests", { params: { query: { state: "consumed", limit: 5, order: "newest" } } }));
must(page.requests.some((r) => r.id === request.id), "the list has it");
must((await ok(mara.POST("/v1/freezes", { body: { agent: "trading-desk", reason: "stop" } }))).freezes.length === 1, "one freeze");
const frozen = await ok(runtime.POST("/v1/agents/{agent}/requests", { params: { path: agent }, body: { call: trade } }));
must(frozen.outcome === "deny" && frozen.denied === "frozen", JSON.stringify(frozen));
const lift = () => admin.POST("/v1/freezes/lift", { body: { agent: "trading-desk" } });
const asked = await ok(lift());
must("request" in asked, JSON.stringify(asked));
const half = await ok(vote(mara, asked.request));
must(half.outcome === "counted" && half.request, JSON.stringify(half));
must((await ok(vote(omar, half.request))).outcome === "approved", "two administrators have approved");
const lifted = await ok(lift());
must("freezes" in lifted && lifted.freezes.length === 0, JSON.stringify(lifted));
const tokens = await ok(admin.GET("/v1/tokens"));
must(tokens.tokens.every((t) => t.scopes.length > 0), JSON.stringify(tokens));
await refused(runtime.GET("/v1/tokens"), "missing_scope");
console.log(`TypeScript: ${calls} calls, strictly typed`);
