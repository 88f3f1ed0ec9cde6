// The page of an action with 2,000 fields opens quickly, and offers approval only after it has shown all fields.
import assert from "node:assert/strict";
import { test } from "node:test";
import { awake, newPage, signIn, stillClock } from "../lib/browser.mjs";
import { elsewhere, put } from "../lib/elsewhere.mjs";
import { limit, stage } from "../lib/stage.mjs";

const target = await elsewhere();
const { g, browser } = await stage(target);
await g.person("ana", "approver");

const fields = 2000;
const soon = 2000; // milliseconds of the page's own work, independent of the machine's load

/** Measures a page's work from now on; the returned function gives the milliseconds. */
async function work(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const done = async () => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    return 1000 * metrics.find((m) => m.name === "TaskDuration").value;
  };
  const before = await done();
  return async () => {
    const ms = (await done()) - before;
    assert.ok(ms > 0, `work is not counted: ${ms} ms`);
    return ms;
  };
}

function large(ref) {
  const was = {}, will = {};
  for (let i = 0; i < fields; i++) {
    const name = `field_${String(i).padStart(4, "0")}`;
    was[name] = `old value ${i}`;
    will[name] = `new value ${i}`;
  }
  return put(ref, { action_type: "price_change", current_state: was, proposed_change: will });
}

async function opened(t, path, options) {
  const page = await newPage(browser, t, options);
  if (options?.javaScriptEnabled !== false) await stillClock(page);
  await signIn(page, await g.setupLink("ana"));
  const worked = await work(page);
  await page.goto(g.url + path);
  await page.getByTestId("hidden-lock").waitFor();
  const took = await worked();
  assert.ok(took < soon, `it took ${took} ms to open`);
  return page;
}

/** Checks that the page has no element that approves, and says how many entries it does not show. */
async function locked(page) {
  assert.equal(await page.locator("[data-testid=approve], [data-testid=approve-form], [name=digest], button[value=approved]").count(), 0);
  const some = await page.getByTestId("change").count();
  assert.ok(some > 0 && some < fields, `${some} of ${fields} are shown`);
  assert.match(await page.getByTestId("hidden-lock").innerText(),
    new RegExp(`${(fields - some).toLocaleString("en").replace(",", ",?")} entries not shown`));
}

test("can be approved only after all entries are shown", limit, async (t) => {
  const a = await g.propose(large("big-1"));
  const page = await opened(t, `/inbox?open=${a.id}`);
  await locked(page);
  const posted = [];
  page.on("request", (r) => r.method() === "POST" && posted.push(r.url()));
  await awake(page);
  await page.keyboard.press("a");
  assert.equal(await page.locator("[data-busy]").count(), 0);
  assert.deepEqual(posted, []);
  assert.equal((await g.action(a.id)).status, "pending");

  const worked = await work(page);
  await page.getByTestId("show-all").click();
  await page.getByTestId("approve").waitFor();
  const took = await worked();
  assert.ok(took < soon, `it took ${took} ms to show all`);
  assert.equal(await page.getByTestId("hidden-lock").count(), 0);
  const shown = await page.getByTestId("change").evaluateAll((rows) =>
    rows.map((r) => r.innerText.replace(/\s+/g, " ").trim()));
  assert.equal(shown.length, fields);
  for (const i of [0, 1, 299, 300, 1000, 1999]) {
    const name = `field_${String(i).padStart(4, "0")}`;
    const row = shown.filter((s) => s.includes(name));
    assert.equal(row.length, 1, name);
    assert.ok(row[0].includes(`old value ${i}`) && row[0].includes(`new value ${i}`), row[0]);
  }
  // The bar stays visible at the end of the page.
  const bar = await page.getByTestId("decision").boundingBox();
  assert.ok(bar.y + bar.height <= 901);
  await awake(page);
  await page.keyboard.press("a");
  await page.locator(`#detail[data-done="${a.id}"]`).waitFor();
  assert.equal((await g.finished(a.id)).status, "applied");
  const sent = JSON.parse(target.received.at(-1));
  assert.equal(Object.keys(sent.proposed_change ?? sent).length, fields);
});

/** Holds back the answer to the next matching request, until it is released. */
async function hold(page, fits) {
  let letGo, came, given;
  const held = new Promise((resolve) => (letGo = resolve));
  const asked = new Promise((resolve) => (came = resolve));
  const over = new Promise((resolve) => (given = resolve));
  await page.route(fits, async (route) => {
    came();
    const response = await route.fetch();
    await held;
    await route.fulfill({ response }).catch(() => {}); // the page no longer waits for the answer
    given();
  }, { times: 1 });
  return { asked, arrive: () => (letGo(), over) };
}

test("of two answers in flight, the page shows the one requested last", limit, async (t) => {
  const a = await g.propose(large("big-3")), b = await g.propose(put("small",
    { action_type: "price_change", current_state: { note: "x" }, proposed_change: { note: "y" } }));
  const page = await opened(t, `/inbox?open=${a.id}`);
  const row = (x) => page.locator(`.row[data-id="${x.id}"] .row-link`);
  const all = (url) => url.searchParams.has("full");
  const alone = (x) => (url) => url.searchParams.get("open") === x.id && !all(url);

  // Two requests are in flight. Their answers arrive in the order of the requests, or in the reverse order.
  const race = async (reverse, [first, press], [second, pressed]) => {
    const one = await hold(page, first);
    await press.click();
    await one.asked;
    const other = await hold(page, second);
    await pressed.click();
    await other.asked;
    for (const answer of reverse ? [other, one] : [one, other]) {
      await answer.arrive();
      await page.waitForTimeout(100); // in which the page could show the answer
    }
  };
  const shown = (x) => page.locator(`[data-testid=action][data-id="${x.id}"]`).waitFor();
  for (const reverse of [false, true]) {
    await page.getByTestId("hidden-lock").waitFor();
    await race(reverse, [all, page.getByTestId("show-all")], [alone(b), row(b)]);
    await shown(b);
    assert.ok(page.url().includes(b.id), page.url());

    await row(a).click();
    await page.getByTestId("hidden-lock").waitFor();
    await race(reverse, [alone(a), row(a)], [all, page.getByTestId("show-all")]);
    await page.getByTestId("approve").waitFor();
    assert.equal(await page.getByTestId("hidden-lock").count(), 0);

    await row(b).click();
    await shown(b);
    await row(a).click();
  }
  assert.ok(!(await page.locator("#offline").isVisible()), "nothing failed");
});

test("a large action is locked without JavaScript too, and cannot be approved in bulk", limit, async (t) => {
  const a = await g.propose(large("big-2"));
  const page = await opened(t, `/actions/${a.id}`, { javaScriptEnabled: false });
  await locked(page);
  await page.goto(`${g.url}/inbox/bulk?pick=${a.id}`);
  assert.match(await page.getByTestId("bulk-excluded").innerText(), /too long/);
  assert.equal(await page.getByTestId("bulk-approve").count(), 0);
  await page.goto(`${g.url}/actions/${a.id}`);
  await page.getByTestId("show-all").click();
  await page.getByTestId("approve").click();
  await page.getByTestId("cannot").or(page.getByTestId("notice")).first().waitFor();
  assert.equal((await g.finished(a.id)).status, "applied");
});
