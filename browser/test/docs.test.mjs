// The page of the API reference: its content, and the target of a problem's type.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, newPage } from "../lib/browser.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();

for (const javaScriptEnabled of [true, false]) {
  test(`/docs shows every route, scripts ${javaScriptEnabled ? "on" : "off"}`, limit, async (t) => {
    const page = await newPage(browser, t, { javaScriptEnabled });
    await page.goto(`${g.url}/docs`);
    await page.getByRole("heading", { name: "POST /api/v1/proposed-actions", exact: true }).waitFor();
    const document = await (await fetch(`${g.url}/openapi.json`)).json();
    const routes = Object.entries(document.paths).flatMap(([path, item]) => Object.keys(item)
      .map((m) => `${m.toUpperCase()} ${path}`));
    const shown = await page.locator("main h3").allTextContents();
    assert.ok(routes.length > 50);
    assert.deepEqual(routes.filter((r) => !shown.includes(r)), []);
  });
}

test("the type of a problem leads to its code, and from there to the routes", limit, async (t) => {
  const problem = await g.api("GET", "/proposed-actions/act_nothing", { expect: 404 });
  const page = await newPage(browser, t);
  await page.goto(new URL(problem.type, g.url).href);
  const section = page.locator("section:target");
  assert.equal(await section.getByRole("heading").textContent(), problem.code);
  await page.waitForFunction(() => document.querySelector("section:target").getBoundingClientRect().top < innerHeight &&
    scrollY > 0);
  await section.getByRole("link", { name: "getAction", exact: true }).click();
  await page.locator("section:target h3", { hasText: "GET /api/v1/proposed-actions/{id}" }).waitFor();
  // The time of axe grows faster than the page: one section in twenty has every kind of element.
  await page.locator("main section:not(:target)").evaluateAll((all) => all.forEach((el, i) => i % 20 && el.remove()));
  await accessible(page, "/docs");
});
