// A phone: one column, no horizontal scrolling, the decision buttons always in reach, and controls
// large enough for a thumb.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage, phone, signIn, unfold } from "../lib/browser.mjs";
import { fill } from "../lib/scene.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
const scene = await fill(g);
const least = 44; // CSS pixels

const touch = { viewport: phone, hasTouch: true, isMobile: true };

/** The controls within an element that are smaller than WCAG's enhanced target size; a box counts with its label. */
function small(page, within) {
  return page.locator(within).evaluateAll((parts, least) => {
    const found = new Set();
    for (const part of parts) {
      for (const el of part.querySelectorAll("a[href], button, summary, select, input:not([type=hidden]), textarea")) {
        // A link within a sentence is text, for which the height of the line is enough.
        if (getComputedStyle(el).display === "inline" && el.matches("p a, li a, dd a")) continue;
        if (el.closest("svg")) continue; // the table of the chart has the same links
        const box = el.matches("[type=checkbox]") ? el.closest(".pick, label")
          .getBoundingClientRect() : el.getBoundingClientRect();
        if (!el.checkVisibility({ visibilityProperty: true })) continue;
        if (box.width < least - 0.5 ||
          box.height < least - 0.5) found.add(`${el.outerHTML.slice(0, 120)}: ${Math.round(box.width)} × ${Math.round(box.height)}`);
      }
    }
    return [...found];
  }, least);
}

const sideways = (page) => page.evaluate(() => {
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide <= 0) return [];
  const out = [...document.querySelectorAll("body *")].filter((el) =>
    el.getBoundingClientRect().right > innerWidth + 1);
  return [`${wide} px: ` + out.slice(0, 3).map((el) => el.outerHTML.slice(0, 100)).join(" | ")];
});

test("no page scrolls sideways", limit, async (t) => {
  const page = await newPage(browser, t, touch);
  await page.goto(`${g.url}/signin`);
  assert.deepEqual(await sideways(page), [], "/signin");
  const link = await g.setupLink("ana");
  await page.goto(link);
  assert.deepEqual(await sideways(page), [], "/setup");
  await signIn(page, link);
  const pick = (...actions) => actions.map((a) => `pick=${a.id}`).join("&");
  for (const path of [
    "/inbox", "/inbox?tab=team", "/inbox?tab=decided", "/inbox?q=nothing-like-it", `/inbox?open=${scene.price.id}`,
    ...[scene.price, scene.text, scene.bulk, scene.create, scene.dead,
      ...scene.done.slice(0, 3)].map((a) => `/actions/${a.id}`),
    `/inbox/bulk?${pick(scene.price, scene.text, scene.bulk)}`, `/actions/${scene.price.id}/edit`, "/dispatch",
      "/dispatch?tab=queue", "/dispatch?tab=done",
    "/policies", "/policies/edit", "/policies/explain", "/audit", "/insights", "/settings",
    ...["messages", "mandates", "grants", "secrets", "groups", "delegations", "connectors", "connectors/new?type=email"]
      .map((tab) => `/settings/${tab}`),
    "/runs/queues", "/dispatch?tab=health", "/help", "/no-such-page",
  ]) {
    const answer = await page.goto(g.url + path);
    assert.equal(answer.ok(), path !== "/no-such-page", path);
    assert.deepEqual(await sideways(page), [], path);
  }
});

test("every control that stands alone is large enough for a thumb", limit, async (t) => {
  const page = await newPage(browser, t, touch);
  await signIn(page, await g.setupLink("ana"));
  for (const path of [
    "/inbox?tab=team&q=SKU", `/actions/${scene.dead.id}`, "/runs", "/workflows", "/dispatch", "/policies", "/audit",
      "/insights", "/settings",
    "/settings/principals", "/settings/principals/bo", "/help",
      `/inbox/bulk?pick=${scene.price.id}&pick=${scene.bulk.id}`,
  ]) {
    await page.goto(g.url + path);
    assert.deepEqual(await small(page, "main"), [], path);
  }
});

test("list, then action, with the decision buttons in reach", limit, async (t) => {
  const page = await newPage(browser, t, touch);
  await signIn(page, await g.setupLink("bo"));
  const list = page.locator(".list-pane"), detail = page.locator("#detail");
  assert.ok(await list.isVisible());
  assert.ok(!(await detail.isVisible()), "the list has the whole width");
  assert.deepEqual(await small(page, ".list-pane"), []);
  assert.deepEqual(await small(page, "header.top"), []);
  const menu = page.getByTestId("person-menu").locator("summary");
  await menu.tap();
  assert.deepEqual(await small(page, "header.top"), [], "the person's menu");
  assert.deepEqual(await sideways(page), []);
  await menu.tap();

  for (const a of [scene.price, scene.text, scene.create, scene.bulk]) {
    await unfold(page);
    await page.locator(`.row[data-id="${a.id}"]`).getByRole("link").tap();
    const bar = page.locator(`[data-testid=action][data-id="${a.id}"] [data-testid=decision]`);
    await bar.waitFor();
    assert.ok(!(await list.isVisible()), "the action has the whole width");
    // At the top and at the end of a long page.
    for (const where of [0, 1e6]) {
      await page.evaluate((y) => scrollTo(0, y), where);
      const box = await bar.boundingBox();
      assert.ok(box.y >= 0 && box.y + box.height <= phone.height + 1, `the bar is at ${box.y}, ${box.height} high`);
      assert.ok(box.width >= phone.width - 1);
      const approve = bar.locator("[data-testid=approve], [data-testid=approve-more] > summary").first();
      const at = await approve.boundingBox();
      assert.ok(at.y >= 0 && at.y + at.height <= phone.height, "the button is on the screen");
    }
    assert.deepEqual(await small(page, "[data-testid=decision]"), [], a.action_type);
    for (const pop of ["approve-more", "reject"]) {
      const fold = bar.getByTestId(pop);
      if (!(await fold.count())) continue;
      await fold.locator("summary").tap();
      assert.deepEqual(await small(page, "[data-testid=decision]"), [], `${a.action_type}, ${pop}`);
      assert.deepEqual(await sideways(page), []);
      await fold.locator("summary").tap();
    }
    await page.locator("#detail [data-back]").tap();
    await list.waitFor();
  }
});

test("decide by thumb", limit, async (t) => {
  const page = await newPage(browser, t, touch);
  await signIn(page, await g.setupLink("cy"));
  await unfold(page);
  await page.locator(`.row[data-id="${scene.price.id}"]`).getByRole("link").tap();
  await page.getByTestId("approve").tap();
  await page.locator(`#detail[data-done="${scene.price.id}"]`).waitFor();
  assert.equal((await g.finished(scene.price.id)).status, "applied");
  // The page reports the result and shows the next item.
  assert.ok(await page.getByTestId("notice").first().isVisible());
  assert.deepEqual(await sideways(page), []);
});
