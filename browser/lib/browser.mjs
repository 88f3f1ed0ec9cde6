// The system's Chromium, and helpers for pages.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

// Features of Chromium that tests go without. The last --disable-features counts, so Playwright's own list is here too.
const without = [
  // Each new window loads two pages for suggestions below an address bar that nobody sees: half of all CPU time.
  "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup",
  "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "DialMediaRouteProvider",
  "GlobalMediaControls", "HttpsUpgrades", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
  "BlockOriginHeaderModificationOnRedirect", "AvoidCorsURLLoaderRestartOnRedirect", "Translate", "OptimizationHints",
  "NetworkTimeServiceQuerying", "AimEnabled",
];

const args = [
  `--disable-features=${without.join(",")}`,
  "--no-sandbox",
  // No page lives long enough to repay optimized code: without the compilers of such code, axe takes a fifth less CPU
  // time.
  "--js-flags=--no-opt --no-maglev",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * The path of the browser. If the system has Chromium's headless shell, tests use it, since it needs half of the CPU
 * time. Notifications need the whole browser.
 */
export function executable(whole = false) {
  const shell = "/usr/lib/chromium/chromium-headless-shell";
  return process.env.CHROMIUM ?? (!whole && existsSync(shell) ? shell : "/usr/bin/chromium");
}

/**
 * Launches the browser; it never downloads one. A browser that crashes at its start is
 * started again, at most twice, because the console cannot be the cause.
 */
export async function launch({ whole = false } = {}) {
  const options = { executablePath: executable(whole), headless: true, args };
  for (let left = 2; ; left--) {
    try {
      return await chromium.launch(options);
    } catch (e) {
      if (left === 0) throw e;
      console.error(`the browser died as it started: ${String(e.message).split("\n")[0]}`);
    }
  }
}

export const desktop = { width: 1440, height: 900 };
export const phone = { width: 390, height: 844 };

/**
 * A page in a context of its own, without motion. A violation of the content policy, a script's error
 * or a dialog fails the test.
 */
export async function newPage(browser, t, options = {}) {
  const context = await browser.newContext({ viewport: desktop, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(60_000); // only a failure waits this long
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (e) => faults.push(`script: ${e.message}`));
  page.on("console", (m) => {
    if (/Content Security Policy|Refused to/i.test(m.text())) faults.push(m.text());
  });
  page.on("dialog", (d) => {
    faults.push(`dialog: ${d.message()}`);
    d.dismiss();
  });
  page.faults = faults;
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  return page;
}

/** Signs in by a one-time link, and opens the address, by default that of the inbox. */
export async function signIn(page, link, where = new URL("/inbox", link).href) {
  const { origin, pathname, searchParams } = new URL(link);
  const answer = await page.context().request.post(origin + pathname, {
    form: { token: searchParams.get("token") }, maxRedirects: 0, headers: { Origin: origin },
  });
  assert.equal(answer.status(), 303, "the link does not sign in");
  await page.goto(where);
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Fails on any serious or critical finding of axe, by all rules of WCAG up to 2.2 AA and its best practices. With
 * colours, it checks only the rules about colours. Of rows of one list or table that differ only in
 * their texts, it checks the first three.
 */
export async function accessible(page, what, { colours = false } = {}) {
  // Wait for colour transitions, because intermediate colours must not be checked.
  await page.evaluate(async () => {
    const running = document.getAnimations().filter((a) => a.playState === "running");
    await Promise.allSettled(running.map((a) => a.finished));
  });
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe); // once for each document
  const runOnly = colours
    ? { type: "rule", values: ["color-contrast", "link-in-text-block"] }
    : { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };
  const { looked, serious } = await page.evaluate(async (runOnly) => {
    const seen = new Map();
    const form = (el) => [el, ...el.querySelectorAll("*")].map((x) => `${x.localName} ${[...x.attributes].map((a) =>
      (/^(class|style|role|type|hidden|open|disabled)$/.test(a.name) ? `${a.name}=${a.value}` : a.name))}`).join();
    for (const row of document.querySelectorAll("main :is(li, tr)")) {
      const forms = seen.get(row.parentElement) ?? new Map(), key = form(row), above = forms.get(key) ?? 0;
      seen.set(row.parentElement, forms.set(key, above + 1));
      row.toggleAttribute("data-alike", above >= 3);
    }
    const exclude = document.querySelector("[data-alike]") ? ["[data-alike]"] : [];
    const options = { runOnly, resultTypes: ["violations"], iframes: false };
    const { violations, passes } = await window.axe.run({ include: ["html"], exclude }, options);
    return {
      looked: violations.length + passes.length,
      serious: violations
        .filter((v) => v.impact === "serious" || v.impact === "critical")
        .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`),
    };
  }, runOnly);
  assert.ok(looked > 0, `${what}: nothing was examined`);
  assert.deepEqual(serious, [], what);
}

/**
 * Checks an open page by axe in both themes, on a desktop and on a phone, and that it is no wider than the window. Half
 * of the pages are dark on the desktop and light on the phone, the others the reverse: pages share their components.
 */
export async function everywhere(page, what) {
  const themes = [...what].reduce((n, c) => n + c.codePointAt(0), 0) % 2 ? ["dark", "light"] : ["light", "dark"];
  for (const [i, [size, viewport]] of [["desktop", desktop], ["phone", phone]].entries()) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: themes[i] });
    await accessible(page, `${what}, ${size}, ${themes[i]}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${what}: ${wide} px too wide on a ${size}`);
  }
  await page.setViewportSize(desktop);
}

/**
 * Stops the clock by which the console ignores keys for a while, so that a test
 * controls how much of that time has passed.
 */
export async function stillClock(page) {
  await page.addInitScript(() => {
    let now = 0;
    performance.now = () => now;
    window.letPass = (ms) => (now += ms);
  });
}

/** How long keys are ignored after the shown content has changed, in milliseconds. */
export const settle = 400;

/** Lets that time pass on a page with [stillClock] whose script has run. */
export async function awake(page, ms = settle) {
  await page.locator("html.js").waitFor({ state: "attached" });
  await page.evaluate((ms) => window.letPass(ms), ms);
}

/** Opens every fold of alike actions in the inbox. */
export function unfold(page) {
  return page.locator("#rows details").evaluateAll((all) => all.forEach((el) => { el.open = true; }));
}
