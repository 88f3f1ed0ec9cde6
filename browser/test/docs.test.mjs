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
  // The run time of axe grows faster than linearly with the page. Of sections with the same elements, axe
  // examines the first, and the one that the address targets.
  const left = await page.locator("main section").evaluateAll((all) => {
    const kinds = new Set();
    for (const el of all) {
      const elements = [...el.querySelectorAll("*")]
        .map((x) => `${x.localName}.${x.className} ${x.textContent.trim() !== ""}`);
      const kind = [...new Set(elements)].sort().join();
      if (kinds.has(kind) && !el.matches(":target")) el.remove();
      kinds.add(kind);
    }
    return kinds.size;
  });
  assert.ok(left > 5, `${left} kinds of sections`);
  await accessible(page, "/docs");
});
