// What the pages do beyond HTML. Nothing here is needed to decide: forms, links and the server's checks stand on their own.

const root = document.documentElement;
root.classList.add("scripted");
const body = document.body;
const live = document.getElementById("live");
const say = (text) => { live.textContent = text; };

// Buttons that decide are armed only when the page has been in front for a while, and again after coming back to it, so that a click or
// key meant for something else does not decide.
const armAfter = Number(body.dataset.arm) || 700;
let armedAt = Infinity;
let armTimer;

// Some buttons stay in view while the page is scrolled. They are armed once the end of what they decide about has been in view.
const reached = new Set();
const unread = (button) => button?.dataset.after && !reached.has(button.dataset.after);

function arm() {
  for (const b of document.querySelectorAll("[data-armed]")) {
    if (performance.now() >= armedAt && !unread(b)) b.removeAttribute("aria-disabled");
    else b.setAttribute("aria-disabled", "true");
  }
}

function disarm() {
  armedAt = Infinity;
  clearTimeout(armTimer);
  arm();
  armTimer = setTimeout(() => { armedAt = performance.now(); arm(); }, armAfter);
}

const ends = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) reached.add(e.target.id);
  arm();
});
for (const b of document.querySelectorAll("[data-after]")) ends.observe(document.getElementById(b.dataset.after));

addEventListener("focus", disarm);
addEventListener("pageshow", disarm);
document.addEventListener("visibilitychange", () => { if (!document.hidden) disarm(); });
disarm();

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-guard]")) return;
  if (performance.now() < armedAt) {
    event.preventDefault();
    say("Not yet: this page has only just come to the front. Look, then press again.");
    return;
  }
  if (unread(event.submitter)) {
    event.preventDefault();
    say("Not yet: scroll to the end of the call first.");
    return;
  }
  if (form.dataset.sent) event.preventDefault(); // one answer for one press
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => { for (const f of document.querySelectorAll("[data-sent]")) delete f.dataset.sent; });

// Countdowns. The last five minutes and the last minute are said aloud, once each.
const told = new Set();

function words(seconds) {
  const ago = seconds < 0;
  const s = Math.abs(seconds);
  const span = s < 120 ? `${Math.floor(s)} s` : s < 5400 ? `${Math.floor(s / 60)} min`
    : s < 172800 ? `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`.replace(" 0 min", "") : `${Math.floor(s / 86400)} days`;
  return ago ? `${span} ago` : `in ${span}`;
}

// The server's clock decides, so its pages carry it.
const ahead = Date.parse(body.dataset.now) - Date.now();

function countdown() {
  for (const t of document.querySelectorAll("time[data-deadline]")) {
    const left = (Date.parse(t.dateTime) - Date.now() - ahead) / 1000;
    t.textContent = words(left);
    t.classList.toggle("soon", left < 300);
    for (const mark of [300, 60]) {
      const key = `${t.dateTime}${t.dataset.name}${mark}`;
      if (left > 0 && left <= mark && !told.has(key)) {
        told.add(key);
        say(`${t.dataset.name}: ends ${words(left)}`);
      }
    }
  }
}
countdown();
setInterval(countdown, 1000);

// Times are UTC; whoever points at one is told their own.
function local() {
  for (const t of document.querySelectorAll("time:not([title])")) t.title = new Date(t.dateTime).toLocaleString();
}
local();

// Live: the stream only says that something changed; what changed is asked for. Requests that are being read are not pulled away.
const list = document.getElementById("list");
const request = document.getElementById("request");
let pending;

// However often something changes, the list is asked for once in a while.
function refreshIn(ms) {
  pending ??= setTimeout(() => { pending = undefined; refreshList(); }, ms);
}

async function refreshList() {
  const chosen = new Set([...list.querySelectorAll("input[name=id]:checked")].map((c) => c.value));
  const current = list.querySelector(".current")?.id;
  const focused = document.activeElement?.closest?.(".request")?.id;
  const answer = await fetch(list.dataset.from, { headers: { Accept: "text/html" } });
  if (answer.status === 429) { refreshIn(5000); return; }
  if (!answer.ok) { say("The list can't be refreshed. Reload the page."); return; }
  const before = document.getElementById("total")?.textContent;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const at = anchor();
  list.replaceChildren(...page.body.childNodes);
  stay(at);
  for (const c of list.querySelectorAll("input[name=id]")) c.checked = chosen.has(c.value);
  if (current) document.getElementById(current)?.classList.add("current");
  if (focused) document.getElementById(focused)?.querySelector("h2 a").focus();
  const after = document.getElementById("total")?.textContent;
  if (after !== before) say(after);
  sameRules();
  countdown();
  local();
}

// What is read stays where it is when the list around it changes.
function anchor() {
  const rows = [...list.querySelectorAll(".request")];
  const row = list.querySelector(".current") ?? rows.find((r) => r.getBoundingClientRect().bottom > 0);
  return row && { id: row.id, top: row.getBoundingClientRect().top };
}

function stay(at) {
  const row = at && document.getElementById(at.id);
  if (row && scrollY > 0) scrollBy(0, row.getBoundingClientRect().top - at.top);
}

function noticeChange() {
  if (document.getElementById("moved")) return;
  const p = document.createElement("p");
  p.id = "moved";
  p.className = "said note";
  const a = document.createElement("a");
  a.href = location.pathname;
  a.textContent = "Look again";
  p.append("Something happened to this request since this page was made. ", a);
  document.getElementById("main").prepend(p);
  say("Something happened to this request since this page was made.");
}

function heard(event) {
  const { type, subject } = JSON.parse(event.data);
  if (list) refreshIn(300);
  if (type === "calls") return;
  if (request && subject === request.dataset.id) noticeChange();
  countSoon();
}

new EventSource("/events" + (list?.dataset.news ?? "")).addEventListener("message", heard);

// How many requests wait for the visitor stands in the title of every page. Whoever wants it is told of new ones, without a word of what they say.
const plainTitle = document.title.replace(/^\(\d[\d,]*\+?\) /, "");
const NOTIFY = "assent-notify";
let waiting;
let counting;

function countSoon() {
  counting ??= setTimeout(() => { counting = undefined; countWaiting(); }, 500);
}

async function countWaiting() {
  const answer = await fetch("/waiting", { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const { total, more } = await answer.json();
  document.title = total ? `(${total}${more ? "+" : ""}) ${plainTitle}` : plainTitle;
  if (waiting !== undefined && total > waiting) tellOutside(total, more);
  waiting = total;
}

function tellOutside(total, more) {
  if (!document.hidden || settings.getItem(NOTIFY) !== "on" || Notification.permission !== "granted") return;
  const note = new Notification("assent", { body: `${total}${more ? " or more" : ""} waiting for you`, tag: "assent" });
  note.addEventListener("click", () => { focus(); note.close(); });
}

// Only requests of the same rules can be answered together.
function sameRules() {
  const boxes = [...document.querySelectorAll("input[name=id]")];
  const rules = boxes.find((b) => b.checked)?.closest("[data-rules]").dataset.rules;
  for (const b of boxes) b.disabled = rules !== undefined && b.closest("[data-rules]").dataset.rules !== rules;
}
list?.addEventListener("change", sameRules);

// The standing approval in words, as the form stands.
const approve = document.getElementById("approve-form");

function spell() {
  for (const out of approve.querySelectorAll("output[data-say]")) {
    const name = out.dataset.say;
    if (name !== "bounds") {
      const n = approve.elements[name].value;
      out.textContent = `${n} ${n === "1" ? out.dataset.one : out.dataset.many}`;
      continue;
    }
    const picked = [...approve.querySelectorAll("input[name=bound]:checked")].map((b) => b.closest("label").textContent.trim());
    out.textContent = picked.join("; ") || "none";
  }
  const session = approve.querySelector("[data-say-session]");
  if (session) session.hidden = !approve.querySelector("input[name=session]").checked;
  for (const out of approve.querySelectorAll("output[data-each]")) out.textContent = exposure(out.dataset, approve.elements.uses.value);
}
approve?.addEventListener("input", spell);

const grouped = (digits) => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

// What all uses of a standing approval may come to, exactly: "20 × 340.00 = 6,800.00 USD".
function exposure({ each, currency }, uses) {
  if (!/^[0-9]+$/.test(uses)) return "…";
  const [whole, fraction = ""] = each.split(".");
  const total = (BigInt(whole + fraction) * BigInt(uses)).toString().padStart(fraction.length + 1, "0");
  const cut = total.length - fraction.length;
  const point = fraction && ".";
  return `${grouped(uses)} × ${grouped(whole)}${point}${fraction} = ${grouped(total.slice(0, cut))}${point}${total.slice(cut)} ${currency}`.trim();
}

// A denial needs a reason: a preset, or words.
for (const set of document.querySelectorAll(".presets")) {
  const words = set.querySelector("input[name=reason]");
  const own = set.querySelector("input[name=preset][value='']");
  words.addEventListener("input", () => { if (words.value && !set.querySelector("input[name=preset]:checked")) own.checked = true; });
  set.addEventListener("change", () => { words.required = own.checked; });
}

// The editor shows what an edit would change while it is typed.
const editor = document.getElementById("edit-form");
let typing;
let asked = 0;

async function preview() {
  const turn = ++asked;
  const fields = new URLSearchParams(new FormData(editor));
  fields.set("step", "fragment");
  const answer = await fetch(editor.action, { method: "POST", body: fields });
  if (turn !== asked) return;
  const into = document.getElementById("preview");
  if (!answer.ok || answer.redirected) { into.textContent = "The request changed meanwhile. Reload the page."; return; }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  into.replaceChildren(...page.body.childNodes);
}
editor?.addEventListener("input", (event) => {
  if (event.target.name !== "arguments") return;
  clearTimeout(typing);
  typing = setTimeout(preview, 300);
});

// Keys. They move and open; none decides.
const KEYS = "assent-keys";
const settings = (() => { try { return localStorage; } catch { return { getItem: () => null, setItem() {} }; } })();
const keysOn = () => settings.getItem(KEYS) !== "off";
const notify = document.getElementById("notify");
notify.disabled = !("Notification" in window);
notify.checked = !notify.disabled && settings.getItem(NOTIFY) === "on" && Notification.permission === "granted";
notify.addEventListener("change", async () => {
  if (notify.checked && await Notification.requestPermission() !== "granted") notify.checked = false;
  settings.setItem(NOTIFY, notify.checked ? "on" : "off");
});
countWaiting();
const dialog = document.getElementById("keys");
const toggle = document.getElementById("keys-on");
toggle.checked = keysOn();
toggle.addEventListener("change", () => settings.setItem(KEYS, toggle.checked ? "on" : "off"));

function step(by) {
  const cards = [...document.querySelectorAll(".request")];
  if (!cards.length) return;
  const at = cards.findIndex((c) => c.classList.contains("current"));
  const next = cards[Math.min(cards.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  cards[at]?.classList.remove("current");
  next.classList.add("current");
  next.querySelector("h2 a").focus();
  next.scrollIntoView({ block: "nearest" });
}

function into(id, field) {
  const form = document.getElementById(id);
  if (!form) { document.querySelector(".request.current h2 a")?.click(); return; }
  const around = form.closest("details");
  if (around) around.open = true;
  form.querySelector(field).focus();
  form.scrollIntoView({ block: "nearest" });
}

const actions = {
  j: () => step(1),
  k: () => step(-1),
  a: () => into("approve-form", "input[name=reason]"),
  r: () => into("deny-form", "input[name=preset]"),
  u: () => document.getElementById("back")?.click(),
  n: () => document.getElementById("next")?.click(),
  e: () => into("edit-form", "textarea"),
  c: () => into("choose-form", "button"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || dialog.open) return;
  if (event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
  if (event.key === "?") { event.preventDefault(); dialog.showModal(); return; }
  const act = keysOn() && actions[event.key.toLowerCase()];
  if (act) { event.preventDefault(); act(); }
});
