// The palette: live results by keyboard, and a search on Enter without them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, newPage, signIn } from "../lib/browser.mjs";
import { items } from "../lib/ledger.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "admin", "approver");
const a = await g.propose(priced(0, "12.50"));
await g.propose(priced(1, "13.50"));

async function opened(t, name, key = "Control+k") {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink(name));
  await page.locator("html.js").waitFor({ state: "attached" });
  if (key) await page.keyboard.press(key);
  if (key) await page.locator("#palette-input:focus").waitFor();
  return page;
}

/** The option that Enter follows, by the attributes that a screen reader hears. */
const active = (page) => page.evaluate(() => {
  const id = document.getElementById("palette-input").getAttribute("aria-activedescendant");
  const el = id && document.getElementById(id);
  return el ? { text: el.innerText.replace(/\s+/g, " ").trim(), selected: el.getAttribute("aria-selected") } : null;
});

test("results while typing, by keyboard", limit, async (t) => {
  const page = await opened(t, "ana");
  const asked = [];
  page.on("request", (r) => { if (r.url().includes("/palette?")) asked.push(new URL(r.url()).searchParams.get("q")); });
  assert.equal(await active(page), null);
  await page.locator("#palette-input").evaluate((input, sku) => {
    for (let n = 1; n <= sku.length; n++) {
      input.value = sku.slice(0, n);
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
  }, items[0].sku);
  const found = page.getByTestId("palette-actions").getByRole("option");
  await found.first().waitFor();
  assert.equal(await found.count(), 1);
  assert.deepEqual(asked, [items[0].sku], "each letter is asked for");
  const first = await active(page);
  assert.ok(first.selected === "true" && first.text.includes(items[0].sku), JSON.stringify(first));
  await accessible(page, "the palette with results");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/actions/${a.id}`);
});

test("commands and people, and arrows between them", limit, async (t) => {
  const page = await opened(t, "ana");
  await page.keyboard.type("p");
  const before = (await active(page)).text;
  await page.keyboard.press("ArrowDown");
  const next = (await active(page)).text;
  assert.notEqual(next, before);
  await page.keyboard.press("ArrowUp");
  assert.equal((await active(page)).text, before);
  // The arrows also reach results of the server.
  await page.locator("#palette-input").fill("ana");
  await page.getByTestId("palette-people").waitFor();
  await page.keyboard.press("ArrowUp");
  assert.match((await active(page)).text, /^ana/);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/settings/principals/ana");

  await page.keyboard.press("Control+k");
  await page.keyboard.type("dark th");
  await page.keyboard.press("Enter");
  await page.locator("html[data-theme=dark]").waitFor();
  assert.match(page.url(), /principals\/ana$/);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("dark");
  await accessible(page, "the palette in the dark");
});

test("without results, Enter searches", limit, async (t) => {
  const page = await opened(t, "ana");
  await page.route("**/palette?**", (route) => route.abort());
  await page.keyboard.type("birch wood");
  assert.equal(await active(page), null);
  await page.locator("#palette-none").waitFor();
  await accessible(page, "the palette without results");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/inbox\?q=birch\+wood&tab=team/);
});

test("by the pointer, and without a script", limit, async (t) => {
  const page = await opened(t, "ana", "");
  await page.getByTestId("find").click();
  await page.locator("#palette-input:focus").waitFor();
  await page.getByRole("option", { name: "Workers and queues" }).click();
  await page.waitForURL("**/runs/queues");

  const plain = await newPage(browser, t, { javaScriptEnabled: false });
  await g.person("bo", "approver");
  await signIn(plain, await g.setupLink("bo"));
  await plain.getByTestId("find").click();
  await plain.getByTestId("search-page").getByRole("searchbox").fill(a.id);
  await Promise.all([plain.waitForURL(`**/actions/${a.id}`), plain.getByRole("button", { name: "Search" }).click()]);
});
