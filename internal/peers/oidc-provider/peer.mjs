// People sign in at a certified provider with a real browser, and approve what they may.
//
// usage: peer.mjs ASSENT DIRECTORY
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

const [assent, work] = process.argv.slice(2);
const running = new Set();

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

// start runs a program until its output has a line, and returns the program and that line.
async function start(command, args, wanted, options) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  running.add(child);
  child.log = "";
  child.stderr.on("data", (text) => (child.log += text));
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes(wanted)) return [child, line];
  }
  throw new Error(`${command} ${args.join(" ")} ended:\n${child.log}`);
}

async function stop(child) {
  running.delete(child);
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

const home = join(work, "home");
mkdirSync(home);
for (const [name, text] of Object.entries({
  "desk.agf.yaml": `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: trade, approval: true}]}
`,
  "people.yaml": `schema_version: "1.0.0"
people: [{id: mara@example.com, name: Mara, groups: [desk-heads]}]
groups: {risk: {}, desk-heads: {}, admins: {}}
`,
  secret: "secret of the client\n",
})) {
  writeFileSync(join(home, name), text);
}

const providerPort = await freePort();
const assentPort = await freePort();
const issuer = `http://127.0.0.1:${providerPort}`;
const base = `http://127.0.0.1:${assentPort}`;

function startProvider(env) {
  return start("node", ["provider.mjs", String(providerPort), `${base}/auth/callback/default`, `${base}/auth/signed-out`], "listening", {
    env: { ...process.env, ...env },
  });
}

function startAssent(scopes) {
  const args = ["serve", "--agents", ".", "--people", "people.yaml", "--store", "s.db", "--listen", `127.0.0.1:${assentPort}`, "--json", "--dev"];
  args.push("--dev-person", "mara@example.com", "--public-url", base, "--oidc-issuer", issuer, "--oidc-client-id", "assent");
  args.push("--oidc-client-secret-file", "secret", "--oidc-name", "Corp", ...(scopes ? ["--oidc-scopes", scopes] : []));
  return start(assent, args, '"url"', { cwd: home });
}

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });

// signIn signs somebody in with a browser that knows nobody yet, and returns the page that they end at.
async function signIn(who) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.goto(base + "/");
  await click(page, "a.button", "Sign in with Corp");
  await page.type("input[name=login]", who);
  await page.type("input[name=password]", "any");
  await click(page, "button[type=submit]");
  await click(page, "button[type=submit]"); // what the client wants to know
  return page;
}

async function click(page, selector, text) {
  const element = await page.waitForSelector(selector);
  if (text) assert.equal((await element.evaluate((e) => e.textContent)).trim(), text);
  await Promise.all([page.waitForNavigation(), element.click()]);
}

const bodyOf = (page) => page.$eval("body", (e) => e.innerText);

async function refused(who, words) {
  const page = await signIn(who);
  const text = await bodyOf(page);
  assert.match(text, words, `${who} is not refused:\n${text}`);
  await page.browserContext().close();
}

async function comesIn(who, name) {
  const page = await signIn(who);
  assert.equal(page.url(), base + "/", `${who} is not let in:\n${await bodyOf(page)}`);
  assert.match(await bodyOf(page), new RegExp(name));
  return page;
}

const told = (line) => console.log("  " + line);

try {
  const runtime = execFileSync(assent, ["token", "create", "--store", "s.db", "--name", "runtime", "--scopes", "request"], {
    cwd: home,
    stdio: ["ignore", "pipe", "ignore"],
    encoding: "utf8",
  }).trim();

  let [provider] = await startProvider({});
  let [server, line] = await startAssent();
  const register = JSON.parse(line).register.map((a) => a.url);
  assert.deepEqual(register, [`${base}/auth/callback/default`, `${base}/auth/signed-out`]);

  let page = await comesIn("mara", "Mara");
  told("the e-mail address stands in UserInfo alone, and the person is found by it");
  await click(page, "form[action='/auth/sign-out'] button");
  await click(page, "a.button", "Sign out of Corp too");
  await click(page, "button[name=logout]");
  assert.equal(page.url(), base + "/auth/signed-out");
  told("signing out at the provider leads back");
  await page.browserContext().close();

  await refused("rita", /Not in the directory/);
  await refused("eve", /Not in the directory/);
  assert.ok(server.log.includes(`also: [\\"oidc:${issuer}|eve\\"]`), server.log);
  assert.ok(!server.log.includes("eyJ"), "a token is logged");
  told("without the scope for groups whoever only groups would let in is refused, and the log says what to write");
  await stop(server);

  [server] = await startAssent("email,profile,groups");
  page = await comesIn("rita", "Rita");
  const asked = await fetch(`${base}/v1/agents/desk/requests`, {
    method: "POST",
    headers: { Authorization: "Bearer " + runtime, "Content-Type": "application/json" },
    body: JSON.stringify({ call: { kind: "tool", tool: "trade", args: { amount: 1 } } }),
  });
  const { request } = await asked.json();
  await page.goto(`${base}/requests/${request.id}`);
  await approve(page);
  const after = await fetch(`${base}/v1/requests/${request.id}`, { headers: { Authorization: "Bearer " + runtime } });
  const decided = await after.json();
  assert.equal(decided.state, "approved");
  assert.equal(decided.votes[0].person, "rita@example.com");
  assert.ok(decided.votes[0].groups.includes("risk"), JSON.stringify(decided.votes));
  assert.ok(!decided.votes[0].groups.includes("admins"), "the provider put somebody into the group that may freeze");
  await page.goto(base + "/freeze");
  assert.doesNotMatch(await bodyOf(page), /Freeze now/);
  told("with it they come in, approve, and can't freeze though the provider says that they are admins");
  await page.browserContext().close();
  await refused("eve", /Not in the directory/);

  await (await comesIn("mara", "Mara")).browserContext().close();
  for (const ALGORITHM of ["ES256", "EdDSA"]) {
    if (ALGORITHM === "EdDSA") await new Promise((resolve) => setTimeout(resolve, 10_500)); // assent asks again no more often
    await stop(provider);
    [provider] = await startProvider({ ALGORITHM });
    await (await comesIn("mara", "Mara")).browserContext().close();
  }
  told("the provider goes over to ES256 and then EdDSA, with new keys, and nobody restarts assent");

  for (const [clock, life] of [["-45", "30"], ["-120", "3600"], ["120", "3600"]]) {
    await stop(provider);
    [provider] = await startProvider({ CLOCK: clock, LIFE: life, ALGORITHM: "EdDSA" });
    await (await comesIn("mara", "Mara")).browserContext().close();
  }
  await stop(provider);
  [provider] = await startProvider({ CLOCK: "-120", LIFE: "30", ALGORITHM: "EdDSA" });
  await refused("mara", /Not signed in/);
  told("clocks may be apart as far as the standard has it: 45 s with tokens of 30 s, 120 s either way, but no token that is long over");

  await stop(provider);
  await stop(server);
  [server] = await startAssent();
  page = await browser.newPage();
  await page.goto(base + "/auth/start/default");
  assert.match(await bodyOf(page), /Corp can't be reached/);
  const ready = await fetch(base + "/readyz");
  const health = await ready.json();
  assert.equal(ready.status, 200);
  assert.ok(health.degraded && health.checks.some((c) => c.name === "sign_in" && !c.ok));
  assert.match(server.log, /the identity provider can't be reached/);
  told("a provider that is down is said in the log and in /readyz");
  await stop(server);
} finally {
  await browser.close();
  await Promise.all([...running].map(stop));
}

// approve looks at all of a request and approves it, as a person does: the forms decide nothing right after they appear.
async function approve(page) {
  await page.waitForSelector("form[action$='/vote']");
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const button = await page.evaluateHandle(() => [...document.querySelectorAll("form[action$='/vote'] button")].find((b) => b.textContent.trim().startsWith("Approve")));
  await Promise.all([page.waitForNavigation(), button.click()]);
}
