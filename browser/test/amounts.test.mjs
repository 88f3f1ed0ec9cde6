// Amounts come from the payload. An agent's claim is shown separately and marked as a claim.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { elsewhere, put } from "../lib/elsewhere.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage(await elsewhere());
await g.person("ana", "approver");

const payment = (ref, amount, claimed, more = {}) => g.propose(put(ref, {
  action_type: "price_change", operation: "put", proposed_change: { amount, currency: "USD" },
    magnitude: { amount: claimed, currency: "USD" }, ...more,
}));
const price = (ref, after) => g.propose(put(ref, {
  action_type: "price_change", current_state: { price: "10", currency: "USD" }, proposed_change: { price: after },
}));

test("the totals of a selection", limit, async (t) => {
  // Proposed before the sign-in: an empty inbox reloads when an action arrives, which would disturb a `goto`.
  const three = [await price("a", "99.99"), await price("b", "1000"), await payment("c", "125000", "1250")];
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"), `${g.url}/inbox/bulk?${three.map((a) => `pick=${a.id}`).join("&")}`);
  assert.equal(await page.getByTestId("bulk-sum").count(), 1);
  assert.equal(await page.getByTestId("bulk-sum").innerText(), "1079.99 USD moved, net +1079.99");
  const totals = await page.getByTestId("bulk-totals").innerText();
  assert.match(totals, /in 2 actions; the largest is \+990 USD/);
  assert.doesNotMatch(totals, /without an amount/);
  assert.match(await page.getByTestId("bulk-excluded").innerText(),
    /the agent claims 1250 USD, but the change has another amount/);

  // An increase and a decrease must not cancel each other out.
  const two = [await price("d", "110"), await g.propose(put("e",
    { action_type: "price_change", current_state: { price: "200", currency: "USD" },
    proposed_change: { price: "100" } }))];
  await page.goto(`${g.url}/inbox/bulk?${two.map((a) => `pick=${a.id}`).join("&")}`);
  assert.equal(await page.getByTestId("bulk-sum").innerText(), "200 USD moved, net 0");
});

test("a claim that differs from the payload", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"));
  const a = await payment("big", "9800.00", "98.00");
  const row = async (id) => {
    await page.goto(`${g.url}/inbox?open=${id}`);
    return page.locator(`.row[data-id="${id}"]`);
  };
  let here = await row(a.id);
  assert.equal(await here.getByTestId("moved").innerText(), "+9800.00 USD");
  assert.equal((await here.getByTestId("claimed").innerText()).trim(), "the agent claims 98.00 USD");
  assert.equal(await page.getByTestId("amount").innerText(), "+9800.00 USD");
  assert.equal((await page.getByTestId("claim").innerText()).trim(),
    "The agent claims 98.00 USD — not what the change says");

  // A claim that matches the payload is not repeated; an amount that the payload lacks is not
  // invented.
  const same = await payment("same", "45.50", "45.5");
  here = await row(same.id);
  assert.equal(await here.getByTestId("moved").innerText(), "+45.50 USD");
  assert.equal(await here.getByTestId("claimed").count(), 0);
  assert.equal(await page.getByTestId("claim").count(), 0);
  const none = await payment("none", "1", "7.00", { proposed_change: { note: "x" } });
  here = await row(none.id);
  assert.equal(await here.getByTestId("moved").count(), 0);
  assert.equal((await here.getByTestId("claimed").innerText()).trim(), "the agent claims 7.00 USD");

  // If the decisive value must be retyped, it is the payload's.
  const high = await payment("high", "9800.00", "98.00", { risk_level: 4 });
  await row(high.id);
  assert.match(await page.getByTestId("approve-form").textContent(), /Type the new amount 9800\.00/);
});
