// A server goes down and comes back: the page says so, shows no false success, and continues with
// the same session.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");

async function opened(t, a) {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"), `${g.url}/inbox?open=${a.id}`);
  await page.locator("html[data-live=on]").waitFor({ state: "attached" });
  assert.ok(await page.locator("#offline").isHidden());
  return page;
}

/** Checks that nothing on the page says that the item was decided. */
async function undecided(page, a) {
  assert.equal(await page.locator("#detail").getAttribute("data-open"), a.id);
  assert.equal(await page.locator("#detail[data-done], .row.settled, [data-testid=outcome]").count(), 0);
  assert.equal(await page.getByTestId("action").getAttribute("data-status"), "pending");
}

const back = async (page) => {
  await page.locator("#offline").waitFor({ state: "hidden" });
  await page.locator("html[data-live=on]").waitFor({ state: "attached" });
};

test("the server ends and is started again", limit, async (t) => {
  const a = await g.propose(priced(0, "12.00"));
  const page = await opened(t, a);
  g.child.kill("SIGKILL");
  await g.ended;
  await page.locator("#offline").waitFor();
  await page.getByTestId("approve").click();
  await page.getByTestId("standing").getByText(/checking/i).waitFor();
  await undecided(page, a);

  await g.launch();
  await page.getByTestId("standing").getByText(/no answer from you\. The action is still pending/).waitFor();
  await back(page);
  assert.equal((await g.action(a.id)).status, "pending");
  await undecided(page, a);
  await page.getByTestId("approve").click();
  await page.locator(`#detail[data-done="${a.id}"]`).waitFor();
  const end = await g.finished(a.id);
  assert.deepEqual([end.status, end.decided_by, end.approval.votes.length], ["applied", "ana", 1]);
});

test("what changed meanwhile is there after the reconnect", limit, async (t) => {
  const a = await g.propose(priced(1, "36.00"));
  const page = await opened(t, a);
  await page.context().setOffline(true);
  await page.locator("#offline").waitFor();
  await page.getByTestId("approve").click();
  await page.getByTestId("standing").getByText(/checking/i).waitFor();
  await undecided(page, a);
  await g.decide(a.id, { decision: "rejected", notes: "meanwhile" });
  await g.propose(priced(2, "43.00"));
  await page.context().setOffline(false);
  await back(page);
  await page.locator("#live[data-stale]").getByText("while you were reading: rejected").waitFor();
  await page.getByTestId("fresh-pill").waitFor();
  await page.getByTestId("standing").getByText(/no answer from you\. Rejected\. Decided by/).waitFor();
});

/** Delivers the page's requests to the server but drops the answers, until the page's third question for the result. */
async function deaf(page, path, how) {
  const asked = [];
  await page.route(/\/standing\?/, (route) => {
    asked.push(route.request().url());
    return asked.length < 3 ? route.abort("connectionreset") : route.continue();
  });
  await page.route(path, async (route) => {
    await route.fetch({ maxRedirects: 0 });
    await how(route);
  });
  return asked;
}

for (const [i, [name, how]] of [
  ["the connection breaks", (route) => route.abort("connectionreset")],
  ["a balancer gives up", (route) => route.fulfill({ status: 504, contentType: "text/html",
    body: "<!doctype html><h1>Gateway timeout</h1>" })],
].entries()) {
  test(`the server has the answer, and ${name} before it says so`, limit, async (t) => {
    const a = await g.propose(priced(6 + 2 * i, "53.00"));
    const next = await g.propose(priced(7 + 2 * i, "54.00"));
    const page = await opened(t, a);
    const said = [];
    await page.exposeFunction("heard", (text) => said.push(text));
    await page.evaluate(() => new MutationObserver(() => window.heard(document.querySelector("#standing").textContent))
      .observe(document.querySelector("#standing"), { childList: true }));
    const asked = await deaf(page, `**/actions/${a.id}/decide`, how);
    await page.getByTestId("approve").click();
    await page.getByTestId("standing").getByText(/checking/i).waitFor();
    await page.locator(`#detail[data-done="${a.id}"]`).waitFor();
    assert.equal(await page.locator("#detail").getAttribute("data-open"), next.id); // where the answer would have led
    assert.ok(asked.length >= 3, `asked ${asked.length} times`);
    assert.match(said[0], /checking/i);
    assert.doesNotMatch((await page.locator("#announce").textContent()) + said.join(), /nothing was sent/i);
    assert.equal((await g.finished(a.id)).approval.votes.length, 1);
    await g.decide(next.id, { decision: "rejected", notes: "end of the test" });
  });
}

test("a server that hangs", limit, async (t) => {
  const a = await g.propose(priced(3, "51.00"));
  const page = await opened(t, a);
  g.child.kill("SIGSTOP");
  try {
    const sent = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith(`${a.id}/decide`));
    await page.getByTestId("approve").click();
    await sent;
    await page.getByTestId("approve").click(); // an impatient second click
    await undecided(page, a);
  } finally {
    g.child.kill("SIGCONT");
  }
  await page.locator(`#detail[data-done="${a.id}"]`).waitFor();
  const end = await g.finished(a.id);
  assert.deepEqual([end.status, end.approval.votes.length], ["applied", 1]);
});

test("a page that asks and gets an error keeps what it shows, and asks again", limit, async (t) => {
  const a = await g.propose(priced(5, "52.00"));
  const page = await opened(t, a);
  // The answer of a load balancer, or of a server without its store.
  let refused = 0;
  await page.route(/\/live\?|\/inbox\/(new|states)/, (route) => {
    refused++;
    return route.fulfill({ status: 503, contentType: "text/html",
      body: "<!doctype html><title>503</title><h1>No server</h1>" });
  });
  await g.decide(a.id, { decision: "rejected", notes: "meanwhile" });
  const until = async (n) => {
    while (refused < n) await page.waitForTimeout(100);
    await page.waitForTimeout(300);
    assert.equal(await page.getByText("No server").count(), 0);
    await undecided(page, a);
  };
  await until(2); // requests for parts of the page
  await until(5);
  await page.unroute(/\/live\?|\/inbox\/(new|states)/);
  await page.locator("#live[data-stale]").getByText("while you were reading: rejected").waitFor();
});
