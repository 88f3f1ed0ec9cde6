// Several people at once: one decision is stored, everybody is told of it, and nobody's list moves
// while they work.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { items } from "../lib/ledger.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");
await g.person("bo", "approver");

async function inbox(t, name, path = "/inbox") {
  const page = await newPage(browser, t);
  await page.addInitScript(() => {
    window.streams = [];
    window.EventSource = class extends EventSource {
      constructor(url) {
        super(url);
        window.streams.push(this);
      }
    };
  });
  await signIn(page, await g.setupLink(name));
  if (path !== "/inbox") await page.goto(g.url + path);
  await page.locator("html[data-live=on]").waitFor({ state: "attached" });
  return page;
}

const ids = (page) => page.getByTestId("row").evaluateAll((rows) => rows.map((r) => r.dataset.id));

test("two browsers answer the same item at once", limit, async (t) => {
  for (let round = 0; round < 3; round++) {
    const a = await g.propose(priced(round, `${round + 50}.00`));
    const people = ["ana", "bo"];
    const pages = [];
    for (const name of people) pages.push(await inbox(t, name, `/inbox?open=${a.id}`));
    await pages[1].getByTestId("live").getByText("ana is looking at this too").waitFor();
    // Both people press at the same moment.
    for (const page of pages) await page.getByTestId("approve").waitFor();
    await Promise.all([pages[0].getByTestId("approve").click(), pages[1].getByTestId("approve").click()]);
    await Promise.all(pages.map((page) => page.locator(`#detail[data-done="${a.id}"], [data-testid=outcome]`)
      .waitFor()));
    const end = await g.finished(a.id);
    assert.equal(end.status, "applied");
    const won = people.indexOf(end.decided_by);
    assert.ok(won >= 0, end.decided_by);
    assert.equal(await pages[won].getByTestId("outcome").count(), 0);
    const told = pages[1 - won];
    assert.equal(await told.getByTestId("outcome").getAttribute("data-code"), "already_decided");
    const words = await told.getByTestId("decided-by").innerText();
    const at = end.decided_at.replace("T", " ").slice(0, 19);
    assert.match(words, new RegExp(`(Decided|approved) by ${people[won]}`));
    assert.ok(words.includes(at), `${words}: ${at}`);
    assert.equal(await told.getByTestId("approve").count(), 0);
    assert.deepEqual(end.approval.votes.map((v) => v.name), [people[won]]);
  }
});

test("a reader sees a decision made elsewhere", limit, async (t) => {
  const a = await g.propose(priced(5, "12.00"));
  const page = await inbox(t, "ana", `/inbox?open=${a.id}`);
  await page.locator("#live:not([data-stale])").waitFor({ state: "attached" });
  const sentence = await page.getByTestId("sentence").innerText();
  const before = await ids(page);
  await g.decide(a.id, { decision: "rejected", notes: "wrong item" });
  const notice = page.locator("#live[data-stale]").getByTestId("notice");
  await notice.getByText("while you were reading: rejected").waitFor();
  assert.match(await notice.innerText(), /decided by admin just now/i);
  // The text being read stays in place until its reader asks for an update.
  assert.equal(await page.getByTestId("sentence").innerText(), sentence);
  assert.deepEqual(await ids(page), before);
  await page.getByTestId("reload").click();
  await page.getByTestId("cannot").getByText(/rejected\. decided by/i).waitFor();
  assert.equal(await page.getByTestId("approve").count(), 0);
});

test("new items wait in the pill", limit, async (t) => {
  const first = [];
  for (const i of [10, 11, 12]) first.push(await g.propose(priced(i, "80.00")));
  const page = await inbox(t, "bo");
  const before = await ids(page);
  for (const a of first) assert.ok(before.includes(a.id));
  assert.equal(await page.getByTestId("fresh-pill").count(), 0);
  await page.getByTestId("row").first().getByRole("link").click();
  await page.locator(`.row.open[data-id="${before[0]}"]`).waitFor();

  // The states of the rows come after the pill, and leave it alone.
  const states = page.waitForResponse((res) => res.url().includes("/inbox/states"));
  // The most urgent item, which would be the first one.
  const late = await g.propose({ ...priced(13, "80.00"), risk_level: 4, expires_in: "1h" });
  await page.getByTestId("fresh-pill").getByText("1 new").waitFor();
  await states;
  await page.evaluate(() => new Promise(requestAnimationFrame));
  assert.equal(await page.getByTestId("fresh-pill").innerText(), "1 new · show");
  assert.deepEqual(await ids(page), before);
  const later = await g.propose(priced(14, "80.00"));
  await page.getByTestId("fresh-pill").getByText("2 new").waitFor();
  assert.deepEqual(await ids(page), before);
  assert.equal(await page.locator("#detail").getAttribute("data-open"), before[0]);

  // Decisions continue in the old order too.
  await page.getByTestId("approve").click();
  await page.locator(`#detail[data-done="${before[0]}"]`).waitFor();
  assert.equal(await page.locator("#detail").getAttribute("data-open"), before[1]);
  assert.deepEqual(await ids(page), before);

  await page.getByTestId("fresh-pill").click();
  await page.locator(`.row[data-id="${late.id}"]`).waitFor();
  const after = await ids(page);
  assert.equal(after[0], late.id);
  assert.ok(after.includes(later.id) && !after.includes(before[0]));
  assert.equal(await page.getByTestId("fresh-pill").count(), 0);
});

// Holds back the answer to the first request for a path, as a slow network does: come waits until
// the server has sent it, go lets it through.
async function hold(page, path) {
  let come, go;
  const made = new Promise((resolve) => (come = resolve));
  const held = new Promise((resolve) => (go = resolve));
  await page.route(path, async (route) => {
    const response = await route.fetch();
    come();
    await held;
    await route.fulfill({ response });
  }, { times: 1 });
  await page.evaluate(() => {
    window.setInterval = () => 0; // the page's polling would make up for a missed event
    window.changes = 0;
    document.body.addEventListener("gatehouse:changed", () => window.changes++);
  });
  return { come: () => made, go };
}

// Waits until the page has received the event for a change, and then stops all further events,
// because the next heartbeat would make up for a missed one.
async function lastHeard(page, fn) {
  const before = await page.evaluate(() => window.changes);
  await fn();
  await page.waitForFunction((n) => window.changes > n, before);
  await page.evaluate(() => window.streams.forEach((s) => s.close()));
}

test("a change while the pill is loading is not missed", limit, async (t) => {
  const page = await inbox(t, "ana");
  const pill = await hold(page, "**/inbox/new?*");
  await g.propose(priced(15, "22.00"));
  await pill.come();
  await lastHeard(page, () => g.propose(priced(16, "23.00")));
  pill.go();
  await page.getByTestId("fresh-pill").getByText("2 new").waitFor();
});

test("a change while an item is loading is not missed", limit, async (t) => {
  const a = await g.propose(priced(17, "24.00"));
  const page = await inbox(t, "ana", "/inbox?tab=all");
  const item = await hold(page, `**/*${a.id}*`);
  await page.locator(`.row[data-id="${a.id}"]`).getByRole("link").click();
  await item.come();
  await lastHeard(page, () => g.decide(a.id, { decision: "rejected", notes: "wrong item" }));
  item.go();
  await page.locator("#live[data-stale]").getByText("while you were reading: rejected").waitFor();
});

test("a change while the states of the rows are loading is not missed", limit, async (t) => {
  const a = await g.propose(priced(18, "25.00"));
  const page = await inbox(t, "ana", "/inbox?tab=all");
  const states = await hold(page, "**/inbox/states?*");
  await g.propose(priced(21, "27.00"));
  await states.come();
  await lastHeard(page, () => g.decide(a.id, { decision: "rejected", notes: "wrong item" }));
  states.go();
  await page.locator(`#row-${a.id}.settled`).waitFor();
});

test("an open page reports its viewer at intervals, also when nothing changes", limit, async (t) => {
  const a = await g.propose(priced(19, "26.00"));
  const page = await inbox(t, "ana");
  await page.clock.install();
  await page.goto(`${g.url}/actions/${a.id}`);
  await page.locator("html[data-live=on]").waitFor({ state: "attached" });
  await page.evaluate(() => window.streams.forEach((s) => s.close()));
  for (let look = 0; look < 3; look++) {
    const asked = page.waitForResponse((r) => r.url().includes(`/actions/${a.id}/live`));
    await page.clock.fastForward(40_000);
    assert.equal((await asked).status(), 200);
  }
});

test("a stream says that something changed, and nothing else", limit, async (t) => {
  const page = await inbox(t, "ana");
  const stream = await page.evaluate(async (url) => {
    const res = await fetch(url);
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    window.heard = "";
    (async () => {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        window.heard += value;
      }
    })();
    return res.headers.get("content-type");
  }, "/events/changes");
  assert.match(stream, /^text\/event-stream/);
  await page.waitForFunction(() => window.heard.includes("retry"));
  await g.propose(priced(20, "21.00", { rationale: "a secret of the supplier" }));
  await page.waitForFunction(() => window.heard.includes("event: changed"));
  const heard = await page.evaluate(() => window.heard);
  assert.match(heard, /^(retry: \d+\n\n|id: \d+\nevent: changed\ndata:\n\n|: [a-z ]+\n\n)+$/);
  assert.ok(!heard.includes(items[20].sku));
});
