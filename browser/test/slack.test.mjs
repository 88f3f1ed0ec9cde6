// The cards as Slack would show them: a person links their Slack user, approves, and is asked for
// the reason of a rejection, in both themes and on a phone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";
import { everywhere, newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();

test("a person decides on a card of /dev/slack", limit, async (t) => {
  await g.person("ana", "approver");
  const active = await g.api("GET", "/policies/active");
  await g.policy(active.source.replace(/^version: 1$/m, "version: 1\nslack: {decide_up_to: 3}"));
  const [yes, no] = [await g.propose(priced(1, "9.99")), await g.propose(priced(2, "9.99"))];
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"), `${g.url}/settings`);
  await page.getByText("Link a Slack account").click();
  await page.getByRole("button", { name: "Make a code" }).click();
  const [code] = (await page.content()).match(/[2-9A-Z]{5}-[2-9A-Z]{5}/);
  await page.goto(`${g.url}/dev/slack`);
  for (let left = 100; left > 0 && (await page.getByTestId("card").count()) < 2; left--) {
    await rest(100);
    await page.reload();
  }
  await page.locator("#command").fill(`link ${code}`);
  await page.getByTestId("command-go").click();
  await page.getByText("Linked: your answers").waitFor();
  const press = (action, name) =>
    page.getByTestId("card").filter({ hasText: action.id }).getByRole("button", { name }).click();
  await press(yes, "Approve");
  await page.getByText("Recorded: you approved it.").waitFor();
  await press(no, "Reject…");
  await page.getByTestId("form").waitFor();
  await everywhere(page, "the cards");
  await page.locator("textarea").fill("too cheap");
  await page.getByTestId("form-go").click();
  await page.getByText("Recorded: you rejected it.").waitFor();
  const done = await g.action(no.id);
  assert.deepEqual([done.status, done.decided_via, done.decided_by], ["rejected", "slack", "ana"]);
  assert.equal((await g.action(yes.id)).decided_via, "slack");
  const metrics = await (await fetch(`${g.url}/metrics`)).text();
  assert.match(metrics, /^gatehouse_decisions_total\{endpoint="slack",result="won"\} 2$/m);
});
