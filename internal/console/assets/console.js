// Enhancements for pages that work without them: keys, live updates, copying, dialogs, passkeys.
// The script makes no decisions: it presses the buttons of the page.

import { openPalette } from "./palette.js";

const root = document.documentElement;
root.classList.add("js");

const $ = (selector, from = document) => from.querySelector(selector);
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
const say = (text) => { const a = $("#announce"); if (a) a.textContent = text; };

// Live updates: the server reports only that something has changed. The parts of the page that may
// be stale then ask for their content.

let changes = 0;
const changed = () => {
  changes++;
  document.body.dispatchEvent(new CustomEvent("gatehouse:changed"));
};

// A part that was requested before a change and arrives after it may be stale, and has not received
// the event.
document.addEventListener("htmx:before:request", (e) => { e.detail.ctx.changes = changes; });

function connect(url) {
  const offline = $("#offline");
  let source, poll, lost;
  const away = (yes) => {
    clearTimeout(lost);
    if (!yes) { offline.hidden = true; return; }
    // A connection that returns at once needs no notice.
    lost = setTimeout(() => { offline.hidden = false; }, navigator.onLine ? 1500 : 0);
  };
  const open = () => {
    source = new EventSource(url);
    source.addEventListener("open", () => { away(false); clearInterval(poll); poll = 0; root.dataset.live = "on"; });
    source.addEventListener("changed", changed);
    source.addEventListener("error", () => {
      delete root.dataset.live;
      away(true);
      // The stream was closed permanently, for example because the server has no room for it. Poll instead.
      if (source.readyState === EventSource.CLOSED &&
        !poll) poll = setInterval(() => { changed(); source.close(); open(); }, 15000);
    });
  };
  open();
  addEventListener("offline", () => away(true));
  addEventListener("online", () => { source.close(); open(); changed(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) changed(); });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
}
if (document.body.dataset.events) connect(document.body.dataset.events);

// The shown content has changed: keys are ignored for a moment, so that a key meant for the old
// content does not act on the new one.

const settle = 400;
let quietUntil = performance.now() + settle;
let arrived = null; // the open action that the script knows of
const hush = () => { quietUntil = performance.now() + settle; };

// ignore swallows a key within that moment and shows a hint. Each ignored key prolongs the moment,
// so that the rest of a word that began too early is not interpreted as keys either.
let shownIgnored = 0;
function ignore() {
  hush();
  const flash = $("#ignored");
  if (!flash) return;
  flash.hidden = false;
  root.classList.add("ignoring");
  clearTimeout(shownIgnored);
  shownIgnored = setTimeout(() => { flash.hidden = true; root.classList.remove("ignoring"); }, 2 * settle);
}

// The list and the open action.

const rows = () => $$("#rows .row");
// The keys stop at each visible row. A fold of alike rows is a row itself; if it is open, its rows follow.
const stops = () => $$("#rows .row, #rows .fold-row").filter((el) => !el.parentElement.closest("details:not([open])"));
const stopOf = (id) => $('#rows [data-id="' + CSS.escape(id) + '"]');
const foldOf = (el) => $("details", el?.closest(".fold-row") ?? document.createElement("i"));
const detail = () => $("#detail");
const openID = () => detail()?.dataset.open || "";
let cursorID = openID();

function markCursor(scroll) {
  for (const row of $$("#rows .row, #rows .fold-row")) row.classList.toggle("cursor", row.dataset.id === cursorID);
  const el = scroll && stopOf(cursorID);
  if (el) (el.matches(".fold-row") ? $("summary", el) : el).scrollIntoView({ block: "nearest" });
}

function move(step) {
  const list = stops();
  if (!list.length) return moveStep(step);
  const row = stopOf(cursorID);
  const at = list.findIndex((el) => el === row || row?.closest("details:not([open])")?.parentElement === el);
  const onward = $("[rel=next]");
  if (step > 0 && at === list.length - 1 && onward) {
    // Enter follows the link.
    onward.focus();
    say("End of this page. Enter shows the next.");
    return;
  }
  const to = at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + step));
  cursorID = list[to].dataset.id;
  markCursor(true);
  $(".row-link", list[to]).focus({ preventScroll: true });
}

// A run's page shows one step: the address selects it, else the server did. Its node and its row are
// marked.
function markStep() {
  const steps = $(".steps");
  if (!steps) return;
  const shown = $(".step:target", steps) ?? $(".step.chosen", steps);
  for (const a of $$('.graph a, .tl-rows a')) {
    if (shown && a.getAttribute("href") === "#" + shown.id) a.setAttribute("aria-current", "true");
    else a.removeAttribute("aria-current");
  }
}
addEventListener("hashchange", markStep);
markStep();

function moveStep(step) {
  const list = $$(".tl-rows a"), at = list.findIndex((a) => a.hasAttribute("aria-current"));
  list[Math.min(list.length - 1, Math.max(0, at + step))]?.click();
}

// nextOpen is the next undecided row after the given one.
function nextOpen(id) {
  const list = rows();
  const at = list.findIndex((row) => row.dataset.id === id);
  const rest = [...list.slice(at + 1), ...list.slice(0, Math.max(at, 0))];
  return rest.find((row) => !row.classList.contains("settled"))?.dataset.id || "";
}

function settleRow(id, text) {
  const row = document.getElementById("row-" + id);
  if (!row || row.classList.contains("settled")) return;
  row.classList.add("settled");
  const done = $(".row-done", row);
  done.textContent = text === "pending" ? "voted" : text;
  done.hidden = false;
  $("input[name=pick]", row)?.remove();
  settleFold(row.closest(".fold-row"));
  countPicked();
}

// settleFold says how many rows of a fold are left.
function settleFold(fold) {
  if (!fold) return;
  const left = $$(".row:not(.settled)", fold).length, done = $("summary .row-done", fold);
  done.textContent = left ? left + " left" : "all decided";
  done.hidden = false;
  fold.classList.toggle("settled", !left);
}

// place shows the position of the open action in the list.
function place() {
  const el = $("#detail .place"), list = rows(), all = $("#rows")?.dataset;
  const at = list.findIndex((row) => row.dataset.id === openID());
  if (el && all?.total && at >= 0) el.textContent = Number(all.skip) + at + 1 + " of " + all.total;
}

// Rows that others have decided stay in place and show the result, and the tabs count what is left.
// Only one request is in flight, at most every two seconds.

let askedStates = -Infinity, statesDue = 0;
const title = document.title.replace(/^\(\d+\+?\) /, "");

function soonStates() {
  if (statesDue || !$("#rows[data-states], [data-count]") || document.hidden) return;
  statesDue = setTimeout(states, Math.max(250, askedStates + 2000 - Date.now()));
}

async function states() {
  askedStates = Date.now();
  const asked = changes;
  const list = $("#rows");
  const ids = list ? rows().filter((row) => !row.classList.contains("settled")).map((row) => row.dataset.id) : [];
  try {
    const url = new URL(list?.dataset.states || "/inbox/states", location.href);
    url.searchParams.set("ids", ids.join(","));
    const res = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin",
      signal: AbortSignal.timeout(10000) });
    if (!res.ok || !(res.headers.get("Content-Type") || "").includes("json")) return;
    const now = await res.json();
    for (const { id, text } of now.settled) settleRow(id, text);
    for (const el of $$("[data-count]")) el.textContent = now[el.dataset.count];
    const tab = $(".tabs [aria-current] [data-count]");
    if (tab) document.title = "(" + tab.textContent + ") " + title;
  } catch {
    // The next change asks again.
  } finally {
    statesDue = 0;
    if (asked !== changes) soonStates(); // the answer may be older than the last change
  }
}
document.body.addEventListener("gatehouse:changed", soonStates);

function arrive() {
  const pane = arrived = detail();
  if (!pane) return;
  $(".inbox")?.classList.toggle("has-open", Boolean(pane.dataset.open));
  for (const row of rows()) {
    const isOpen = row.dataset.id === pane.dataset.open;
    row.classList.toggle("open", isOpen);
    const link = $(".row-link", row);
    if (isOpen) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
  }
  if (pane.dataset.done) settleRow(pane.dataset.done, pane.dataset.doneStatus);
  if (pane.dataset.open) cursorID = pane.dataset.open;
  const fold = foldOf(stopOf(cursorID));
  if (fold && pane.dataset.open) fold.open = true;
  markCursor(false);
  place();
}

document.addEventListener("htmx:after:swap", (e) => {
  const ctx = e.detail?.ctx;
  const facts = ctx?.target?.id === "facts" && $("#facts[data-differs]");
  if (facts) { hush(); say("The target differs from the proposal. " + $(".sentence", facts).textContent); }
  const would = ctx?.target?.id === "preview" && $("#preview[data-bad] .preview-says");
  if (would) { hush(); say(would.textContent); }
  if (ctx?.target?.id === "facts") $(".decision:has(.pop[open])")?.scrollIntoView({ block: "nearest" });
  markStep();
  if (ctx?.target && ctx.target.id !== "detail") return; // a pill or a mark; the text being read has not changed
  if (ctx && ctx.changes !== changes) changed();
  if (!$("form[data-checking]")) tell("");
  hush();
  arrive();
  change = -1;
  const pane = detail();
  if (!pane) return;
  pane.scrollTop = 0;
  if (matchMedia("(max-width: 60rem)").matches) scrollTo(0, 0);
  const refused = $("[autofocus]", pane);
  (refused ?? pane).focus({ preventScroll: true });
  refused?.scrollIntoView({ block: "center" });
  say($(".sentence", pane)?.textContent || $(".notice-title", pane)?.textContent || "");
});

// Answers. Before a form is sent, it gets the id of the next row; if the answer needs a passkey, the browser asks
// for the passkey first. This handler runs before htmx's.

document.addEventListener("submit", async (e) => {
  const form = e.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.decide) return;
  const stop = () => { e.preventDefault(); e.stopImmediatePropagation(); };
  if (form.dataset.busy) { stop(); return; }
  const next = form.elements.namedItem("next");
  const id = form.closest("[data-id]")?.dataset.id || openID();
  if (next && rows().length) next.value = nextOpen(id);
  const passkey = form.dataset.passkey && !form.elements.namedItem("edit_token")?.value;
  form.dataset.busy = "1";
  if (!passkey) return;
  stop();
  const proven = await stepUp(form);
  delete form.dataset.busy;
  if (!proven) return;
  delete form.dataset.passkey;
  form.requestSubmit(e.submitter);
}, true);

// A snooze uses this browser's clock, and opens the next row.
document.addEventListener("submit", (e) => {
  if (!("snooze" in (e.target.dataset ?? {}))) return;
  const { zone, next } = e.target.elements;
  zone.value = new Date().getTimezoneOffset();
  if (rows().length) next.value = nextOpen(openID());
}, true);

// The panel of a rejection: a reason that the policy offers fills in the text and does not send it.
// Ctrl-Enter sends the form, and Esc shows the bar again.
document.addEventListener("click", (e) => {
  const reason = e.target.closest?.("[data-reason]");
  if (reason) {
    const text = $("textarea", reason.form);
    text.value = reason.dataset.reason;
    text.focus();
    return;
  }
  if (e.target.closest?.("[data-dismiss]")) fold(e.target);
});

function fold(el) {
  const panel = el.closest("details[open]");
  if (!panel) return false;
  panel.open = false;
  $("summary", panel).focus({ preventScroll: true });
  return true;
}

// The unfolded part may be below the window.
document.addEventListener("toggle", (e) => {
  if (e.target.matches?.(".decision .pop[open]")) e.target.closest(".decision").scrollIntoView({ block: "nearest" });
}, true);

// The second click of a double click would hit the content that replaced the first one's.
document.addEventListener("click", (e) => {
  if (e.detail > 1 && e.target.closest?.("form[data-decide] button")) e.preventDefault();
}, true);

// A part of the page whose request for its present content fails, at the server or a proxy, keeps its content. After
// an error of the server it asks again, after a random pause, so that not all pages ask at once. If the server asks
// for a sign-in, the page goes to the sign-in page.

let asking = 0;

function askAgain() {
  clearTimeout(asking);
  asking = setTimeout(changed, 2000 + 3000 * Math.random());
}

const isLive = (ctx) => ctx?.sourceElement?.matches("[hx-trigger^='gatehouse:changed']");

document.addEventListener("htmx:before:response", (e) => {
  const { ctx } = e.detail;
  const form = answered(ctx);
  // An error of the server, or of a load balancer in front of it, does not say whether the answer
  // was stored.
  if (form && ctx.response.status >= 500) {
    e.preventDefault();
    askWhatStands(form, ctx.request.submitter);
    return;
  }
  if (!isLive(ctx) || ctx.response.status < 400 || ctx.hx.redirect) return;
  e.preventDefault();
  if (ctx.response.status >= 500 || ctx.response.status === 429) askAgain();
});

document.addEventListener("htmx:error", (e) => {
  const ctx = e.detail?.ctx;
  if (isLive(ctx)) askAgain();
  const sent = answered(ctx);
  for (const form of $$("form[data-busy]:not([data-checking])")) if (form !== sent) delete form.dataset.busy;
  if (sent) { askWhatStands(sent, ctx.request.submitter); return; }
  const pane = detail();
  if (!pane || ctx?.target !== pane) return;
  say("The server cannot be reached.");
  $("#offline").hidden = false;
});

// An answer without a reply may have been stored: the page asks the server until it has the result.
// Until then, the form sends nothing more.

const answerPath = /^\/actions\/([^/]+)\/(decide|cancel|undo)$/;
const answered = (ctx) => {
  const form = ctx?.sourceElement;
  return form instanceof HTMLFormElement && answerPath.test(form.getAttribute("hx-post") || "") ? form : null;
};

function tell(text) {
  const box = $("#standing");
  if (box) { box.textContent = text; box.hidden = text === ""; }
}

async function standing(url) {
  for (;;) {
    try {
      const res = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin",
        signal: AbortSignal.timeout(10000) });
      if (res.ok) return await res.json();
      if (res.status === 401) { location.reload(); return new Promise(() => {}); }
      if (res.status < 500 && res.status !== 429) return { stands: false,
        text: "The server does not show this action to you. Look at the list again." };
    } catch {
      // unreachable: ask again
    }
    await new Promise((resolve) => setTimeout(resolve, 500 + 1000 * Math.random()));
  }
}

async function askWhatStands(form, button) {
  if (form.dataset.checking) return;
  form.dataset.busy = form.dataset.checking = "1";
  const [, id, verb] = answerPath.exec(form.getAttribute("hx-post"));
  const pane = detail();
  tell("No answer arrived. Checking whether the server has stored your decision…");
  const query = new URLSearchParams({
    want: { cancel: "canceled", undo: "undone" }[verb] || button?.value || form.dataset.decide,
    return: form.elements.namedItem("return")?.value || "",
    next: form.elements.namedItem("next")?.value || "",
  });
  const { stands, text, onward } = await standing("/actions/" + id + "/standing?" + query);
  delete form.dataset.checking;
  if (stands && pane === detail()) { location.assign(onward); return; }
  delete form.dataset.busy;
  tell(text);
  changed();
}

// Passkeys.

export async function post(url, body) {
  const res = await fetch(url, {
    method: "POST", body, credentials: "same-origin",
    headers: { Accept: "application/json",
      ...(typeof body === "string" ? { "Content-Type": "application/json" } : {}) },
  });
  const text = await res.text();
  const value = text && (res.headers.get("Content-Type") || "").includes("json") ? JSON.parse(text) : {};
  if (!res.ok) throw new Error(value.detail || "The server answered " + res.status + ".");
  return value;
}

async function stepUp(form) {
  const digest = encodeURIComponent(form.dataset.digest);
  try {
    const options = await post(form.dataset.passkey + "/begin?digest=" + digest);
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey ?? options);
    const credential = await navigator.credentials.get({ publicKey });
    await post(form.dataset.passkey + "/finish", JSON.stringify(credential.toJSON()));
    return true;
  } catch (err) {
    problem($(".step-up", form) || form, err);
    return false;
  }
}

export function problem(near, err) {
  let p = $(".passkey-problem", near);
  if (!p) {
    p = document.createElement("p");
    p.className = "passkey-problem warn-text";
    p.setAttribute("role", "alert");
    near.append(p);
  }
  p.textContent = err.name === "NotAllowedError" ? "The passkey was not used. Try again, or another way." : err.message;
}

document.addEventListener("click", async (e) => {
  const button = e.target.closest?.("[data-passkey-signin]");
  if (!button) return;
  try {
    const options = await post("/signin/passkey/begin");
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey ?? options);
    const credential = await navigator.credentials.get({ publicKey });
    const to = await post("/signin/passkey/finish?next=" + encodeURIComponent(button.dataset.passkeySignin),
      JSON.stringify(credential.toJSON()));
    location.assign(to.next);
  } catch (err) {
    problem(button.parentElement, err);
  }
});

// Adding a passkey: the form's fields are sent along with the request for the challenge.
document.addEventListener("submit", async (e) => {
  const form = e.target;
  if (!(form instanceof HTMLFormElement) || !("passkeyAdd" in form.dataset)) return;
  e.preventDefault();
  if (form.dataset.busy) return;
  form.dataset.busy = "1";
  try {
    const options = await post(form.action, new URLSearchParams(new FormData(form)));
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey ?? options);
    const credential = await navigator.credentials.create({ publicKey });
    await post("/settings/passkeys/finish", JSON.stringify(credential.toJSON()));
    location.reload();
  } catch (err) {
    problem(form, err);
  } finally {
    delete form.dataset.busy;
  }
});

// Copying.

document.addEventListener("click", async (e) => {
  const button = e.target.closest?.("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
  say(button.textContent);
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

// The editor of a policy: line numbers beside the text, its parts in colour below it, and links that jump to a line.

for (const text of $$("textarea[data-lines]")) {
  const numbers = document.createElement("pre");
  numbers.className = "line-numbers";
  numbers.setAttribute("aria-hidden", "true");
  const box = document.createElement("span");
  box.className = "numbered";
  text.replaceWith(box);
  const paper = document.createElement("pre");
  paper.className = "paper";
  paper.setAttribute("aria-hidden", "true");
  box.append(numbers, paper, text);
  let lines = 0;
  const follow = () => {
    numbers.scrollTop = paper.scrollTop = text.scrollTop;
    paper.scrollLeft = text.scrollLeft;
  };
  const count = () => {
    paper.replaceChildren(...tokens(text.value + "\n"));
    const n = text.value.split("\n").length;
    if (n !== lines) numbers.textContent = Array.from({ length: lines = n }, (_, i) => i + 1).join("\n");
    follow();
  };
  text.addEventListener("input", count);
  text.addEventListener("scroll", follow);
  count();
}

// The parts of a YAML text, each in a span with its class; source.go does the same for texts that are read.
function tokens(text) {
  const parts = [];
  let at = 0;
  for (const m of text.matchAll(/(?<=^|\s)#.*|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[\w.-]+(?=:(?:\s|$))|\b(?:\d+(?:\.\d+)?|true|false|null)\b/gm)) {
    const span = document.createElement("span"), first = m[0][0];
    span.className = first === "#" ? "src-c" : first === '"' ||
      first === "'" ? "src-s" : /^:/.test(text.slice(m.index + m[0].length)) ? "src-k" : "src-n";
    span.textContent = m[0];
    parts.push(text.slice(at, m.index), span);
    at = m.index + m[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

function toLine(text, line) {
  const lines = text.value.split("\n");
  const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  text.focus();
  text.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
  text.scrollTop = Math.max(0, (line - 4) * text.scrollHeight / lines.length);
}
document.addEventListener("click", (e) => {
  const link = e.target.closest?.("a[data-line]"), text = $("textarea[data-lines]");
  if (!link || !text) return;
  e.preventDefault();
  toLine(text, Number(link.dataset.line));
});

// The selection for a decision in bulk.

function countPicked() {
  const n = $$("input[name=pick]:checked").length;
  const label = $("#picked");
  if (label) label.textContent = n + " selected";
  $("#bulk")?.classList.toggle("on", n > 0);
  for (const box of $$("input[data-fold]")) {
    const boxes = boxesOf(box.closest(".fold-row")), on = boxes.filter((b) => b.checked).length;
    box.checked = on > 0 && on === boxes.length;
    box.indeterminate = on > 0 && on < boxes.length;
    box.hidden = boxes.length === 0;
  }
  const more = $("#pick-alike"), like = alike();
  if (!more) return;
  more.hidden = !like.some((box) => !box.checked);
  more.textContent = "Select all " + like.length + " like this";
}

// The last selected row starts a range, and determines which rows are similar to it.
let picked = "";
const pickOf = (row) => $("input[name=pick]", row);
const boxesOf = (el) => el ? $$("input[name=pick]", el) : [];

// Only without a script does the box of a fold stand for its rows itself.
for (const box of $$("input[name=fold]")) {
  box.removeAttribute("name");
  box.dataset.fold = "";
}

// pickAll selects the rows, or none of them when all were selected.
function pickAll(boxes, on = boxes.some((box) => !box.checked)) {
  for (const box of boxes) box.checked = on;
  picked = boxes.at(-1)?.value ?? picked;
  countPicked();
  say(boxes.length > 1 ? $("#picked").textContent : on ? "selected" : "not selected");
}

function alike() {
  const like = document.getElementById("row-" + picked)?.dataset.like;
  return like ? rows().filter((row) => row.dataset.like === like).map(pickOf).filter(Boolean) : [];
}

function pickAlike() {
  const like = alike();
  for (const box of like) box.checked = true;
  countPicked();
  say(like.length + " selected");
}

// pickTo sets every row from the last selected one to this one to the same state.
function pickTo(id, on) {
  const list = rows();
  const from = list.findIndex((row) => row.dataset.id === picked), to = list.findIndex((row) => row.dataset.id === id);
  if (from < 0 || to < 0) return;
  for (const row of list.slice(Math.min(from, to), Math.max(from, to) + 1)) {
    const box = pickOf(row);
    if (box) box.checked = on;
  }
}

let shifted = false;
document.addEventListener("click", (e) => {
  if (e.target.id === "pick-alike") pickAlike();
  if (e.target.name === "pick") shifted = e.shiftKey;
}, true);
document.addEventListener("change", (e) => {
  if ("fold" in (e.target.dataset ?? {})) pickAll(boxesOf(e.target.closest(".fold-row")), e.target.checked);
  if (e.target.name !== "pick") return;
  const id = e.target.value;
  if (shifted) pickTo(id, e.target.checked);
  shifted = false;
  picked = id;
  countPicked();
});

// moveAndPick selects the marked row and the row that it moves to.
function moveAndPick(step) {
  const at = cursorID;
  move(step);
  for (const id of [at, cursorID]) {
    const boxes = boxesOf(stopOf(id));
    if (boxes.length) pickAll(boxes, true);
  }
  say($("#picked").textContent);
}
countPicked();
arrive();

// Dialogs.

const help = $("#help");
document.addEventListener("click", (e) => {
  if (e.target.closest?.("[data-close]")) e.target.closest("dialog")?.close();
  if (e.target instanceof HTMLDialogElement) e.target.close();
});

// Keys. They press the buttons of the page, for the open action, and never while somebody types.

let change = -1, going = 0;

function stepChange(by) {
  const all = $$("#detail .change, #detail .diff .line-added, #detail .diff .line-removed")
    .filter((el) => el.offsetParent);
  const stops = all.filter((el) => el.classList.contains("change") || !el.previousElementSibling ||
    el.previousElementSibling.className !== el.className);
  if (!stops.length) return;
  change = Math.min(stops.length - 1, Math.max(0, change + by));
  $$("#detail .cursor").forEach((el) => el.classList.remove("cursor"));
  const el = stops[change];
  el.classList.add("cursor");
  el.scrollIntoView({ block: "center" });
}

function press(key) {
  // If another row than the open action is marked, the key could be meant for that one: open it
  // first.
  const shown = openID() || detail()?.dataset.done;
  if (cursorID !== shown && stopOf(cursorID)) return openCursor();
  const el = $('#detail [data-key="' + key + '"]') || $('.bulk-form [data-key="' + key + '"]');
  if (!el) return false;
  const form = el.form;
  if (form && !form.checkValidity()) {
    // The form needs more than a key: focus its first incomplete field.
    form.querySelector(":invalid")?.focus();
    return true;
  }
  if (el.tagName === "SUMMARY") {
    el.parentElement.open = true;
    el.closest(".decision")?.scrollIntoView({ block: "nearest" });
    $("input:not([type=hidden]), textarea", el.parentElement)?.focus();
    return true;
  }
  el.click();
  return true;
}

// openCursor opens the marked row. A fold unfolds first, and then goes to its first row.
function openCursor() {
  const el = stopOf(cursorID);
  if (!el?.matches(".fold-row")) {
    const link = el && $(".row-link", el);
    link?.click();
    return Boolean(link);
  }
  if (foldOf(el).open) move(1); else foldOf(el).open = true;
  return true;
}

function refold() {
  const fold = foldOf(stopOf(cursorID));
  if (!fold?.open) return false;
  fold.open = false;
  cursorID = fold.parentElement.dataset.id;
  markCursor(true);
  $("summary", fold).focus({ preventScroll: true });
  return true;
}

function back() {
  const link = $("#detail [data-back]") || $("[data-back]");
  if (!link) return false;
  const inPane = $(".inbox.has-open");
  link.click();
  if (inPane) hush();
  return true;
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  a: () => press("a"),
  d: () => press("d"),
  e: () => press("e"),
  b: () => press("b"),
  c: () => press("c"),
  s: () => press("s"),
  z: () => press("z"),
  u: () => press("u"),
  n: () => stepChange(1),
  p: () => stepChange(-1),
  w: () => { const why = $("#why"); why?.scrollIntoView({ block: "start" }); why?.focus({ preventScroll: true }); },
  J: () => moveAndPick(1),
  K: () => moveAndPick(-1),
  x: () => {
    const boxes = boxesOf(stopOf(cursorID));
    if (boxes.length) pickAll(boxes); else say("This row cannot be selected.");
  },
  ArrowRight: () => { const fold = foldOf(stopOf(cursorID)); if (!fold || fold.open) return false; fold.open = true; },
  ArrowLeft: () => refold(),
  X: () => pickAlike(),
  v: () => { const go = $("#bulk.on [type=submit]"); if (!go) return false; go.click(); },
  "/": () => { const box = $("#search"); if (!box) return openPalette(); box.closest("details").open = true;
    box.focus(); box.select(); },
  "?": () => help && !help.open && help.showModal(),
  Enter: (e) => {
    if (document.activeElement?.matches("a, button, summary")) return false;
    return openCursor();
  },
  Escape: () => back(),
  g: () => { going = performance.now() + 1500; },
};

const modifiers = new Set(["Shift", "Control", "Alt", "Meta", "AltGraph", "CapsLock"]);

const typing = (el) => el?.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

document.addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") { e.preventDefault(); openPalette(); return; }
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && "submit" in (e.target.dataset ?? {})) {
    e.preventDefault();
    if (!e.repeat) e.target.form.requestSubmit($("[type=submit]", e.target.form));
    return;
  }
  if (e.key === "Escape" && e.target.closest?.(".reject[open]")) { e.preventDefault(); fold(e.target); return; }
  if (e.key === "Escape" && typing(e.target) && !e.target.closest("dialog")) { e.target.blur(); return; }
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.repeat && !"jknpJK".includes(e.key)) return;
  if (root.dataset.keys === "off" || typing(e.target) || $("dialog[open]")) return;
  if (performance.now() < quietUntil || detail() !== arrived) {
    if (!modifiers.has(e.key)) ignore();
    return;
  }
  if (going && performance.now() < going) {
    going = 0;
    const link = $('[data-go="' + CSS.escape(e.key) + '"]');
    if (link) { e.preventDefault(); link.click(); }
    return;
  }
  going = 0;
  const act = Object.hasOwn(keys, e.key) ? keys[e.key] : null;
  if (act && act(e) !== false) e.preventDefault();
});
markCursor(false);
// The menu and the help return to the item that is open now, not to the one for which the page was
// made.
document.addEventListener("submit", (e) => {
  if (e.target.matches('.menu form[action="/preferences"], #help form[action="/preferences"]')) {
    e.target.elements.return.value = location.pathname + location.search;
  }
}, true);

// On a narrow screen, sections and tabs scroll: bring the open one into view.
for (const open of $$(".sections [aria-current], .page > .tabs [aria-current]")) open.scrollIntoView({ block: "nearest",
  inline: "nearest" });
