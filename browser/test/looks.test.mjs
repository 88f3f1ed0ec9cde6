// The console's appearance, as far as it can be measured: what covers the page, what moves, its
// font, and the position of the sections on a phone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, desktop, newPage, phone, signIn } from "../lib/browser.mjs";
import { fill } from "../lib/scene.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.policy(`version: 1
reject_reasons: [Wrong currency, Ask the supplier first]
risk: {price_change: 3, create_item: 4, bulk_delete: 5}
`);
const scene = await fill(g);

/** The share of the window that the decision bar covers while the page scrolls under it. */
const covered = (page) => page.getByTestId("decision").evaluate((bar) => {
  if (getComputedStyle(bar).position !== "sticky") return 0;
  return bar.getBoundingClientRect().height / innerHeight;
});

// A laptop, the same laptop at 200 %, and two phones.
const windows = { desktop, zoomed: { width: 720, height: 450 }, phone, small: { width: 360, height: 640 } };

test("the decision bar covers a quarter of the window at most", limit, async (t) => {
  await g.person("quinn", "approver");
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("quinn"));
  for (const a of [scene.price, scene.create, scene.bulk]) {
    for (const path of [`/actions/${a.id}`, `/inbox?tab=team&open=${a.id}`]) {
      await page.goto(g.url + path);
      for (const [name, viewport] of Object.entries(windows)) {
        await page.setViewportSize(viewport);
        const what = `${name}, ${a.action_type}, ${path}`;
        assert.ok(await covered(page) <= 0.25, what);
        for (const pop of ["approve-more", "reject"]) {
          const fold = page.getByTestId("decision").getByTestId(pop);
          if (!(await fold.count())) continue;
          await fold.locator("> summary").click();
          assert.ok(await covered(page) <= 0.25, `${what}, ${pop} unfolded`);
          // The unfolded form is on the screen, with its required field.
          const field = fold.locator("input:not([type=hidden]), textarea").first();
          await assert.doesNotReject(page.waitForFunction((el) => {
            const { top, bottom } = el.getBoundingClientRect();
            return top >= 0 && bottom <= innerHeight;
          }, await field.elementHandle(), { timeout: 10_000 }), `${what}: the field of ${pop} is off the screen`);
          await fold.locator("> summary").click();
        }
      }
    }
  }
});

test("the panel of a rejection takes the place of the bar", limit, async (t) => {
  await g.person("rhea", "approver", "proposer");
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("rhea"), `${g.url}/inbox?tab=team&open=${scene.prices[0].id}`);
  const bar = page.getByTestId("decision"), text = page.getByTestId("reject-notes");
  await page.waitForTimeout(500); // keys are ignored for a moment
  await page.keyboard.press("d");
  await text.and(page.locator(":focus")).waitFor();
  assert.ok(!(await bar.getByTestId("approve").isVisible()), "approve is still there");
  assert.ok(!(await bar.getByTestId("edit").isVisible()), "edit is still there");
  // Esc shows the bar again, and keeps the typed text.
  await page.keyboard.type("not so ");
  await page.keyboard.press("Escape");
  await bar.getByTestId("approve").waitFor();
  assert.equal(await page.locator("[data-testid=reject][open]").count(), 0);
  assert.equal(await text.inputValue(), "not so ");
  // A reason that the policy offers fills in the text, and sends nothing.
  await page.keyboard.press("d");
  await page.getByRole("button", { name: "Wrong currency" }).click();
  assert.equal(await text.inputValue(), "Wrong currency");
  assert.equal((await g.action(scene.prices[0].id)).status, "pending");
  await accessible(page, "the panel of a rejection");
  await text.press("Control+Enter");
  await page.locator(`#detail[data-done="${scene.prices[0].id}"]`).waitFor();
  const a = await g.action(scene.prices[0].id);
  assert.deepEqual([a.approval.votes[0].decision, a.approval.votes[0].notes], ["rejected", "Wrong currency"]);
  // An empty reason is never sent.
  await page.waitForTimeout(500);
  const next = await page.locator("#detail").getAttribute("data-open");
  await page.keyboard.press("d");
  await text.press("Control+Enter");
  await page.waitForTimeout(300);
  assert.equal((await g.action(next)).status, "pending");
});

test("on a phone, the sections are at the bottom", limit, async (t) => {
  const page = await newPage(browser, t, { viewport: phone, hasTouch: true, isMobile: true });
  await g.person("tess", "admin");
  await signIn(page, await g.setupLink("tess"));
  const bar = page.getByTestId("bottom-bar");
  const box = await bar.boundingBox();
  assert.ok(Math.abs(box.y + box.height - phone.height) < 1, "the bar is at the bottom");
  assert.ok(!(await page.locator("nav.sections").isVisible()));
  await bar.getByText("More").tap();
  await accessible(page, "More");
  await bar.getByRole("link", { name: "Audit" }).tap();
  await page.waitForURL("**/audit");
  await bar.getByRole("link", { name: "Runs" }).tap();
  await page.waitForURL("**/runs");
  // On a page with a question, the decision buttons take the place of the sections.
  await page.goto(`${g.url}/actions/${scene.price.id}`);
  assert.ok(!(await bar.isVisible()));
});

test("nothing moves for people who prefer reduced motion", limit, async (t) => {
  await g.person("mo", "approver");
  for (const reducedMotion of ["reduce", "no-preference"]) {
    const page = await newPage(browser, t, { reducedMotion });
    await signIn(page, await g.setupLink("mo"));
    const moves = () => page.evaluate(() => {
      const found = [];
      for (const el of document.querySelectorAll("*")) {
        const s = getComputedStyle(el);
        if (parseFloat(s.transitionDuration) > 0 || s.animationName !== "none") found.push(el.className);
      }
      return found.length;
    });
    await page.keyboard.press("Control+k");
    await page.getByTestId("palette").waitFor();
    const n = await moves();
    if (reducedMotion === "reduce") assert.equal(n, 0);
    else assert.ok(n > 0, "the test sees what moves");
  }
});

test("the font is the console's own, and an agent's words have another colour than facts", limit, async (t) => {
  await g.person("fay", "approver");
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("fay"), `${g.url}/inbox?tab=team&open=${scene.price.id}`);
  assert.ok(await page.evaluate(async () => {
    await document.fonts.ready;
    return document.fonts.check("600 16px Inter") && [...document.fonts].some((f) => f.family.includes("Inter") &&
      f.status === "loaded");
  }));
  const colour = (locator) => locator.evaluate((el) => getComputedStyle(el).color);
  assert.notEqual(await colour(page.getByTestId("rationale")), await colour(page.getByTestId("sentence")));
  // A loss and a gain have different colours.
  const [up, down] = await page.evaluate(() => ["up", "down"].map((tone) => {
    const el = document.createElement("span");
    el.className = `delta ${tone}`;
    document.body.append(el);
    return getComputedStyle(el).color;
  }));
  assert.notEqual(up, down);
});

test("the page of the design is served by a development server", limit, async (t) => {
  const page = await newPage(browser, t);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.goto(`${g.url}/console/design`);
    assert.ok(await page.locator(".sample").count() > 25);
    await accessible(page, `design, ${colorScheme}`, { colours: colorScheme === "dark" });
  }
});
