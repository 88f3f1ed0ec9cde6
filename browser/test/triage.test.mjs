// Many items: their number, an item's position, decisions by others, and selecting several.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, awake, newPage, signIn, stillClock, unfold } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.policy(`version: 1
risk: {price_change: 3, stock_change: 3}
approvals:
  3: {required: 1, roles: [approver], expiry: 24h, hold: 1h}
`);

async function reviewer(t, name) {
  const person = await g.person(name, "approver");
  const page = await newPage(browser, t);
  await stillClock(page);
  await signIn(page, await g.setupLink(name));
  await awake(page);
  return { page, person };
}

async function clear() {
  for (;;) {
    const { items } = await g.api("GET", "/proposed-actions?status=pending&limit=100");
    if (items.length === 0) return;
    await Promise.all(items.map((a) => g.decide(a.id, { decision: "rejected", notes: "end of the test" })));
  }
}

const checked = (page) => page.locator("input[name=pick]:checked").evaluateAll((all) => all.map((el) => el.value));
const ids = (page) => page.getByTestId("row").evaluateAll((all) => all.map((el) => el.dataset.id));

test("an item that others decide stays in place and shows the result", limit, async (t) => {
  await clear();
  const actions = [];
  for (let i = 0; i < 4; i++) actions.push(await g.propose(priced(i, `${i + 1}.25`)));
  const { page } = await reviewer(t, "ada");
  const other = await g.person("bob", "approver");
  const order = await ids(page);
  assert.equal(await page.title(), "(4) Inbox · Gatehouse");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(`.row.open[data-id="${order[0]}"]`).waitFor();
  assert.equal(await page.getByTestId("place").innerText(), "1 of 4");
  const taken = actions.find((a) => a.id === order[1]);
  const where = (await page.locator(`#row-${taken.id}`).boundingBox()).y;
  await g.api("POST", `/proposed-actions/${taken.id}/decide`,
    { key: other.key, token: other.edit_token, body: { decision: "approved", digest: taken.digest } });
  await page.locator(`#row-${taken.id}.settled`).waitFor();
  assert.match(await page.locator(`#row-${taken.id} .row-done`).innerText(), /approved by bob/);
  assert.equal((await page.locator(`#row-${taken.id}`).boundingBox()).y, where, "the row has moved");
  assert.equal(await page.locator(`#row-${taken.id} input[name=pick]`).count(), 0);
  assert.equal(await page.title(), "(3) Inbox · Gatehouse");
  assert.equal(await page.getByTestId("count-mine").innerText(), "3");
  assert.equal(await page.locator("#detail").getAttribute("data-open"), order[0], "the open item was closed");
  await accessible(page, "a row that settled");
  // The item that opens after an answer is not the decided one.
  await awake(page);
  await page.keyboard.press("a");
  await page.locator(`#detail[data-done="${order[0]}"]`).waitFor();
  assert.equal(await page.locator("#detail").getAttribute("data-open"), order[2]);
  assert.equal(await page.getByTestId("place").innerText(), "3 of 4");
});

test("selects ranges, and all alike items", limit, async (t) => {
  await clear();
  for (let i = 0; i < 6; i++) await g.propose(priced(i, `${i + 1}.25`));
  for (let i = 6; i < 8; i++) await g.propose({ ...priced(i, "1"), action_type: "stock_change",
    proposed_change: { stock: i } , current_state: undefined });
  const { page } = await reviewer(t, "cleo");
  const all = await ids(page);
  await unfold(page);
  // A shift click selects from the last selected row to this one.
  await page.locator(`#row-${all[1]} input`).click();
  await page.locator(`#row-${all[4]} input`).click({ modifiers: ["Shift"] });
  assert.deepEqual(await checked(page), all.slice(1, 5));
  assert.equal(await page.locator("#picked").innerText(), "4 selected");
  await page.locator(`#row-${all[2]} input`).click();
  await page.locator(`#row-${all[3]} input`).click({ modifiers: ["Shift"] });
  assert.deepEqual(await checked(page), [all[1], all[4]], "the range takes the mark of its end");
  // All similar rows are selected: the six prices, but not the two stocks.
  await page.locator(`#row-${all[1]} input`).click();
  await page.locator(`#row-${all[1]} input`).click();
  const alike = page.getByTestId("pick-alike");
  assert.equal(await alike.innerText(), "Select all 6 like this");
  await accessible(page, "a selection");
  await alike.click();
  assert.equal((await checked(page)).length, 6);
  assert.ok(!(await alike.isVisible()));
  for (const id of await checked(page)) await page.locator(`#row-${id} input`).uncheck();

  // The same with keys alone.
  await page.locator("body").click({ position: { x: 900, y: 500 } });
  await page.keyboard.press("j"); // the fold itself
  await page.keyboard.press("j");
  await page.keyboard.press("Shift+J");
  await page.keyboard.press("Shift+J");
  const some = await checked(page);
  assert.equal(some.length, 3);
  await page.keyboard.press("Shift+X");
  assert.equal((await checked(page)).length, 6);
  await page.keyboard.press("v");
  await page.getByTestId("bulk").waitFor();
  assert.match(await page.getByTestId("bulk-totals").innerText(), /^6/);
  // A key that was meant for the list decides nothing here.
  await page.locator("html.js").waitFor({ state: "attached" });
  const posts = [];
  page.on("request", (r) => r.method() === "POST" && posts.push(r.url()));
  await page.keyboard.press("a");
  await page.waitForTimeout(200); // in which a form could be sent
  assert.deepEqual(posts, []);
  await awake(page);
  await page.keyboard.press("a");
  await page.getByTestId("bulk-result").waitFor();
  const { items } = await g.api("GET", "/proposed-actions?status=pending&limit=100");
  assert.deepEqual(items.map((a) => a.action_type), ["stock_change", "stock_change"]);
});

test("the next page by j and Enter", limit, async (t) => {
  await clear();
  for (let i = 0; i < 60; i++) await g.propose(priced(i % 40, `${i + 1}.25`));
  const { page } = await reviewer(t, "dora");
  const first = await ids(page);
  assert.equal(first.length, 50);
  assert.equal(await page.title(), "(60) Inbox · Gatehouse");
  await unfold(page);
  for (let i = 0; i < 52; i++) await page.keyboard.press("j");
  await page.locator("[rel=next]:focus").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**cursor=**");
  await awake(page);
  assert.ok((await ids(page)).every((id) => !first.includes(id)));
  await unfold(page);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".row.open").waitFor();
  assert.equal(await page.getByTestId("place").innerText(), "51 of 60");
});
