// The link in a mail: a browser that loads its page, waits, types into every field and presses
// every button, twice, with and without cookies, decides nothing and does not change the store.
// Then a person decides, once.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { accessible, newPage, phone, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");

/** The texts of the caught mails to a person about an action. */
async function mails(name, action) {
  const decode = (s) => s.replace(/<[^>]*>/g, "").replaceAll("&#43;", "+").replaceAll("&amp;", "&").replaceAll("&#39;",
    "'");
  const html = await (await fetch(`${g.url}/dev/mail`)).text();
  return html.split("<article").slice(1).map(decode).filter((m) => m.includes(`${name}@`) && m.includes(action.id));
}

/** The link and the code in the mail with the question. */
async function mailed(name, action) {
  for (let left = 200; left > 0; left--) {
    const [mail] = await mails(name, action);
    if (mail) {
      const [link] = mail.match(/http:\S*\/review\/\S+/);
      assert.equal(mail.match(/http:/g).length, 1, "a mail has one link");
      return { link: link.replace(/^http:\/\/[^/]+/, g.url), code: mail.match(/Code: (\w{6})/)?.[1] };
    }
    await rest(100);
  }
  throw new Error(`no mail arrived for ${name} about ${action.id}`);
}

const rows = `
import hashlib, sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
db.execute("BEGIN")
for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
    digest = hashlib.sha256()
    for row in db.execute(f'SELECT * FROM "{table}"'):
        digest.update(repr(row).encode())
    print(table, digest.hexdigest())
for table in ("notification", "notification_card"):
    if db.execute(f"SELECT 1 FROM {table} WHERE due_at IS NOT NULL").fetchone():
        print("due", table)
`;

/** Digests of all tables' rows. The files also change without a write: SQLite moves pages from log to database. */
function stored() {
  return execFileSync("python3", ["-c", rows, join(g.data, "gatehouse.db")], { encoding: "utf8" }).split("\n");
}

/** The store after the server's own writes: no message waits to be sent, and 5 s have changed nothing. */
async function settled() {
  for (let last; ; ) {
    const now = stored();
    if (isDeepStrictEqual(now, last) && !now.some((line) => line.startsWith("due "))) return now;
    last = now;
    await rest(5000);
  }
}

/** The tables whose rows differ, without the counts of requests and the number of the last write. */
function changed(before, now) {
  const tables = now.filter((line) => !before.includes(line)).map((line) => line.split(" ")[0]);
  return tables.filter((name) => name !== "decision_count" && name !== "meta");
}

/** Waits for the page and its scripts. A busy browser sometimes never reports that the network is idle. */
async function quiet(page) {
  await page.waitForLoadState("load");
  await rest(300);
}

/** Unfolds everything, and types into every field. */
async function unfold(page) {
  const closed = page.locator("details:not([open]) > summary");
  while ((await closed.count()) > 0) await closed.first().click();
  for (const field of await page.locator("textarea, input:not([type=hidden])").all()) await field.fill("Yes, approved");
}

/** Robots with and without scripts, with and without cookies, side by side: they wait for the network most of the time. */
async function robots(t, link) {
  const each = [];
  for (const script of [true, false]) {
    for (const cookies of [true, false]) each.push(robot(t, link, script, cookies));
  }
  return Promise.all(each);
}

/** Types into every field and presses every button of a page, one load for each. */
async function robot(t, link, javaScriptEnabled, keepCookies) {
  const context = await browser.newContext({ javaScriptEnabled });
  context.setDefaultTimeout(120_000); // four robots share a busy machine
  t.after(() => context.close());
  let pressed = 0;
  for (const path of ["/approve", "/reject"]) {
    const at = link.replace("?", `${path}?`);
    for (let button = 0; ; button++) {
      if (!keepCookies) await context.clearCookies();
      const page = await context.newPage();
      await page.goto(at);
      await quiet(page);
      await unfold(page);
      const buttons = page.locator("button, input[type=submit]");
      if (button >= (await buttons.count())) {
        await page.close();
        break;
      }
      if (!keepCookies) await context.clearCookies();
      for (let twice = 0; twice < 2; twice++) {
        const one = page.locator("button, input[type=submit]").nth(button);
        if ((await one.count()) === 0) break;
        await unfold(page);
        await one.click();
        await quiet(page);
        pressed++;
      }
      await page.close();
    }
  }
  return pressed;
}

test("a robot decides nothing, and a person once", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"));
  const plain = await g.propose(priced(0, "12.50"));
  const { link, code } = await mailed("ana", plain);
  assert.equal(code, undefined, "the policy requires no code, but the mail has one");
  // With the link alone, the page shows everything and has no buttons.
  const stranger = await newPage(browser, t, { viewport: phone });
  await stranger.goto(link);
  await stranger.getByTestId("sign-in").waitFor();
  await accessible(stranger, "the page of a link");
  const before = await settled();
  assert.deepEqual(await robots(t, link), [0, 0, 0, 0]);
  assert.deepEqual(changed(before, stored()), [], "tables that have changed");
  // In a browser that ana has signed in with, she decides, once.
  await page.goto(link.replace("?", "/approve?"));
  await accessible(page, "the page of a link, signed in");
  await page.getByTestId("approve").click();
  await page.getByText("Approved", { exact: true }).waitFor();
  assert.equal((await g.action(plain.id)).decided_via, "link");
  const metrics = await (await fetch(`${g.url}/metrics`)).text();
  assert.match(metrics, /^gatehouse_decisions_total\{endpoint="link",result="won"\} 1$/m);
  await page.goto(link);
  await page.getByTestId("decided-by").waitFor();
  assert.equal(await page.locator("form").count(), 0);
  await g.finished(plain.id); // messages about its end must not fall into the next test
});

test("with codes, a robot decides nothing, and a person with the code once", limit, async (t) => {
  const active = await g.api("GET", "/policies/active");
  await g.policy(active.source.replace(/^version: 1$/m, "version: 1\nlinks: {decide_up_to: 3}"));
  const coded = await g.propose(priced(1, "9.99"));
  const { link, code } = await mailed("ana", coded);
  assert.match(code, /^\w{6}$/);
  const before = await settled();
  for (const pressed of await robots(t, link)) assert.ok(pressed >= 5, `${pressed} buttons were pressed`);
  assert.deepEqual(changed(before, stored()), [], "tables that have changed");
  assert.equal((await g.action(coded.id)).status, "pending");
  const person = await newPage(browser, t, { viewport: phone });
  await person.goto(link.replace("?", "/reject?"));
  assert.ok(!(await person.content()).includes(code), "the code stands on the page");
  await accessible(person, "the page of a link with a code");
  const form = person.getByTestId("review-rejected");
  await form.locator("textarea").fill("too cheap");
  await form.getByTestId("code").fill(code.toLowerCase());
  await form.getByTestId("reject-go").click();
  await person.getByText("Rejected", { exact: true }).waitFor();
  const done = await g.action(coded.id);
  assert.deepEqual([done.status, done.decided_via, done.decided_by], ["rejected", "link", "ana"]);
});
