// The target of a change is modified during the review, and the change is proposed again on the
// present state.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, awake, newPage, signIn, stillClock } from "../lib/browser.mjs";
import { items } from "../lib/ledger.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");
await g.person("bo", "approver");

/** An action whose target another action has changed since. */
async function overtaken(i) {
  const a = await g.propose(priced(i, "13.50"));
  const other = await g.propose(priced(i, "12.50"));
  await g.decide(other.id, { decision: "approved", digest: other.digest });
  assert.equal((await g.finished(other.id)).status, "applied");
  return a;
}

/** Checks the section about what changed at the target. */
async function moved(page, i) {
  const rows = await page.getByTestId("state-moved").getByTestId("change").allInnerTexts();
  assert.equal(rows.length, 2, rows.join(" | "));
  assert.match(rows[0], new RegExp(`target version.*${items[i].version}.*${Number(items[i].version) + 1}`, "s"));
  assert.match(rows[1], new RegExp(`price.*${items[i].price.replace(".", "\\.")}.*12\\.50`, "s"));
}

async function applied(a, by) {
  const next = (await g.action(a.id)).superseded_by;
  const end = await g.finished(next);
  assert.deepEqual([end.status, end.decided_by, end.rebased_by, end.current_state.price], ["applied", by, by, "12.50"]);
}

test("rebases by keyboard", limit, async (t) => {
  const a = await overtaken(0);
  const page = await newPage(browser, t);
  await stillClock(page);
  await signIn(page, await g.setupLink("ana"));
  await awake(page);
  await page.locator(`.row[data-id="${a.id}"]`).getByRole("link").click();
  await page.locator(`#detail[data-open="${a.id}"]`).waitFor();
  await awake(page);
  await page.getByTestId("target-differs").waitFor(); // both values are shown before anything is pressed
  assert.match(await page.getByTestId("sentence").innerText(), /from 12\.50 \(the agent says 10\.00\) to 13\.50/);
  assert.equal(await page.getByTestId("origin").first().innerText().then((s) => /^read from shop/.test(s)), true);
  await awake(page);
  await page.keyboard.press("a");
  await page.getByTestId("stale-target").waitFor();
  await accessible(page, "the notice of a changed target");
  await awake(page);
  await page.keyboard.press("b");
  await page.getByTestId("state-moved").waitFor();
  await moved(page, 0);
  assert.equal(await page.locator("#detail").getAttribute("data-open"), (await g.action(a.id)).superseded_by);
  await accessible(page, "a rebase");
  await awake(page);
  await page.keyboard.press("a");
  await applied(a, "ana");
});

test("rebases without script", limit, async (t) => {
  const a = await overtaken(1);
  const page = await newPage(browser, t, { javaScriptEnabled: false });
  await signIn(page, await g.setupLink("bo"));
  await page.locator(`.row[data-id="${a.id}"]`).getByRole("link").click();
  await page.getByTestId("approve").click();
  await page.getByTestId("rebase").click();
  await page.waitForURL(/\/inbox\?.*open=/);
  await moved(page, 1);
  await page.getByTestId("approve").click();
  await page.waitForURL(/\/inbox\?.*done=/);
  await applied(a, "bo");
});
