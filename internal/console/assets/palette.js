// The palette opens what somebody searches for by name or id. It filters its commands itself, and asks the server
// for actions, runs, workflows and people.

const dialog = document.getElementById("palette");
const input = document.getElementById("palette-input");
const list = document.getElementById("palette-list");
const found = document.getElementById("palette-found");
const none = document.getElementById("palette-none");

const visible = () => [...list.querySelectorAll("[role=option]")].filter((el) => !el.hidden);
let active = null, moved = false, due = 0, asked = null;

function mark(option) {
  active?.setAttribute("aria-selected", "false");
  active = option ?? null;
  active?.setAttribute("aria-selected", "true");
  if (active) input.setAttribute("aria-activedescendant", active.id);
  else input.removeAttribute("aria-activedescendant");
  active?.scrollIntoView({ block: "nearest" });
}

// filter shows the commands that contain the text, and marks the first entry for Enter, unless somebody has
// marked another entry.
function filter() {
  const want = input.value.trim().toLowerCase();
  for (const group of list.querySelectorAll("[data-filter]")) {
    const options = [...group.querySelectorAll("[role=option]")];
    for (const el of options) el.hidden = !el.textContent.toLowerCase().includes(want);
    group.hidden = options.every((el) => el.hidden);
  }
  const all = visible();
  mark(moved && all.includes(active) ? active : want ? all[0] : null);
  list.hidden = all.length === 0;
  none.hidden = all.length > 0;
  input.setAttribute("aria-expanded", String(all.length > 0));
}

function show(html) {
  found.innerHTML = html; // made by the server, with all foreign text escaped
  filter();
}

// ask fetches the results for the present text; an answer to an earlier one is dropped.
async function ask() {
  const q = input.value.trim();
  asked?.abort();
  if (q.length < 2) return;
  const now = asked = new AbortController();
  try {
    const url = "/palette?" + new URLSearchParams({ q });
    const res = await fetch(url, { credentials: "same-origin", signal: now.signal });
    if (res.ok && !res.redirected && now === asked) show(await res.text());
  } catch {
    // Without an answer, Enter still searches.
  }
}

input?.addEventListener("input", () => {
  clearTimeout(due);
  moved = false;
  if (input.value.trim().length < 2) { asked?.abort(); found.replaceChildren(); }
  filter();
  due = setTimeout(ask, 150);
});

input?.addEventListener("keydown", (e) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!step || e.isComposing) return;
  e.preventDefault();
  const all = visible();
  const at = all.indexOf(active);
  moved = true;
  if (all.length) mark(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : (at + step + all.length) % all.length]);
});

function follow(option) {
  if (!option.dataset.press) return false;
  dialog.close();
  document.querySelector(option.dataset.press)?.click();
  return true;
}

dialog?.addEventListener("submit", (e) => {
  if (!active) return; // the form searches
  e.preventDefault();
  if (!follow(active)) location.assign(active.href);
});
list?.addEventListener("click", (e) => {
  const option = e.target.closest("[role=option]");
  if (option) follow(option);
});

export function openPalette() {
  if (!dialog || dialog.open) return;
  dialog.showModal();
  input.value = "";
  moved = false;
  show("");
  list.scrollTop = 0;
  input.focus();
}

document.addEventListener("click", (e) => {
  const link = e.target.closest?.("[data-palette]");
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  openPalette();
});
