// Filters as chips: each chip removes only its own filter, and the form for a filter suggests known values.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, newPage, signIn } from "../lib/browser.mjs";
import { fill } from "../lib/scene.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await fill(g);
await g.person("eve", "auditor", "approver", "operator");

const words = (text) => text.replace(/\s+/g, " ").trim();
const chips = async (page) => (await page.getByTestId("chip").allInnerTexts()).map(words);
const known = (page, name) => page.locator(`#known-${name} option`).evaluateAll((all) => all.map((el) => el.value));

async function visit(page, path) {
  await page.goto(g.url + path);
  await page.getByTestId("filters").locator("summary").click();
}

for (const [what, options] of [["with a script", {}], ["without a script", { javaScriptEnabled: false }]]) {
  test(`the inbox, ${what}`, limit, async (t) => {
    const page = await newPage(browser, t, options);
    await signIn(page, await g.setupLink("eve"));
    await visit(page, "/inbox?tab=team");
    assert.deepEqual(await chips(page), []);
    assert.ok((await known(page, "type")).includes("bulk_delete"));
    assert.deepEqual(await known(page, "by"), ["dev-agent"]);
    await page.getByLabel("Type").fill("price_change");
    await page.getByLabel("Risk").selectOption("3");
    await Promise.all([page.waitForURL(/type=price_change/), page.getByTestId("filter-go").click()]);
    assert.deepEqual(await chips(page), ["Remove the filter Type: price_change ✕", "Remove the filter Level: L3 ✕"]);
    await Promise.all([
      page.waitForURL((url) => !url.searchParams.has("type") && url.searchParams.get("risk") === "3"),
      page.getByRole("link", { name: "Type: price_change" }).click(),
    ]);
    assert.deepEqual(await chips(page), ["Remove the filter Level: L3 ✕"]);
    assert.equal(new URL(page.url()).searchParams.get("tab"), "team");
  });
}

test("the log", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("eve"));
  await visit(page, "/audit");
  const names = await known(page, "by");
  assert.ok(names.includes("admin") && names.includes("Gatehouse"), names.join());
  await visit(page, "/audit?kind=decisions&by=admin&since=2026-01-01");
  assert.equal((await chips(page)).length, 3);
  await accessible(page, "the log with chips");
  await page.getByRole("link", { name: "Clear all" }).click();
  await page.waitForURL("**/audit");
});

test("dispatch and runs", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("eve"));
  await visit(page, "/dispatch");
  assert.deepEqual(await known(page, "connector"), ["shop"]);
  await visit(page, "/runs?status=failed_terminal&workflow=reprice");
  assert.deepEqual((await chips(page)).length, 2);
  await page.getByRole("link", { name: "Workflow: reprice" }).click();
  await page.waitForURL(/\/runs\?status=failed_terminal$/);
});
