// Everything that people have to do works without JavaScript.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
// Decisions on high prices are held, so that there is time for an undo.
const { source } = await g.api("GET", "/policies/active");
const highPrice =
  "{id: high_price, when: 'action.type == \"price_change\" && dec(change.price) > 30', then: needs_approval, hold: 1h}";
await g.policy(source.replace(/^rules:$/m, `rules:\n  - ${highPrice}`));
const people = { ana: await g.person("ana", "approver"), bo: await g.person("bo", "approver") };

async function plain(t, name) {
  const page = await newPage(browser, t, { javaScriptEnabled: false });
  await signIn(page, await g.setupLink(name));
  return page;
}

const row = (page, a) => page.locator(`.row[data-id="${a.id}"]`);

test("approve, reject, sign out", limit, async (t) => {
  const yes = await g.propose(priced(0, "12.50"));
  const no = await g.propose(priced(1, "36.00"));
  const page = await plain(t, "ana");
  assert.ok(!(await page.locator("html").getAttribute("class"))?.includes("js"));
  await row(page, yes).getByRole("link").click();
  assert.match(await page.getByTestId("sentence").innerText(), /10\.00.*12\.50 USD/);
  await page.getByRole("button", { name: /12\.50 USD/ }).click();
  await page.waitForURL(new RegExp(`/inbox\\?.*done=${yes.id}`));
  await page.getByTestId("notice").first().waitFor();
  assert.equal((await g.finished(yes.id)).status, "applied");

  await row(page, no).getByRole("link").click();
  await page.getByTestId("reject").locator("summary").click();
  await page.getByTestId("reject-notes").fill("not before May\nask again then");
  await page.getByTestId("reject-go").click();
  await page.getByTestId("notice").first().getByText(/rejected/).first().waitFor();
  await page.getByTestId("undo").click();
  await page.getByTestId("undone").waitFor();
  const next = (await g.action(no.id)).superseded_by;
  assert.equal((await g.action(next)).status, "pending");
  await page.getByTestId("reject").locator("summary").click();
  await page.getByTestId("reject-notes").fill("not before May\nask again then");
  await page.getByTestId("reject-go").click();
  await page.getByTestId("notice").first().getByText(/rejected/).first().waitFor();
  const end = await g.action(next);
  assert.ok(end.approval.rejects_at);
  assert.deepEqual(end.approval.votes.map((v) => [v.decision, v.name, v.notes]),
    [["rejected", "ana", "not before May\nask again then"]]);

  await page.getByTestId("person-menu").locator("summary").click();
  await page.getByTestId("signout").click();
  await page.getByTestId("signin").waitFor();
  await page.goto(`${g.url}/inbox`);
  await page.getByTestId("signin").waitFor();
  // The page of a decided action asks to sign in, too.
  await page.goto(`${g.url}/actions/${yes.id}`);
  await page.getByTestId("signin").waitFor();
});

test("L4: retyped, and proven with the edit token", limit, async (t) => {
  const a = await g.propose({
    action_type: "create_item", operation: "insert", target: { entity_type: "item", entity_ref: "SKU-9001" },
      current_state: undefined,
    proposed_change: { name: "Copper washer 8 mm", price: "0.12", cost: "0.05", currency: "USD", stock: 5000,
      version: 1 },
  });
  assert.equal(a.risk_level, 4);
  const page = await plain(t, "ana");
  await row(page, a).getByRole("link").click();
  const fill = async (confirm, token) => {
    const more = page.getByTestId("approve-more");
    if ((await more.getAttribute("open")) === null) await more.locator("summary").click();
    await page.getByTestId("confirm").fill(confirm);
    if (token) await page.getByTestId("edit-token").fill(token);
    await page.getByTestId("approve").click();
  };
  const outcome = (code) => page.locator(`[data-testid=outcome][data-code=${code}]`).waitFor();
  await fill(a.approval.confirm.value, people.bo.edit_token);
  await outcome("edit_token_required");
  await fill("SKU-9002", people.ana.edit_token);
  await outcome("confirmation_required");
  assert.equal((await g.action(a.id)).status, "pending");
  // The step-up for this action remains valid.
  await page.getByTestId("step-up-done").waitFor();
  await fill(a.approval.confirm.value, "");
  // A notice would prove nothing, since the earlier refusal had one too.
  await page.waitForURL((url) => url.searchParams.get("done") === a.id);
  const end = await g.finished(a.id);
  assert.deepEqual([end.status, end.decided_by], ["applied", "ana"]);
});

test("L5: two people, the second with a reason of their own", limit, async (t) => {
  const a = await g.propose({
    action_type: "bulk_delete", operation: "bulk_delete", target: { entity_type: "item",
      entity_refs: ["SKU-1998", "SKU-1999", "SKU-2000"] },
    current_state: undefined, proposed_change: {}, rationale: "discontinued",
  });
  assert.equal(a.risk_level, 5);
  const approve = async (page, token, reason) => {
    await row(page, a).getByRole("link").click();
    await page.getByTestId("approve-more").locator("summary").click();
    await page.getByTestId("confirm").fill(a.approval.confirm.value);
    await page.getByTestId("edit-token").fill(token);
    assert.equal(await page.getByTestId("reason").count(), reason ? 1 : 0);
    if (reason) await page.getByTestId("reason").fill(reason);
    await page.getByTestId("approve").click();
    await page.getByTestId("notice").first().waitFor();
  };
  await approve(await plain(t, "ana"), people.ana.edit_token, "");
  assert.equal((await g.action(a.id)).status, "pending");
  await approve(await plain(t, "bo"), people.bo.edit_token, "no order in two years");
  const end = await g.finished(a.id);
  assert.deepEqual([end.status, end.approval.votes.map((v) => v.name)], ["applied", ["ana", "bo"]]);
});

test("several at once", limit, async (t) => {
  const list = [];
  for (const i of [10, 11, 12]) list.push(await g.propose(priced(i, "20.00")));
  const high = await g.propose(priced(13, "20.00", { risk_level: 4 }));
  const page = await plain(t, "bo");
  assert.equal(await row(page, high).getByRole("checkbox").count(), 0);
  for (const a of list.slice(0, 2)) await row(page, a).getByRole("checkbox").check();
  await page.getByTestId("bulk-review").click();
  const totals = await page.getByTestId("bulk-totals").innerText();
  assert.match(totals, /^2\s+actions/);
  assert.match(totals, /USD/);
  await page.getByTestId("bulk-approve").click();
  await page.getByTestId("bulk-result").waitFor();
  for (const a of list.slice(0, 2)) assert.equal((await g.finished(a.id)).status, "applied");
  assert.equal((await g.action(list[2].id)).status, "pending");
});

test("filters, tabs, help and theme", limit, async (t) => {
  const page = await plain(t, "bo");
  // Each link and form loads a new page: the next click must wait for it.
  await Promise.all([page.waitForURL(/tab=team/), page.getByTestId("tab-team").click()]);
  await page.getByTestId("filters").locator("summary").click();
  await page.getByLabel("Search").fill("SKU-0013");
  await Promise.all([page.waitForURL(/q=SKU-0013/), page.getByTestId("filter-go").click()]);
  assert.equal(await page.getByTestId("row").count(), 1);
  await Promise.all([page.waitForURL(/tab=decided/), page.getByTestId("tab-decided").click()]);
  await page.goto(`${g.url}/help`);
  await page.getByRole("heading", { name: "Keys and help" }).waitFor();
  await page.getByTestId("person-menu").locator("summary").click();
  await page.getByRole("button", { name: "Dark" }).click();
  await page.locator("html[data-theme=dark]").waitFor();
  assert.match(page.url(), /\/help$/);
});
