// The pages of auditors and administrators: the log by its filters, and the editor of the policy.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");
await g.person("eve", "auditor", "admin");

async function open(t, name, where, options) {
  const page = await newPage(browser, t, options);
  await signIn(page, await g.setupLink(name));
  await page.goto(g.url + where);
  return page;
}

test("without script: the log by person, kind, target and time, and its export", limit, async (t) => {
  const a = await g.propose(priced(0, "12.50")), b = await g.propose(priced(1, "36.00"));
  for (const { id, digest } of [a, b]) {
    await g.api("POST", `/proposed-actions/${id}/decide`, { body: { decision: "rejected", notes: "no", digest } });
  }
  const page = await open(t, "eve", "/audit", { javaScriptEnabled: false, acceptDownloads: true });
  const filter = page.getByTestId("audit-filter"), rows = page.getByTestId("entries").locator("tbody tr");
  await filter.getByLabel("Kind").selectOption({ label: "Decisions" });
  await filter.getByLabel("About").fill(a.target.entity_ref);
  await filter.getByLabel("Since (UTC)").fill("2020-01-01T00:00");
  await filter.getByTestId("filter-go").click();
  assert.equal(await rows.count(), 1);
  assert.match(await rows.first().innerText(), new RegExp(`admin rejected Change price of ${a.target.entity_ref}`));
  assert.equal(await filter.getByLabel("Since (UTC)").inputValue(), "2020-01-01T00:00");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByTestId("audit-export").click()]);
  assert.match(saved.suggestedFilename(), /^audit-\d{8}-\d{6}\.csv$/);
  const lines = (await readFile(await saved.path(), "utf8")).trim().split("\n");
  assert.equal(lines.length, 2);
  assert.match(lines[1], new RegExp(`rejected ${a.id}`));
  await filter.getByLabel("By").fill("ana");
  await filter.getByTestId("filter-go").click();
  await page.getByTestId("empty").waitFor();
});

test("the editor numbers its lines, and a finding leads to its line", limit, async (t) => {
  const page = await open(t, "eve", "/policies/edit");
  const text = page.getByTestId("policy-text"), numbers = page.locator(".line-numbers");
  const shown = async () => (await numbers.textContent()).split("\n").length;
  const lines = (await text.inputValue()).split("\n").length;
  assert.equal(await shown(), lines);
  await text.press("Control+End");
  await text.pressSequentially("\n\n");
  assert.equal(await shown(), lines + 2);
  assert.equal(await numbers.evaluate((el) => el.scrollTop), await text.evaluate((el) => el.scrollTop));
  // The first number stands at the height of the first line.
  const line = (el) => {
    const { lineHeight, fontSize, paddingTop, borderTopWidth } = getComputedStyle(el);
    return [lineHeight, fontSize, paddingTop, borderTopWidth];
  };
  assert.deepEqual(await numbers.evaluate(line), await text.evaluate(line));

  const filler = Array.from({ length: 60 }, (_, i) => `# ${i}`).join("\n");
  await text.fill(`version: 1\n${filler}\nrules:\n  - {id: all, when: 'nothing > 2', then: allow}\n`);
  await page.getByTestId("policy-check-button").click();
  await page.getByTestId("policy-check").getByRole("link", { name: /^63:/ }).click();
  const selected = await text.evaluate((el) => document.activeElement === el && el.value.slice(el.selectionStart, el.selectionEnd));
  assert.equal(selected, "  - {id: all, when: 'nothing > 2', then: allow}");
  const [top, height, at] = await text.evaluate((el) => {
    return [el.scrollTop, el.clientHeight, 62 * el.scrollHeight / el.value.split("\n").length];
  });
  assert.ok(top <= at && at < top + height, "the line is in view");

  // On the page of a version, a rule leads to its line, with or without script.
  await page.goto(`${g.url}/policies`);
  await page.getByTestId("policy-rules").getByRole("link", { name: "undo" }).click();
  assert.match(await page.evaluate(() => document.querySelector(":target").textContent), /id: undo/);
});
