// Alike actions are one row, which opens in place; a decision on all of them is confirmed on the page of the selection.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, awake, newPage, signIn, stillClock } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.policy(`version: 1
risk: {price_change: 3, stock_change: 3, create_item: 4}
approvals:
  3: {required: 1, roles: [approver], expiry: 24h, hold: 1h}
`);

const stock = (i) => ({
  ...priced(i, "1"), action_type: "stock_change", proposed_change: { stock: i }, current_state: undefined,
});
const checked = (page) => page.locator("input[name=pick]:checked").count();
const pending = async () => (await g.api("GET", "/proposed-actions?status=pending&limit=100")).items;

async function filled(n) {
  for (const a of await pending()) await g.decide(a.id, { decision: "rejected", notes: "end of the test" });
  const other = await g.propose(stock(20));
  for (let i = 0; i < n; i++) await g.propose(priced(i, `${i + 1}.25`));
  return other;
}

async function reviewer(t, name, options) {
  await g.person(name, "approver");
  const page = await newPage(browser, t, options);
  if (!options) await stillClock(page);
  await signIn(page, await g.setupLink(name));
  if (!options) await awake(page);
  return page;
}

test("the keys walk a fold as one row, and open it in place", limit, async (t) => {
  const other = await filled(13);
  const page = await reviewer(t, "ada");
  const fold = page.getByTestId("fold");
  assert.equal(await page.getByTestId("fold-count").innerText(), "13 alike");
  assert.ok(!(await fold.locator(".row").first().isVisible()));
  await accessible(page, "a fold");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  assert.equal(await page.locator(".cursor").getAttribute("data-testid"), "fold");
  // While a fold is marked, the key for approval only unfolds it.
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.locator(`#detail[data-open="${other.id}"]`).waitFor();
  await awake(page);
  await page.keyboard.press("j");
  await page.keyboard.press("a");
  assert.equal(await fold.locator("details").getAttribute("open"), "");
  assert.equal((await pending()).length, 14);
  await page.keyboard.press("ArrowLeft");
  assert.ok(!(await fold.locator(".row").first().isVisible()));
  await page.keyboard.press("Enter");
  await fold.locator(".row").first().waitFor();
  await accessible(page, "an open fold");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".fold-row .row.open").waitFor();
  assert.equal(await page.getByTestId("place").innerText(), "2 of 14");
  await awake(page);
  await page.keyboard.press("a");
  await page.locator("#detail[data-done]").waitFor();
  assert.equal(await fold.locator("summary .row-done").innerText(), "12 left");
  await awake(page);
  await page.keyboard.press("ArrowLeft");
  await page.locator(".fold-row.cursor").waitFor();
});

test("a fold that is selected is confirmed like its rows", limit, async (t) => {
  await filled(6);
  await g.propose({
    action_type: "create_item", operation: "insert", target: { entity_type: "item", entity_ref: "SKU-9001" },
    current_state: undefined, proposed_change: { name: "Washer", price: "0.12", currency: "USD", version: 1 },
  });
  const page = await reviewer(t, "bea");
  await page.getByTestId("fold-pick").check();
  assert.equal(await checked(page), 6);
  await page.getByTestId("fold").locator("summary").click();
  await page.getByTestId("fold").locator("input[name=pick]").first().uncheck();
  assert.ok(await page.getByTestId("fold-pick").evaluate((el) => el.indeterminate && !el.checked));
  await page.getByTestId("fold-pick").check();
  await page.getByTestId("fold").locator("summary").click();
  await page.keyboard.press("v");
  await page.getByTestId("bulk").waitFor();
  // The page of the selection shows each of them, and asks; nothing is decided before.
  assert.match(await page.getByTestId("bulk-totals").innerText(), /^6\s+actions/);
  assert.equal(await page.locator(".bulk-item").count(), 6);
  assert.equal((await pending()).length, 8);
  await awake(page);
  await page.keyboard.press("a");
  await page.getByTestId("bulk-result").waitFor();
  assert.deepEqual((await pending()).map((a) => a.action_type).sort(), ["create_item", "stock_change"]);
});

test("a fold by x alone", limit, async (t) => {
  await filled(5);
  const page = await reviewer(t, "cia");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  assert.equal(await checked(page), 5);
  assert.equal(await page.locator("#picked").innerText(), "5 selected");
  await page.keyboard.press("x");
  assert.equal(await checked(page), 0);
});

test("without a script", limit, async (t) => {
  await filled(5);
  const page = await reviewer(t, "dot", { javaScriptEnabled: false });
  const fold = page.getByTestId("fold");
  assert.ok(!(await fold.locator(".row").first().isVisible()));
  await fold.locator("summary").click();
  await fold.locator(".row").first().getByRole("checkbox").check();
  await page.getByTestId("fold-pick").check();
  await page.getByTestId("bulk-review").click();
  assert.match(await page.getByTestId("bulk-totals").innerText(), /^5\s+actions/);
  await page.getByTestId("bulk-approve").click();
  await page.getByTestId("bulk-result").waitFor();
  assert.deepEqual((await pending()).map((a) => a.action_type), ["stock_change"]);
});
