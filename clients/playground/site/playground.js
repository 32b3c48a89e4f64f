// The playground: a page, and the worker that runs the engine (assent.wasm). This file is both: the page makes the worker from this text.
// Text from files, links and answers reaches the page through textContent and value only; the page's Trusted Types policy refuses anything else.
"use strict";

if (typeof document === "undefined") worker();
else page();

// worker starts the engine with the module that the page sends, and answers one request after the other.
function worker() {
  onmessage = async ({ data }) => {
    if (data.module) {
      const go = new Go(); // of wasm_exec.js, which stands before this text
      const instance = await WebAssembly.instantiate(data.module, go.importObject);
      go.run(instance);
      postMessage({ ready: true });
      return;
    }
    const began = performance.now();
    const answer = self.assent(data.request);
    postMessage({ id: data.id, answer, took: performance.now() - began });
  };
}

function page() {
  const most = { link: 8192, unpacked: 262144, files: 40, name: 120 }; // characters of a link's fragment, bytes it may unpack to, ...
  const tabs = ["check", "decide", "compare", "ask"];
  const examples = JSON.parse(document.getElementById("examples").textContent);
  const byId = (id) => document.getElementById(id);
  const state = { first: {}, second: null, version: "first", file: "", tab: "check", findings: [] };

  // ---- elements

  // el makes an element. Children are elements or texts, which are never read as HTML.
  function el(name, attributes, ...children) {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "on") e.addEventListener("click", value);
      else if (value !== undefined && value !== false) e.setAttribute(key, value);
    }
    e.append(...children.filter((c) => c !== undefined && c !== null && c !== ""));
    return e;
  }
  const p = (text, cls) => el("p", { class: cls }, text);
  const text = (s, cls = "text") => el("span", { class: cls, dir: "auto" }, s);
  const code = (s) => el("pre", { class: "code" }, s);
  const counted = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`;

  function say(sentence, cls = "note", ...more) {
    byId("said").replaceChildren(...(sentence ? [el("div", { class: "said " + cls }, p(sentence), ...more)] : []));
  }

  // ---- the engine

  let module, source, engine, waiting = [], running = null, sent = 0;
  const scripts = window.trustedTypes
    ? trustedTypes.createPolicy("playground", { createScriptURL: (url) => (url.startsWith("blob:") ? url : "") })
    : { createScriptURL: (url) => url };

  async function load() {
    const got = async (name) => {
      const response = await fetch(name);
      if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
      return response;
    };
    const [program, glue, own] = await Promise.all([got("assent.wasm"), got("wasm_exec.js"), got("playground.js")]);
    const typed = (program.headers.get("Content-Type") || "").startsWith("application/wasm");
    module = typed ? await WebAssembly.compileStreaming(program) : await WebAssembly.compile(await program.arrayBuffer());
    source = [await glue.text(), "\n", await own.text()];
    seal();
    start();
  }

  // seal forbids the page and its workers every request from now on.
  function seal() {
    document.head.append(el("meta", { "http-equiv": "Content-Security-Policy", content: "default-src 'none'; " +
      "script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src data:; worker-src blob:; connect-src 'none'" }));
  }

  function start() {
    const url = URL.createObjectURL(new Blob(source, { type: "text/javascript" }));
    engine = { worker: new Worker(scripts.createScriptURL(url)), ready: false };
    const mine = engine;
    engine.worker.onmessage = ({ data }) => {
      if (data.ready) {
        URL.revokeObjectURL(url);
        mine.ready = true;
        document.documentElement.dataset.ready = "true";
        next();
      } else if (running && data.id === running.id) {
        const done = finish();
        done.resolve({ answer: JSON.parse(data.answer, exact), took: data.took });
        next();
      }
    };
    engine.worker.onerror = (e) => {
      e.preventDefault();
      stop("The engine has ended: " + (e.message || "it could not be started") + ". It was started again.");
    };
    engine.worker.postMessage({ module });
  }

  // stop ends the worker and what it works on, and starts another.
  function stop(sentence) {
    engine.worker.terminate();
    const done = running && finish();
    if (done) done.reject(new Error(sentence));
    start();
  }

  function finish() {
    const done = running;
    clearTimeout(done.timer);
    running = null;
    return done;
  }

  // exact keeps numbers as they are written, where a double would not.
  function exact(_, v, context) {
    return typeof v === "number" && context && JSON.rawJSON && context.source !== String(v) ? JSON.rawJSON(context.source) : v;
  }

  // ask has a request answered. One of the same kind that still waits gives way to it.
  function ask(kind, request) {
    return new Promise((resolve, reject) => {
      waiting = waiting.filter((w) => w.kind !== kind);
      waiting.push({ kind, id: ++sent, text: JSON.stringify({ kind, ...request }), resolve, reject });
      next();
    });
  }

  function next() {
    if (running || !engine || !engine.ready || waiting.length === 0) return;
    running = waiting.shift();
    const limit = Number(document.documentElement.dataset.limit);
    running.timer = setTimeout(() => stop(`No answer within ${limit / 1000} seconds, so the engine was stopped and started again. ` +
      "Conditions with large patterns take long to compare: make the files smaller, or use the command agf-validate."), limit);
    engine.worker.postMessage({ id: running.id, request: running.text });
  }

  // ---- files

  const files = () => state[state.version];
  const names = (of = files()) => Object.keys(of).sort(byPlace);
  const isAgent = (name) => /\.agf\.(ya?ml|json)$/i.test(name);
  const isPolicy = (name) => name.endsWith(".policy.yaml");
  // Agents stand first, those in folders behind them, then policies, then the rest.
  const place = (name) => (isAgent(name) ? 0 : isPolicy(name) ? 2 : 4) + (isAgent(name) && name.includes("/") ? 1 : 0);
  const byPlace = (a, b) => place(a) - place(b) || (a < b ? -1 : 1);
  const folders = (of) => [...new Set(names(of).filter(isPolicy).map((n) => n.split("/").slice(0, -1).join("/") || "."))]
    .filter((d, _, all) => !all.some((up) => up !== d && (up === "." || d.startsWith(up + "/"))));

  function chosen(of) {
    return {
      files: of,
      policies: folders(of),
      config: of["decisions.yaml"] === undefined ? "" : "decisions.yaml",
    };
  }

  function showFiles() {
    const all = names();
    if (!all.includes(state.file)) state.file = all[0] || "";
    byId("files").replaceChildren(...all.map((name) => {
      const changed = state.second && state.first[name] !== state.second[name];
      const b = el("button", { type: "button", role: "tab", "aria-controls": "pane", id: "file-" + all.indexOf(name),
        "aria-selected": String(name === state.file), tabindex: name === state.file ? "0" : "-1",
        class: changed && state.version === "second" ? "changed" : undefined, on: () => open(name) }, name);
      if (changed && state.version === "second") b.title = "differs from the first version";
      return b;
    }));
    byId("pane").setAttribute("aria-labelledby", "file-" + all.indexOf(state.file));
    byId("text").value = files()[state.file] ?? "";
    byId("text").setAttribute("aria-label", `Text of ${state.file}`);
    byId("same").hidden = state.version !== "second";
    byId("remove").disabled = all.length < 2;
    for (const radio of document.getElementsByName("version")) radio.checked = radio.value === state.version;
    for (const select of document.getElementsByClassName("agent")) fillAgents(select, all.filter(isAgent));
    number();
  }

  function fillAgents(select, agents) {
    const before = select.value;
    select.replaceChildren(...agents.map((name) => el("option", { value: name }, name)));
    if (agents.includes(before)) select.value = before;
    select.parentElement.hidden = agents.length < 2;
  }

  function open(name) {
    state.file = name;
    byId("text").scrollTop = byId("text").scrollLeft = 0;
    showFiles();
  }

  // number writes the line numbers, and marks those with findings.
  function number() {
    const count = Math.min(byId("text").value.split("\n").length, 20000), marks = {};
    for (const f of state.tab === "check" ? state.findings : []) {
      if (f.file === state.file && !f.suppressed && marks[f.line] !== "error") marks[f.line] = f.severity;
    }
    const out = [];
    let plain = "";
    for (let i = 1; i <= count; i++) {
      if (!marks[i]) { plain += i + "\n"; continue; }
      out.push(plain, el("span", { class: marks[i] }, String(i)), "\n");
      plain = "";
    }
    byId("gutter").replaceChildren(...out, plain + "\n\n");
    byId("gutter").scrollTop = byId("text").scrollTop;
  }

  function where() {
    const before = byId("text").value.slice(0, byId("text").selectionStart).split("\n");
    byId("place").textContent = `line ${before.length}, column ${[...before.at(-1)].length + 1}`;
  }

  // offset is where a place stands in a text. Columns count characters, not units of UTF-16.
  function offset(textOf, line, column) {
    const lines = textOf.split("\n");
    let at = 0;
    for (let i = 0; i < line - 1 && i < lines.length; i++) at += lines[i].length + 1;
    return at + [...(lines[line - 1] || "")].slice(0, Math.max(0, column - 1)).join("").length;
  }

  // go shows a place in the editor.
  function go(version, at) {
    if (version && version !== state.version) setVersion(version);
    if (files()[at.file] === undefined) return;
    if (state.file !== at.file) open(at.file);
    const box = byId("text"), from = offset(box.value, at.line || 1, at.column || 1);
    const to = at.end_line ? offset(box.value, at.end_line, at.end_column) : offset(box.value, (at.line || 1) + 1, 1) - 1;
    box.focus();
    box.setSelectionRange(from, Math.max(from, to));
    box.scrollTop = Math.max(0, ((at.line || 1) - 4) * parseFloat(getComputedStyle(box).lineHeight));
    box.scrollIntoView({ block: "nearest" });
    where();
  }

  function link(at, version, label) {
    const name = at.line ? `${at.file}:${at.line}:${at.column}` : at.file;
    return el("button", { type: "button", class: "go", on: () => go(version, at) }, label || name);
  }

  function setVersion(version) {
    if (version === "second" && !state.second) state.second = { ...state.first };
    state.version = version;
    showFiles();
  }

  // ---- answers

  const draw = { check: drawCheck, decide: drawDecide, compare: drawCompare, ask: drawAsk };
  const requests = {
    check: () => ["lint", { ...chosen(files()), people: files()["people.yaml"] === undefined ? "" : "people.yaml" }],
    decide: () => ["decide", { ...chosen(files()), agent: byId("agent-decide").value,
      calls: byId("call").value.replaceAll(/[\r\n]+/g, " ") }],
    compare: () => ["diff", { files: state.first, new: state.second || state.first,
      config: state.first["decisions.yaml"] === undefined ? "" : "decisions.yaml" }],
    ask: () => ["ask", { ...chosen(files()), agent: byId("agent-ask").value, query: query() }],
  };

  let timer = 0, version = 0;
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(run, 200);
  }

  async function run() {
    clearTimeout(timer);
    const tab = state.tab, mine = ++version, out = byId("out-" + tab);
    out.classList.add("busy");
    document.documentElement.dataset.busy = "true";
    try {
      const { answer, took } = await ask(...requests[tab]());
      if (mine !== version) return;
      out.replaceChildren(...draw[tab](answer).filter(Boolean));
      byId("took").textContent = `Answered in ${took < 10 ? took.toFixed(1) : Math.round(took)} ms, in this page.`;
    } catch (e) {
      if (mine !== version) return;
      out.replaceChildren(el("div", { class: "said bad" }, p(e.message)));
      byId("took").textContent = "";
    }
    out.classList.remove("busy");
    document.documentElement.dataset.busy = "false";
  }

  const verdict = (cls, strong, rest) => el("div", { class: "verdict " + cls }, el("strong", {}, strong), rest ? el("span", {}, rest) : "");

  // trouble tells why there is no answer, and which findings are behind it.
  function trouble(answer, versionOf) {
    const known = answer.findings ? answer.findings.findings : [];
    return el("div", { class: "said bad" }, p(answer.error[0].toUpperCase() + answer.error.slice(1) + "."),
      known.length ? el("ul", { class: "list" }, ...known.map((f) => finding(f, versionOf))) : "");
  }

  function finding(f, versionOf) {
    const expected = [f.expected ? "Expected: " + f.expected + "." : "", f.nearest ? "Did you mean " + f.nearest + "?" : ""].join(" ").trim();
    return el("li", { class: f.severity },
      el("p", {}, el("span", { class: "chip " + f.severity }, f.severity), text(f.message)),
      expected ? el("p", { class: "meta" }, text(expected)) : "",
      el("p", { class: "meta" }, link(...placeOf(f, versionOf)), ` [${f.rule}]`),
      ...(f.related || []).map((r) => el("p", { class: "meta" }, link(...placeOf(r, versionOf)), " ", text(r.message))));
  }

  // placeOf is a place as the page has it: comparisons name the files of the first version below old, of the second below new.
  function placeOf(at, versionOf) {
    if (!versionOf) return [at, undefined];
    const [, side, file] = /^(old|new)\/(.*)$/s.exec(at.file) || [, "", at.file];
    return [{ ...at, file: file || at.file }, side === "old" ? "first" : side === "new" ? "second" : undefined];
  }

  function drawCheck(answer) {
    const doc = answer.answer;
    state.findings = doc ? doc.findings : [];
    number();
    if (!doc) return [trouble(answer)];
    const open = doc.findings.filter((f) => !f.suppressed), s = doc.summary;
    const parts = [[s.errors, "error"], [s.warnings, "warning"], [s.infos, "remark"]].filter(([n]) => n > 0).map(([n, w]) => counted(n, w));
    const silent = s.suppressed ? `; ${counted(s.suppressed, "finding")} silenced by a comment that says why` : "";
    const head = open.length === 0
      ? verdict("good", "No findings", `in ${counted(doc.files, "file")}${silent}`)
      : verdict(s.errors ? "bad" : "note", parts.join(", "), `in ${counted(doc.files, "file")}${silent}`);
    return [head, open.length ? el("ul", { class: "list", id: "findings" }, ...open.map((f) => finding(f))) : null];
  }

  const outcomes = {
    allow: ["good", "Allow", "the call runs, nobody is asked"],
    ask: ["note", "Ask", "people are asked before it runs"],
    deny: ["bad", "Deny", "the call is refused"],
  };

  function drawDecide(answer) {
    const d = (answer.answer || [])[0];
    if (!d) return [answer.error ? trouble(answer) : p("Write a call as JSON, or pick one of the example.", "quiet")];
    const [cls, name, means] = outcomes[d.outcome];
    const list = d.reasons.map((r) => el("li", { class: d.outcome },
      el("p", {}, text(r.detail || r.code)),
      el("p", { class: "meta" }, [r.policy, r.rule].filter(Boolean).join(" · ") || r.source, ` (${r.code}) `, r.file ? link(r) : ""),
      ...(r.matchers || []).map((m) => el("p", { class: "meta" }, el("span", { class: "chip" }, m.truth),
        text(`${m.key} ${m.test}${m.seen ? ": saw " + m.seen : ""} `), m.line ? link({ ...m, file: r.file }, undefined, `line ${m.line}`) : ""))));
    const silent = list.length === 0 && d.outcome === "allow" ? p("No rule of the agent and no policy has anything to say about it.", "quiet") : null;
    return [
      verdict(cls, name, means),
      d.message && d.outcome === "ask" ? el("div", { class: "message" }, el("p", { class: "meta" }, "The question that people see"), text(d.message)) : null,
      d.require ? el("dl", { class: "facts" }, ...facts(d.require)) : null,
      list.length ? el("h3", {}, list.length === 1 ? "Why" : `Why: ${list.length} reasons`) : null,
      list.length ? el("ul", { class: "list", id: "reasons" }, ...list) : silent,
      answer.findings ? el("div", { class: "said note" }, p("The plan has findings"), el("ul", { class: "list" }, ...answer.findings.findings.map((f) => finding(f)))) : null,
      el("details", {}, el("summary", {}, "The decision as JSON"), code(JSON.stringify(d, null, 2))),
    ];
  }

  // facts say what a requirement asks.
  function facts(r) {
    const rows = [];
    const row = (name, value) => value && rows.push(el("dt", {}, name), el("dd", {}, text(value)));
    row("Who", (r.stages || []).map((s) => `${s.people === 1 ? "1 person" : s.people + " people"} of ${s.group}`).join(", and ") || "anyone who may answer");
    row("Within", r.within);
    row("If nobody answers", { deny: "denied", escalate: "others are called in, then denied", approve: "it runs" }[r.on_timeout]);
    row("Called in", (r.escalate || []).map((e) => `${e.to} after ${e.after}`).join(", "));
    row("Standing approval", r.grants === undefined ? "" : typeof r.grants === "string" ? { forbid: "none" }[r.grants] || r.grants : JSON.stringify(r.grants));
    row("Not shown", r.arguments && r.arguments.redact ? r.arguments.redact.join(", ") : "");
    return rows;
  }

  const verdicts = {
    equivalent: ["good", "Equivalent", "every call is decided as before"],
    tightens: ["good", "Tightens", "nothing runs unasked that did not before"],
    changes: ["note", "Changes", "nothing that protects is other than before"],
    loosens: ["bad", "Loosens", "something is asked or denied less than before"],
    mixed: ["bad", "Mixed", "some of it loosens, some tightens"],
    undecided: ["bad", "Undecided", "this could not be proved, and counts as loosening"],
  };
  const moves = {
    "ask allow": "no longer asks", "allow ask": "now asks", "deny allow": "no longer denies, and allows", "deny ask": "no longer denies, and asks",
    "allow deny": "now denies what was allowed", "ask deny": "now denies what was asked for",
  };

  function targetOf(c) {
    if (c.kind === "mcp_tool") return c.tool ? `${c.server}/${c.tool}` : `server ${c.server}`;
    if (c.kind === "skill") return c.skill ? `${c.agent}/${c.skill}` : `remote agent ${c.agent}`;
    return c.tool || c.agent || "the agent";
  }

  function drawCompare(answer) {
    if (!answer.answer) return [trouble(answer, true)];
    const r = answer.answer, [cls, name, means] = verdicts[r.verdict] || ["bad", r.verdict, ""];
    const same = !state.second || JSON.stringify(state.first) === JSON.stringify(state.second);
    const cell = (name, ...children) => el("td", { "data-name": name }, ...children);
    const rows = r.changes.map((c) => el("tr", {},
      el("td", {}, el("span", { class: "chip " + c.effect }, c.effect)),
      cell("Target", text(targetOf(c)), el("div", { class: "meta" }, c.agent_id)),
      cell("What", text(c.aspect === "outcome" ? moves[`${c.from} ${c.to}`] || "outcome" : `${c.aspect}: ${c.from} → ${c.to}`),
        c.region ? el("div", { class: "meta" }, text("for " + c.region)) : "",
        c.why ? el("div", { class: "meta" }, text("Undecided: " + c.why)) : "",
        el("div", { class: "meta" }, c.old ? link(...placeOf(c.old, true), "first:" + c.old.line) : "", c.old && c.new ? " → " : "",
          c.new ? link(...placeOf(c.new, true), "second:" + c.new.line) : "")),
      cell("Example", c.witness ? witness(c.witness) : "")));
    return [
      verdict(cls, name, means),
      same ? p("Both versions are the same so far. Choose “Second version” above the files and change it.", "quiet") : null,
      rows.length ? el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Changes" }, el("table", { class: "changes" }, el("thead", {},
        el("tr", {}, ...["Effect", "Target", "What", "A call that shows it"].map((h) => el("th", { scope: "col" }, h)))), el("tbody", { id: "changes" }, ...rows))) : null,
    ];
  }

  // witness shows a call, and takes it to the tab that decides.
  function witness(call) {
    const line = JSON.stringify(call);
    return el("div", {}, el("code", { class: "text" }, line), " ", el("button", { type: "button", class: "go", on: () => {
      byId("call").value = line;
      select("decide");
    } }, "decide it"));
  }

  function query() {
    const kind = byId("kind").value, target = byId("target").value.trim(), owner = byId("owner").value.trim();
    const named = { tool: { tool: target }, mcp_tool: { server: owner, tool: target }, skill: { remote: owner, skill: target }, delegation: { delegate: target } }[kind];
    return { ...named, where: byId("where").value.trim(), outcome: byId("outcome").value };
  }

  function drawAsk(answer) {
    if (!answer.answer) return [trouble(answer)];
    const a = answer.answer, what = { allow: "runs unasked", ask: "is asked about", deny: "is denied" }[byId("outcome").value];
    const found = { yes: ["note", "Yes", `there is a call that ${what}`], no: ["good", "No", `not one such call ${what}`],
      undecided: ["bad", "Undecided", a.why || ""] }[a.found];
    return [verdict(...found), a.witness ? el("h3", {}, "For example") : null, a.witness ? witness(a.witness) : null];
  }

  function drawKind() {
    const kind = byId("kind").value, owned = kind === "mcp_tool" || kind === "skill";
    byId("owner").parentElement.hidden = !owned;
    byId("owner").parentElement.firstChild.textContent = kind === "skill" ? "Agent " : "Server ";
    byId("target").parentElement.firstChild.textContent = { tool: "Tool ", mcp_tool: "Tool ", skill: "Skill ", delegation: "Agent " }[kind];
  }

  function select(tab, focus) {
    state.tab = tab;
    for (const name of tabs) {
      const on = name === tab;
      byId("tab-" + name).setAttribute("aria-selected", String(on));
      byId("tab-" + name).tabIndex = on ? 0 : -1;
      byId("panel-" + name).hidden = !on;
    }
    if (focus) byId("tab-" + tab).focus();
    number();
    run();
  }

  // arrows moves through a list of tabs with the keys that people expect.
  function arrows(list, chosen) {
    list.addEventListener("keydown", (e) => {
      const all = [...list.querySelectorAll("[role=tab]")], at = all.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[e.key];
      if (at < 0 || to === undefined) return;
      e.preventDefault();
      chosen(all[(to + all.length) % all.length]);
    });
  }

  // ---- links

  // kept is what a link holds.
  function kept() {
    const out = { v: 1, files: state.first, tab: state.tab, call: byId("call").value, agent: byId("agent-decide").value };
    if (state.second) {
      out.second = state.second;
      out.version = state.version;
    }
    const q = { kind: byId("kind").value, owner: byId("owner").value, target: byId("target").value, where: byId("where").value, outcome: byId("outcome").value };
    return { ...out, query: q };
  }

  async function pack(textOf) {
    const bytes = new TextEncoder().encode(textOf);
    const packed = await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
    return btoa(String.fromCharCode(...new Uint8Array(packed))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }

  // unpack never takes more than a bounded number of bytes out of a fragment.
  async function unpack(fragment) {
    const packed = Uint8Array.from(atob(fragment.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const parts = [];
    for (let size = 0; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most.unpacked) {
        reader.cancel().catch(() => {});
        throw new Error(`it unpacks to more than ${most.unpacked / 1024} KB`);
      }
      parts.push(value);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(await new Blob(parts).arrayBuffer());
  }

  // shaped takes out of what a link holds what this page knows, and refuses anything else.
  function shaped(o) {
    const record = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
    const need = (ok, what) => { if (!ok) throw new Error(what); };
    const taken = (x) => {
      need(record(x) && Object.keys(x).length > 0 && Object.keys(x).length <= most.files, `it must hold 1 to ${most.files} files`);
      const out = {};
      for (const [name, s] of Object.entries(x)) {
        need(/^[\w.-]+(\/[\w.-]+)*$/.test(name) && name.length <= most.name && !/(^|\/)\.\.?(\/|$)/.test(name) && name !== "__proto__", "a file has no usable name");
        need(typeof s === "string", "a file is no text");
        out[name] = s;
      }
      return out;
    };
    need(record(o) && o.v === 1, "it was not made by this page");
    const string = (s) => (typeof s === "string" ? s : "");
    const q = record(o.query) ? o.query : {};
    return { first: taken(o.files), second: o.second === undefined ? null : taken(o.second), version: o.version === "second" && o.second ? "second" : "first",
      tab: tabs.includes(o.tab) ? o.tab : "check", call: string(o.call), agent: string(o.agent),
      query: Object.fromEntries(["kind", "owner", "target", "where", "outcome"].map((k) => [k, string(q[k])])) };
  }

  async function openFragment() {
    const fragment = location.hash.slice(1);
    if (fragment === "") return false;
    try {
      if (fragment.length > most.link) throw new Error(`it has ${fragment.length} characters, and at most ${most.link} are read`);
      const [, body] = /^1\.([A-Za-z0-9_-]+)$/.exec(fragment) || [];
      if (!body) throw new Error("it is no text that this page has written");
      let text;
      try { text = await unpack(body); } catch (e) { throw e instanceof Error && e.message.startsWith("it ") ? e : new Error("it can't be unpacked"); }
      let held;
      try { held = JSON.parse(text); } catch { throw new Error("it holds no JSON"); }
      show(shaped(held));
      say("This comes from a link: whoever made the link has written these files.");
      return true;
    } catch (e) {
      say(`The link can't be opened: ${e.message}. Ask for it again, or go on with an example.`, "bad");
      return false;
    }
  }

  // The texts that look like secrets, each with what it looks like.
  const secretForms = [
    [/-----BEGIN [A-Z ]*PRIVATE KEY/, "a private key"],
    [/\b(AKIA|ASIA)[0-9A-Z]{16}\b/, "an access key of AWS"],
    [/\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,})/, "a token of GitHub or GitLab"],
    [/\bxox[abeoprs]-[A-Za-z0-9-]{10,}/, "a token of Slack"],
    [/\bsk-[A-Za-z0-9_-]{16,}|\bsk_live_[A-Za-z0-9]{10,}|\bAIza[\w-]{30,}/, "an API key"],
    [/\beyJ[\w-]{8,}\.[\w-]{8,}\./, "a signed token (JWT)"],
    [/\bBearer\s+[\w.~+/-]{12,}/i, "a bearer token"],
    [/:\/\/[^\s/:@"']+:[^\s/@"']{3,}@/, "a password in a URL"],
    [/\b(pass(word|wd|phrase)|secret|token|api[_-]?key|client[_-]?secret)\b["']?\s*[:=]\s*["']?(?![{[<]|\$\{|true\b|false\b|null\b|string\b)[^\s"',}\]]{8,}/i, "a value behind a name such as password"],
  ];

  // entropy is how many bits a character of a text carries.
  function entropy(s) {
    const count = {};
    for (const c of s) count[c] = (count[c] || 0) + 1;
    return Object.values(count).reduce((sum, n) => sum - (n / s.length) * Math.log2(n / s.length), 0);
  }

  function secretsOf(textOf) {
    const found = secretForms.filter(([form]) => form.test(textOf)).map(([, what]) => what);
    const long = (textOf.match(/[A-Za-z0-9+/=_-]{28,}/g) || [])
      .some((s) => /\d/.test(s) && /[a-z]/.test(s) && (/[A-Z]/.test(s) ? entropy(s) > 4 : /^[0-9a-f]+$/.test(s) ? entropy(s) > 3 : entropy(s) > 4.2));
    return long ? [...found, "a long random value"] : found;
  }

  // secrets lists where something looks like a secret.
  function secrets() {
    const out = [];
    const look = (of, version, name) => secretsOf(of).forEach((what) => out.push([what, version, name]));
    for (const version of ["first", "second"]) {
      for (const [name, s] of Object.entries(state[version] || {})) {
        if (version === "first" || s !== state.first[name]) s.split("\n").forEach((l, i) => look(l, version, `${name}:${i + 1}`));
      }
    }
    for (const id of ["call", "where", "target", "owner"]) look(byId(id).value, "", id === "call" ? "the call" : "the question");
    return out;
  }

  async function share(sure) {
    byId("shared").hidden = true;
    const found = secrets();
    if (found.length > 0 && !sure) {
      say("This looks as if it held secrets. Whoever gets the link can read them:", "bad",
        el("ul", {}, ...found.slice(0, 8).map(([what, version, name]) => el("li", {}, text(`${name}${version === "second" ? " (second version)" : ""}: ${what}`)))),
        el("p", {}, el("button", { type: "button", class: "button danger", id: "anyway", on: () => share(true) }, "Share it all the same"), " ",
          el("button", { type: "button", class: "button", on: () => say("") }, "Don’t share")));
      byId("anyway").focus();
      return;
    }
    const fragment = "1." + (await pack(JSON.stringify(kept())));
    if (fragment.length > most.link) {
      say(`This is too much for a link: it would have ${fragment.length} characters behind the #, and ${most.link} is the most. Remove files, or send the files themselves.`, "bad");
      return;
    }
    say("");
    history.replaceState(null, "", "#" + fragment);
    byId("link").value = location.href;
    byId("shared").hidden = false;
    byId("link").focus();
    byId("link").select();
  }

  // ---- begin

  function show(s) {
    Object.assign(state, { first: s.first, second: s.second, version: s.version, file: "", findings: [] });
    byId("call").value = s.call;
    for (const [id, v] of Object.entries(s.query)) byId(id).value = v;
    if (!byId("kind").value) byId("kind").value = "tool";
    if (!byId("outcome").value) byId("outcome").value = "allow";
    showFiles();
    if (s.agent) for (const select of document.getElementsByClassName("agent")) if (s.first[s.agent] !== undefined) select.value = s.agent;
    drawKind();
    select(s.tab);
  }

  function showExample(i) {
    const e = examples[i];
    byId("example").value = String(i);
    byId("calls").replaceChildren(el("option", { value: "" }, e.calls.length ? "pick one" : "it has none"), ...e.calls.map((c) => el("option", { value: c }, c)));
    byId("shared").hidden = true;
    show({ first: { ...e.files }, second: { ...e.files, ...e.second }, version: "first", tab: state.tab, call: e.call, agent: "", query: e.query });
  }

  function listen() {
    byId("example").replaceChildren(...examples.map((e, i) => el("option", { value: String(i) }, e.title)));
    byId("example").addEventListener("change", () => { say(""); history.replaceState(null, "", "#"); showExample(Number(byId("example").value)); });
    byId("text").addEventListener("input", () => { files()[state.file] = byId("text").value; number(); where(); changed(); });
    byId("text").addEventListener("scroll", () => { byId("gutter").scrollTop = byId("text").scrollTop; });
    for (const name of ["click", "keyup", "focus"]) byId("text").addEventListener(name, where);
    for (const radio of document.getElementsByName("version")) radio.addEventListener("change", () => { setVersion(radio.value); run(); });
    for (const name of tabs) byId("tab-" + name).addEventListener("click", () => select(name));
    arrows(byId("tab-check").parentElement, (tab) => select(tab.dataset.tab, true));
    arrows(byId("files"), (tab) => { open(tab.textContent); document.querySelector("#files [aria-selected=true]").focus(); });
    for (const id of ["call", "owner", "target", "where"]) byId(id).addEventListener("input", changed);
    for (const id of ["outcome", "agent-decide", "agent-ask"]) byId(id).addEventListener("change", run);
    byId("kind").addEventListener("change", () => { drawKind(); run(); });
    byId("calls").addEventListener("change", () => { if (byId("calls").value) { byId("call").value = byId("calls").value; run(); } });
    byId("add").addEventListener("click", addPolicy);
    byId("remove").addEventListener("click", () => { delete files()[state.file]; showFiles(); run(); });
    byId("same").addEventListener("click", () => { state.second = { ...state.first }; showFiles(); run(); });
    byId("share").addEventListener("click", () => share(false).catch((e) => say("No link could be made: " + e.message, "bad")));
    byId("copy").addEventListener("click", () => navigator.clipboard.writeText(byId("link").value)
      .then(() => { byId("copy").textContent = "Copied"; }, () => { byId("link").focus(); byId("link").select(); }));
    addEventListener("hashchange", openFragment);
  }

  function addPolicy() {
    let n = 1;
    while (files()[`policies/new-${n}.policy.yaml`] !== undefined) n++;
    const name = `policies/new-${n}.policy.yaml`;
    files()[name] = `schema_version: "1.0.0"\npolicy_ref: acme.new-${n}\ndescription: What it is for.\napplies: implicit\nrules:\n  - id: ask-first\n` +
      "    match: {targets: [\"*\"]}\n    approval: true\n    require:\n      stages: [{group: approvers, people: 1}]\n";
    open(name);
    run();
  }

  listen();
  (async () => {
    showExample(0);
    await openFragment();
    try {
      await load();
    } catch (e) {
      const local = location.protocol === "file:" ? " Browsers don’t load it from a file: serve the folder, for example with “python3 -m http.server”." : "";
      say(`The engine could not be loaded: ${e.message}.${local}`, "bad");
    }
  })();
}
