// Operating by error: groups of dead letters, corrections, the health of the dispatch, figures by day,
// workers and queues, and policies in colour; by keys, without script, light, dark and on a phone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { everywhere, newPage, signIn } from "../lib/browser.mjs";
import { stage, limit } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "admin", "operator", "approver");
await g.person("cy", "operator", "admin");
await g.person("dot", "operator");

// Customers whose address already exists: the ledger refuses all of them in the same words.
const refused = async (n) => {
  const a = await g.propose({
    action_type: "create_customer", risk_level: 3, operation: "insert",
      target: { entity_type: "customer", entity_ref: `C-91${n}` },
    current_state: undefined, proposed_change: { name: "<b>Esther</b> Haas", email: "c0001@example.com", country: "US",
      currency: "USD", version: 1 },
  });
  await g.decide(a.id, { decision: "approved", digest: a.digest, confirm: a.approval.confirm?.value });
  return g.finished(a.id);
};
const dead = [];
for (let n = 10; n < 17; n++) dead.push(await refused(n));
assert.ok(dead.every((a) => a.status === "failed"));

async function open(t, name, path, options) {
  const page = await newPage(browser, t, options);
  await signIn(page, await g.setupLink(name), g.url + path);
  return page;
}

test("the dead letters of one error are one group", limit, async (t) => {
  const page = await open(t, "ana", "/dispatch");
  const group = page.getByTestId("dead-group");
  assert.equal(await group.count(), 1);
  assert.match(await group.innerText(), /7×/);
  await group.getByTestId("group-acts").locator("summary").press("Enter");
  await everywhere(page, "groups");
});

test("a refused change is corrected by keys, and others approve it", limit, async (t) => {
  const page = await open(t, "dot", "/dispatch");
  const letter = page.locator(`[data-testid=dead-letter][data-id="${dead[0].push.id}"]`);
  await letter.getByTestId("correct").focus();
  await page.keyboard.press("Enter");
  await page.getByTestId("correct-why").waitFor();
  await page.getByTestId("edit-note").fill("the address was another's");
  await page.getByTestId("edit-field").filter({ hasText: "email" }).locator("input").focus();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type("esther@example.com");
  await page.getByTestId("edit-word").waitFor(); // the preview, without a press
  await page.waitForFunction(() =>
    !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added"));
  await everywhere(page, "correct");
  await page.getByTestId("edit-save").focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/actions\/act_[0-9a-f]+$/);
  const old = await g.action(dead[0].id);
  assert.equal(old.status, "failed");
  const fresh = await g.action(old.superseded_by);
  assert.equal(fresh.edited_by, "dot");
  await g.decide(fresh.id, { decision: "approved", digest: fresh.digest, confirm: fresh.approval.confirm?.value });
  assert.equal((await g.finished(fresh.id)).status, "applied");
});

test("a group is discarded after a preview, without script", limit, async (t) => {
  const page = await open(t, "cy", "/dispatch", { javaScriptEnabled: false });
  await page.getByTestId("group-acts").locator("summary").click();
  await page.getByTestId("group-replay").click();
  await page.getByText(/Retry 6 dead letters\?/).waitFor();
  await page.getByTestId("group-acts").locator("summary").click();
  await page.getByTestId("group-reason").fill("the customer exists");
  await page.getByTestId("group-discard").click();
  await page.getByText("Discard 6 dead letters?").waitFor();
  assert.equal((await g.action(dead[1].id)).failure.retry, "operator");
  await page.getByTestId("group-sure").click();
  await page.getByText("6 dead letters are discarded").waitFor();
  assert.equal((await g.action(dead[1].id)).failure.retry, "never");
});

test("the health of the dispatch", limit, async (t) => {
  const page = await open(t, "ana", "/dispatch?tab=health");
  assert.match(await page.getByTestId("connectors").innerText(), /failed/);
  await page.getByTestId("queue-table").locator("summary").press("Enter");
  await everywhere(page, "health");
});

test("a bar of a day opens its rows", limit, async (t) => {
  const page = await open(t, "ana", "/insights?window=30d");
  await everywhere(page, "trends");
  await page.getByTestId("trend-proposed").getByRole("link").last().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/inbox\?.*from=/);
});

test("workers and queues", limit, async (t) => {
  const page = await open(t, "ana", "/runs");
  await page.getByTestId("to-queues").press("Enter");
  await page.getByTestId("run-queues").waitFor();
  await everywhere(page, "queues");
  await page.goto(`${g.url}/runs?input=customer%3DACME`);
  await page.getByText("No run matches the filter.").waitFor();
});

test("a policy is shown and edited in colour", limit, async (t) => {
  const page = await open(t, "ana", "/policies");
  assert.ok(await page.getByTestId("policy-source").locator(".src-k").count() > 3);
  await page.goto(`${g.url}/policies/edit`);
  const text = page.getByTestId("policy-text"), paper = page.locator(".paper");
  await text.fill("# <b>x</b>\nversion: 1\n" + "rules: []\n".repeat(60));
  assert.equal((await paper.textContent()).trimEnd(), (await text.inputValue()).trimEnd());
  assert.equal(await paper.locator(".src-c").first().textContent(), "# <b>x</b>");
  await text.press("ControlOrMeta+End");
  await page.waitForFunction(() => {
    const [a, b] = [document.querySelector(".paper"), document.querySelector("textarea[data-lines]")];
    return Math.abs(a.scrollTop - b.scrollTop) < 2;
  });
  await everywhere(page, "policy-editor");
});
