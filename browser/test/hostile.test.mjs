// Text from agents stays text: a corpus of hostile texts, in every field that agents fill, on every
// page that shows them. The oracle is the same page with harmless text: no additional element,
// attribute, handler or URL may appear.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { elsewhere, put } from "../lib/elsewhere.mjs";
import { look, opener, skeleton, unseen, visit } from "../lib/oracle.mjs";
import { limit, stage } from "../lib/stage.mjs";

const corpus = JSON.parse(await readFile(new URL("../../internal/card/testdata/hostile.json", import.meta.url),
  "utf8"));
const { g, browser } = await stage(await elsewhere());
await g.person("ana", "approver", "proposer", "auditor", "operator");
await g.person("root", "admin");

/** An action with the given text in every text field. */
const proposal = (ref, text) => put(ref, {
  action_type: "price_change",
  on_behalf_of: text,
  current_state: { note: `${text}, before`, gone: text, price: "1.00", currency: "USD" },
  proposed_change: { note: text, fresh: text, deep: { list: [text, 1], [text || "empty"]: text }, price: "2.00",
    currency: "USD" },
  rationale: text,
  context: { said: text },
  metadata: { said: text },
  evaluations: [{ name: "check", kind: "probabilistic", result: "warn", confidence: 0.5, details: text }],
  artifact_diff: { type: "unified_diff", text, summary: text },
});

/** Returns the texts with which an attempt succeeds; the server must refuse the others with 400, 409 or 422. */
async function taken(texts, attempt) {
  const fit = [];
  for (let n = 0; n < texts.length; n += 8) {
    await Promise.all(texts.slice(n, n + 8).map(async (x, i) => {
      try {
        fit.push({ ...x, made: await attempt(x.text, n + i) });
      } catch (e) {
        assert.match(e.message, /: 4(00|09|22) /, x.name);
      }
    }));
  }
  return fit;
}

const harmless = ["harmless", "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-was\n+is\n same\n", "two\nlines\n",
  "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "line\n".repeat(400), "",
  "a longer line of words that goes on and on, and has a_word_that_is_long_enough_to_be_broken_somewhere in it"];

test("the corpus", limit, async (t) => {
  assert.ok(corpus.length > 80, `${corpus.length} texts`);
  const page = await newPage(browser, t);
  const outside = [];
  const watch = (page) => {
    page.on("request", (r) => {
      const url = new URL(r.url());
      if (url.origin !== g.url || r.method() !== "GET") outside.push(`${r.method()} ${r.url()}`);
    });
    page.on("popup", (p) => outside.push(`popup ${p.url()}`));
  };
  watch(page);
  await signIn(page, await g.setupLink("ana"));

  // Each text makes an action: it is in all of the action's fields and, if the gate and the target
  // accept it there, in names.
  const actions = [];
  let refused = 0;
  const make = async (name, text, n) => {
    const plain = proposal(`thing-${n}`, text), { target } = plain;
    for (const named of [{ ...target, entity_type: text, entity_ref: text }, { ...target, entity_type: text },
      { ...target, entity_ref: text }, target]) {
      try {
        const a = await g.propose({ ...plain, target: named });
        actions.push({ ...a, text, name });
        return;
      } catch (e) {
        assert.match(e.message, /: 4(00|22) /, name); // refused texts are shown to nobody
      }
    }
    refused++;
  };
  for (const [n, text] of harmless.entries()) await make("harmless", text, n);
  for (let n = 0; n < corpus.length; n += 8) {
    await Promise.all(corpus.slice(n, n + 8).map(({ name, text }, i) => make(name, text, n + i + harmless.length)));
  }
  assert.ok(refused < corpus.length / 5, `${refused} of ${corpus.length} texts are refused`);

  const oracle = new Set();
  const check = async (page, a, open = visit) => {
    await open(page, `${g.url}/actions/${a.id}`);
    const here = await page.evaluate(skeleton);
    const { text, owned, marks } = await page.evaluate(look);
    assert.equal(owned, undefined, a.name);
    if (a.name === "harmless") {
      for (const x of here) oracle.add(x);
      assert.equal(marks, 0);
      return;
    }
    assert.deepEqual(here.filter((x) => !oracle.has(x)), [], a.name);
    assert.doesNotMatch(text, unseen, a.name);
    if (unseen.test(a.text)) assert.ok(marks > 0, `${a.name}: nothing is marked`);
  };
  for (const a of actions.filter((a) => a.name === "harmless")) await check(page, a);
  const other = await newPage(browser, t);
  watch(other);
  await signIn(other, await g.setupLink("ana"));
  const waiting = actions.filter((a) => a.name !== "harmless");
  await Promise.all([page, other].map(async (page) => {
    const open = opener();
    for (let a = waiting.pop(); a; a = waiting.pop()) await check(page, a, open);
  }));

  // Bulk and the editor are compared with harmless texts. The inbox and the audit log show all texts at once.
  const of = async (path) => {
    await visit(page, g.url + path);
    const { text, owned } = await page.evaluate(look);
    assert.equal(owned, undefined, path);
    assert.doesNotMatch(text, unseen, path);
    return page.evaluate(skeleton);
  };
  const some = actions.filter((a) => a.name === "harmless"), rest = actions.filter((a) => a.name !== "harmless");
  const bulk = (list) => `/inbox/bulk?${list.map((a) => `pick=${a.id}`).join("&")}`;
  for (const path of ["/inbox?tab=team&q=thing", "/audit"]) await of(path);
  const bulkOracle = new Set(await of(bulk(some)));
  for (let i = 0; i < rest.length; i += 40) assert.deepEqual((await of(bulk(rest.slice(i, i + 40))))
    .filter((x) => !bulkOracle.has(x)), []);
  // The position of a field depends on its text.
  const unnumbered = (list) => list.map((x) => x.replace(/field-\d+/, "field"));
  const editor = new Set();
  for (const a of some) for (const x of unnumbered(await of(`/actions/${a.id}/edit`))) editor.add(x);
  const open = opener();
  for (const a of rest.filter((_, i) => i % 8 === 0)) {
    await open(page, `${g.url}/actions/${a.id}/edit`);
    assert.deepEqual(unnumbered(await page.evaluate(skeleton)).filter((x) => !editor.has(x)), [], a.name);
    assert.equal((await page.evaluate(look)).owned, undefined);
  }
  assert.deepEqual(outside, []);
});

/** Follows the pager of a list, and calls fn on each page. */
async function pages(page, path, fn) {
  for (await visit(page, g.url + path); ; await page.locator("html.js").waitFor({ state: "attached" })) {
    await fn();
    const next = page.getByTestId("next-page").first();
    if (!(await next.count())) return;
    await Promise.all([page.waitForNavigation(), next.click()]);
  }
}

/** Compares a page with the oracle: a hostile text must add nothing but text. */
async function inspected(page, what, oracle) {
  const here = await page.evaluate(skeleton);
  const { text, owned } = await page.evaluate(look);
  assert.equal(owned, undefined, what);
  assert.doesNotMatch(text, unseen, what);
  if (!oracle) return here;
  assert.deepEqual(here.filter((x) => !oracle.has(x)), [], what);
  return here;
}

const benign = harmless.filter((text) => text).map((text) => ({ name: "harmless", text }));

test("the result of a dispatch", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("root"));
  let ref = 0;
  const approved = async (change, key) => {
    // Not every text can be a key, because a key is sent in a header.
    const a = await g.propose({ ...change, idempotency_key: key }).catch(() => g.propose(change));
    await g.decide(a.id, { decision: "approved", digest: a.digest });
    return g.finished(a.id);
  };
  // One call gets lost, and a person records its outcome with this text; the target returns the
  // text as a name; both have the text as their key.
  const make = (texts) => taken(texts, async (text) => {
    const n = ref++;
    const lost = await approved(put(`lost-${n}`, { operation: "lose", action_type: "price_change",
      proposed_change: { said: text } }), `${n} ${text}`);
    assert.equal(lost.status, "unknown");
    await g.api("POST", `/pushes/${lost.push.id}/resolve`, { body: { outcome: "failed", reason: text } });
    const named = await approved(put(`named-${n}`, { operation: "name", action_type: "price_change",
      proposed_change: { said: text } }), `${n} ${text} named`);
    assert.equal(named.status, "applied");
    return [lost.id, named.id];
  });
  const see = async (all, oracle) => {
    const found = new Set();
    const add = (list) => list.forEach((x) => found.add(x));
    for (const tab of ["attention", "done"]) {
      await pages(page, `/dispatch?tab=${tab}`, async () => add(await inspected(page, `dispatch, ${tab}`, oracle)));
    }
    const open = oracle ? opener() : visit;
    for (const { name, made } of all) {
      for (const id of made) {
        await open(page, `${g.url}/actions/${id}`);
        add(await inspected(page, name, oracle));
      }
    }
    return found;
  };
  const plain = await make([...benign, ...Array.from({ length: 60 },
    (_, i) => ({ name: "harmless", text: `harmless ${i}` }))]);
  // Nobody records the outcome of these. There are two, because the page groups dead letters with the same error.
  const open = [];
  for (const ref of ["lost-a", "lost-b"]) {
    const a = await approved(put(ref, { operation: "lose", action_type: "price_change",
      proposed_change: { said: "harmless" } }));
    open.push(a.id);
  }
  // One success keeps the connector's breaker closed: ten failures in a row open it.
  await approved(put("kept", { operation: "name", action_type: "price_change",
    proposed_change: { said: "harmless" } }));
  const oracle = await see([...plain.filter((x) => !/ \d/.test(x.text)), { name: "harmless", made: open }]);
  const odd = await make(corpus);
  assert.ok(odd.length > corpus.length / 2, `${odd.length} of ${corpus.length} texts are taken`);
  // The lists contain all of them; some are also opened separately.
  await see(odd.filter((_, i) => i % 5 === 0), oracle);
});

test("names that people and agents go by", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("root"));
  const oracle = new Set();
  const paths = ["/settings/principals", "/insights", "/inbox?tab=team"];
  const look = async () => {
    for (const path of paths) await pages(page, path, async () =>
      (oracle.frozen ? inspected(page, path, oracle) : (await inspected(page, path)).forEach((x) => oracle.add(x))));
  };
  // A principal's name is short, and appears on everything that the principal proposes.
  const make = (texts) => taken(texts, async (text, n) => {
    const bot = await g.api("POST", "/principals", { body: { name: text, kind: "agent", roles: ["proposer"] } });
    return g.api("POST", "/proposed-actions", {
      key: bot.key, token: null,
      body: { connector: "elsewhere", operation: "put", action_type: text.toLowerCase(),
        target: { entity_type: "thing", entity_ref: `of-${n}` }, proposed_change: { note: text } },
    });
  });
  const plain = await make(Array.from({ length: 60 }, (_, i) => ({ name: "harmless", text: `harmless-${i}` })));
  assert.equal(plain.length, 60);
  await look();
  oracle.frozen = true;
  const odd = await make(corpus);
  assert.ok(odd.length > 0 && odd.length < corpus.length / 4, `${odd.length} of ${corpus.length} texts are names`);
  await look();

  // Pages also show text from the URL: of existing and of missing objects.
  const said = ["/insights?type=X&by=X", "/inbox?tab=team&q=X", "/inbox?tab=team&type=X&by=X", "/inbox?tab=X&open=X",
    "/actions/X", "/policies/X", "/settings/principals/X", "/dispatch?tab=X&failed=X"];
  const open = (path, text) => visit(page, g.url + path.replaceAll("X", encodeURIComponent(text.toWellFormed())));
  const echo = new Set(oracle);
  for (const path of said) {
    for (const text of ["harmless", "harmless-0"]) {
      await open(path, text);
      for (const x of await inspected(page, path)) echo.add(x);
    }
  }
  for (const [i, { name, text }] of corpus.filter((_, i) => i % 3 === 0).entries()) {
    const path = said[i % said.length];
    await open(path, text);
    await inspected(page, `${path}: ${name}`, echo);
  }
});

test("names that people give", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"));
  const path = "/inbox?tab=team&type=price_change";
  const save = (name) => page.request.post(`${g.url}/inbox/views`,
    { form: { name, query: "tab=team&type=price_change" }, maxRedirects: 0 });
  const remove = async () => {
    for (;;) {
      await visit(page, g.url + path);
      const form = page.getByTestId("delete-views").locator("form");
      if (!(await form.count())) return;
      for (const name of await form.locator("[name=name]").evaluateAll((all) => all.map((x) => x.value))) {
        assert.equal((await page.request.post(`${g.url}/inbox/views/delete`,
          { form: { name, query: "" }, maxRedirects: 0 })).status(), 303);
      }
    }
  };
  for (const { text } of benign) assert.equal((await save(text.slice(0, 60))).status(), 303);
  await visit(page, g.url + path);
  const oracle = new Set(await inspected(page, "saved views"));
  await remove();
  let kept = 0;
  for (let n = 0; n < corpus.length; n += 40) {
    for (const { name, text } of corpus.slice(n, n + 40)) {
      const status = (await save(text.slice(0, 60))).status();
      assert.ok(status === 303 || status === 422, `${name}: ${status}`);
      kept += status === 303;
    }
    await visit(page, g.url + path);
    await inspected(page, "saved views", oracle);
    await remove(); // by the names that the page posts back
  }
  assert.ok(kept > corpus.length / 2, `${kept} of ${corpus.length} texts are kept`);
});
