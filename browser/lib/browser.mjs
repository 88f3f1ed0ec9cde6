// The system's Chromium, and helpers for pages.
import assert from "node:assert/strict";
import { AxeBuilder } from "@axe-core/playwright";
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
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Launches the browser; it never downloads one. A browser that crashes at its start is
 * started again, at most twice, because the console cannot be the cause.
 */
export async function launch() {
  const options = { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args };
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
 * A page in a context of its own. A violation of the content policy, a script's error
 * or a dialog fails the test.
 */
export async function newPage(browser, t, options = {}) {
  const context = await browser.newContext({ viewport: desktop, ...options });
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

/** Signs in by a one-time link. */
export async function signIn(page, link) {
  await page.goto(link);
  await Promise.all([page.waitForURL("**/inbox*"), page.getByRole("button", { name: /sign in|continue/i }).first().click()]);
}

/**
 * Fails on any serious or critical finding of axe, by all rules of WCAG up to 2.2 AA and its best practices; by those
 * about colours alone where the page was looked at in other colours.
 */
export async function accessible(page, what, { colours = false } = {}) {
  // Wait for colour transitions: a theme change fades in for 150 ms, and intermediate colours must
  // not be checked.
  for (let i = 0; i < 20 && await page.evaluate(() => document.getAnimations().some((a) => a.playState === "running")); i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const axe = new AxeBuilder({ page })
    .setLegacyMode(true) // the pages have no frames
    .options({ resultTypes: ["violations"] }); // shortens the other results
  if (colours) axe.withRules(["color-contrast", "link-in-text-block"]);
  else axe.withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]);
  const { violations, passes } = await axe.analyze();
  assert.ok(violations.length + passes.length > 0, `${what}: nothing was looked at`);
  const serious = violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`);
  assert.deepEqual(serious, [], what);
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
