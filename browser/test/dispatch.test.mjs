// Dead letters: their causes, the filter, a replay and a discard, with keys and without scripts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, everywhere, newPage, signIn } from "../lib/browser.mjs";
import { elsewhere, put } from "../lib/elsewhere.mjs";
import { limit, stage } from "../lib/stage.mjs";

const target = await elsewhere();
const { g, browser } = await stage({ configure: target.configure });
for (const name of ["ana", "bo", "cy"]) await g.person(name, "admin", "operator");
await g.person("vic", "viewer");

async function approved(change) {
  const a = await g.propose(change);
  await g.decide(a.id, { decision: "approved", digest: a.digest, confirm: a.approval.confirm?.value });
  return g.finished(a.id);
}

// Four customers have an address that already exists, and the answer to one call gets lost.
const refused = (n) => approved({
  action_type: "create_customer", risk_level: 3, operation: "insert",
    target: { entity_type: "customer", entity_ref: `C-90${n}` },
  current_state: undefined, proposed_change: { name: "Esther Haas", email: "c0001@example.com", country: "US",
    currency: "USD", version: 1 },
});
const dead = [];
for (let n = 10; n < 14; n++) dead.push(await refused(n));
const lost = await approved(put("t-1", { operation: "lose", proposed_change: { said: "x" } }));
assert.deepEqual([...dead, lost].map((a) => a.status), [...dead.map(() => "failed"), "unknown"]);

const letter = (page, a) => page.locator(`[data-testid=dead-letter][data-id="${a.push.id}"]`);
const listed = (page) => page.getByTestId("dead-letter").evaluateAll((all) => all.map((el) => el.dataset.id));
const push = async (a) => (await g.action(a.id)).push;
const code = dead[0].failure.code;

async function open(t, name, options) {
  const page = await newPage(browser, t, options);
  await signIn(page, await g.setupLink(name), `${g.url}/dispatch`);
  return page;
}

test("each dead letter shows its cause, and who may act", limit, async (t) => {
  const page = await open(t, "vic");
  const ids = await listed(page);
  for (const a of [...dead, lost]) {
    assert.ok(ids.includes(a.push.id));
    const text = await letter(page, a).innerText();
    assert.ok(text.includes(a.failure.code) && text.includes(a.failure.detail), text);
    assert.match(text, a === lost ? /No retry: class C/ : /A retry is safe: every attempt is proven/);
  }
  assert.equal(await page.getByTestId("replay").count() + await page.getByTestId("discard").count(), 0,
    "a viewer acts on nothing");
});

test("the URL contains the filter", limit, async (t) => {
  const page = await open(t, "ana");
  const filter = page.getByTestId("dead-filter");
  const more = () => page.getByTestId("filters").locator("summary").click();
  await more();
  await filter.getByLabel("Connector").fill("elsewhere");
  await filter.getByTestId("filter-go").click();
  await page.waitForURL(/connector=elsewhere/);
  assert.deepEqual(await listed(page), [lost.push.id]);
  assert.match(await page.getByTestId("chip").innerText(), /^Remove the filter\s+Connector:\s+elsewhere/);
  await more();
  await filter.getByLabel("Error code").fill(code);
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`code=${code}`));
  await page.getByText("No dead letter matches the filter.").waitFor();
  await accessible(page, "no dead letter matches");
  await page.getByRole("link", { name: "Remove the filter Connector: elsewhere" }).click();
  await letter(page, dead[0]).waitFor();
  assert.deepEqual((await listed(page)).sort(), dead.map((a) => a.push.id).sort());
  await page.getByTestId("chip").click();
  await letter(page, lost).waitFor();
});

/** Selects a dead letter and replays it, then discards another; act presses a control, or focuses a field. */
async function replayAndDiscard(page, act, again, over) {
  await page.goto(`${g.url}/dispatch?code=${code}`);
  await act(letter(page, again).getByRole("checkbox"));
  await act(page.getByTestId("replay"));
  await page.getByText("1 dead letter is back in the queue").waitFor();
  const after = await g.finished(again.id);
  assert.equal(after.status, "failed", "the address is still another's");
  assert.ok(after.push.attempts > again.push.attempts, "it was called again");

  await page.goto(`${g.url}/dispatch?code=${code}`);
  await act(letter(page, over).getByRole("checkbox"));
  await act(page.getByTestId("discard-reason"));
  await page.keyboard.type("the customer exists");
  await act(page.getByTestId("discard"));
  await page.getByText("1 dead letter is discarded").waitFor();
  assert.match(page.url(), new RegExp(`code=${code}$`));
  assert.equal(await letter(page, over).count(), 0);
  await letter(page, again).waitFor();
  assert.equal((await g.action(over.id)).failure.retry, "never");
}

test("by keys alone", limit, async (t) => {
  const page = await open(t, "bo");
  await replayAndDiscard(page, async (control) => {
    const reached = () => control.evaluate((el) => el === document.activeElement);
    for (let left = 300; !(await reached()) && left > 0; left--) await page.keyboard.press("Tab");
    assert.ok(await reached(), `no Tab leads to ${control}`);
    const key = { checkbox: "Space", submit: "Enter" }[await control.evaluate((el) => el.type)];
    if (key) await page.keyboard.press(key);
  }, dead[0], dead[1]);
});

test("without script", limit, async (t) => {
  const page = await open(t, "cy", { javaScriptEnabled: false });
  await page.getByTestId("replay").click();
  await page.getByText("select the dead letters to retry").waitFor();
  await page.goto(`${g.url}/dispatch`);
  await letter(page, dead[2]).getByRole("checkbox").check();
  await page.getByTestId("discard").click();
  await page.getByTestId("dead").waitFor();
  assert.equal((await push(dead[2])).status, "failed");
  await letter(page, dead[2]).waitFor(); // nothing is closed without a reason
  await replayAndDiscard(page, (control) => control.click(), dead[2], dead[3]);
});

test("the pages have no serious accessibility violation", limit, async (t) => {
  const page = await open(t, "ana");
  await everywhere(page, "dispatch");
});
