// The first decision: from the set-up link to an applied change, in at most five clicks or keys of
// a person who does not know Gatehouse.
import assert from "node:assert/strict";
import { test } from "node:test";
import { awake, newPage, signIn, stillClock } from "../lib/browser.mjs";
import { items } from "../lib/ledger.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const most = 5;
const { g, browser } = await stage();

/** Counts a person's clicks and key presses. */
async function counted(page) {
  const done = [];
  await page.exposeFunction("interacted", (what) => done.push(what));
  await page.addInitScript(() => {
    for (const kind of ["pointerdown", "keydown"]) {
      addEventListener(kind, (e) => e.isTrusted && window.interacted(`${kind} ${e.key ?? e.target.textContent.trim()}`),
        true);
    }
  });
  return done;
}

test("the first decision by mouse", limit, async (t) => {
  const a = await g.propose();
  const page = await newPage(browser, t);
  const done = await counted(page);
  await page.goto(g.setupURL);
  await page.getByTestId("setup-go").click();
  await page.getByTestId("row").getByRole("link").click();
  const detail = page.getByTestId("action");
  await detail.getByTestId("sentence").getByText(items[0].sku).waitFor();
  assert.match(await detail.getByTestId("sentence").innerText(), /SKU-0001.*10\.00.*12\.50 USD/);
  // The button names its effect.
  await detail.getByRole("button", { name: /12\.50 USD/ }).click();
  await page.getByTestId("notice").getByText(/approved|sent|applied/i).first().waitFor();
  const end = await g.finished(a.id);
  assert.equal(end.status, "applied");
  assert.equal(end.digest, a.digest);
  assert.ok(done.length > 0 && done.length <= most, done.join(", "));
});

test("the first decision by keyboard", limit, async (t) => {
  const a = await g.propose(priced(1, "35.50"));
  await g.person("kim", "approver");
  const page = await newPage(browser, t);
  await stillClock(page);
  const done = await counted(page);
  await page.goto(await g.setupLink("kim"));
  const go = page.getByTestId("setup-go");
  await go.and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Enter");
  await page.getByTestId("row").waitFor();
  // Keys are ignored for a moment on a new page, while a person reads.
  await awake(page);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(`.row.open[data-id="${a.id}"]`).waitFor();
  await awake(page);
  await page.keyboard.press("a");
  await page.locator(`#detail[data-done="${a.id}"]`).waitFor();
  assert.equal((await g.finished(a.id)).status, "applied");
  assert.ok(done.length > 0 && done.length <= most, done.join(", "));
});

test("another theme leaves the item open", limit, async (t) => {
  const a = await g.propose(priced(2, "42.00"));
  await g.person("lea", "approver");
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("lea"));
  await page.locator(`.row[data-id="${a.id}"] .row-link`).click();
  await page.locator(`.row.open[data-id="${a.id}"]`).waitFor();
  await page.getByTestId("person-menu").locator("summary").click();
  await page.getByTestId("person-menu").getByRole("button", { name: "Dark" }).click();
  await page.locator("html[data-theme=dark]").waitFor();
  await page.locator(`.row.open[data-id="${a.id}"]`).waitFor();
  assert.ok(page.url().includes(a.id));
});
