// Chromium from the system, and what tests do with a page.
import assert from "node:assert/strict";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Launches the browser; it never downloads one. A browser that dies as it starts
 * has not seen the console yet: it is started again, twice at most.
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
 * A page in a context of its own, which fails the test on anything that the
 * content policy refused, on a script's error and on a dialog.
 */
export async function newPage(browser, t, options = {}) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  context.setDefaultTimeout(60_000); // used up only by a failure
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

/** Fails on any serious or critical finding of axe, by all rules of WCAG to 2.2 AA and its own of good practice. */
export async function accessible(page, what) {
  // Colours that are on their way are nobody's to read: a theme that changes fades in for 150 ms.
  for (let i = 0; i < 20 && await page.evaluate(() => document.getAnimations().some((a) => a.playState === "running")); i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { violations, passes } = await new AxeBuilder({ page })
    .setLegacyMode(true) // there are no frames to join
    .options({ resultTypes: ["violations"] }) // the others shortened
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    .analyze();
  assert.ok(violations.length + passes.length > 0, `${what}: nothing was looked at`);
  const serious = violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`);
  assert.deepEqual(serious, [], what);
}

/**
 * Makes the clock by which the console waits before keys count stand still, so
 * that a test says how much of that time has passed.
 */
export async function stillClock(page) {
  await page.addInitScript(() => {
    let now = 0;
    performance.now = () => now;
    window.letPass = (ms) => (now += ms);
  });
}

/** How long keys rest after what is shown has changed, in milliseconds. */
export const settle = 400;

/** Lets that long pass on a page with [stillClock] whose script has run. */
export async function awake(page, ms = settle) {
  await page.locator("html.js").waitFor({ state: "attached" });
  await page.evaluate((ms) => window.letPass(ms), ms);
}
