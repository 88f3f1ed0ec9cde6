// Runs and workflows, with mouse, keys, without scripts and on a phone. Their pages update
// themselves, and text from others stays text.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { awake, everywhere, newPage, phone, signIn, stillClock } from "../lib/browser.mjs";
import { look, opener, skeleton, unseen, visit } from "../lib/oracle.mjs";
import { answer, apply, lease, model, runScene, start, startAndAsk, step, untilStatus } from "../lib/runs.mjs";
import { limit, stage } from "../lib/stage.mjs";

const provider = await model();
after(() => provider.close());
const { g, browser } = await stage(provider);
const bo = await g.person("bo", "approver");
await g.person("op", "operator", "proposer");
await g.person("op2", "operator", "proposer");
await g.person("vic", "viewer");
const scene = await runScene(g, bo);

const path = (run) => `${g.url}/runs/${run.id}`;
const run = (page, s) => page.locator(`#run[data-status=${s}]`);

async function open(t, name, where, options) {
  const page = await newPage(browser, t, options);
  await signIn(page, await g.setupLink(name), where);
  return page;
}

test("a run continues while a person reads it, and the text on the screen does not move", limit, async (t) => {
  const going = await startAndAsk(g, 0, "12.50");
  const page = await open(t, "op", path(going));
  await run(page, "waiting_approval").waitFor();
  await page.locator("html[data-live=on]").waitFor();
  // The step that waits is shown, and stays when another one matters more.
  const shown = () => page.locator(".steps .step:visible").evaluateAll((all) => all.map((el) => el.dataset.step));
  assert.deepEqual(await shown(), ["change"]);
  await page.getByTestId("all-steps").click();
  assert.ok((await shown()).length > 4);
  // An unfolded part, typed text and the focus must all survive an update.
  await page.locator("[data-testid=step][data-step=read]").locator("summary").click();
  await page.getByTestId("cancel").locator("summary").first().click();
  await page.getByTestId("cancel-reason").fill("not before May");
  await page.locator(`#tl-${step(going, "look").id} a`).focus();
  await page.evaluate(() => {
    window.notReloaded = true;
    scrollTo(0, 200);
  });
  await answer(g, bo, going, "change");
  await run(page, "waiting").waitFor();
  assert.equal(await page.getByTestId("cancel-reason").inputValue(), "not before May");
  assert.ok(await page.getByTestId("cancel").evaluate((el) => el.open));
  assert.ok(await page.locator("[data-testid=step][data-step=read]").locator("details").evaluate((el) => el.open));
  assert.equal(await page.evaluate(() => document.activeElement.closest("li")?.dataset.step), "look");
  assert.deepEqual(await page.evaluate(() => [scrollY, window.notReloaded]), [200, true]);
  assert.match(await page.locator("#run-says").textContent(), /^Run waiting; \d of \d steps ended\.$/);
  assert.match(await page.getByTestId("waits-for").innerText(), /^heard: the event acknowledged, until /);
  assert.match(await page.locator("[data-testid=tl-row][data-step=change]").innerText(), /waited for people/);
  assert.equal(await page.getByTestId("run-action").locator(".status").first().getAttribute("data-status"), "applied");

  await page.evaluate(() => { location.hash = ""; });
  assert.deepEqual(await shown(), ["change"]);

  // The second press cancels, and the page shows the end.
  await page.getByTestId("cancel-go").click();
  await run(page, "canceled").waitFor();
  assert.match(await page.getByTestId("failure").innerText(), /canceled by op: not before May/);
  assert.equal((await untilStatus(g, going.id, "canceled")).failure.code, "canceled");
  await page.getByTestId("evidence").waitFor();
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByTestId("evidence").click()]);
  assert.equal(saved.suggestedFilename(), `evidence-${going.id}.zip`);
});

test("the action leads to its run, and back", limit, async (t) => {
  const page = await open(t, "vic", path(scene.asked));
  await page.getByTestId("run-action").getByRole("link").click();
  await page.getByTestId("of-run").getByRole("link").click();
  await run(page, "waiting_approval").waitFor();
  assert.equal(await page.getByTestId("cancel").count(), 0, "a viewer stops nothing");
});

test("new runs wait in a pill, and the URL contains the filters", limit, async (t) => {
  const page = await open(t, "vic", `${g.url}/runs`);
  await page.locator("html[data-live=on]").waitFor();
  const rows = () => page.getByTestId("run-row").evaluateAll((all) => all.map((el) => el.dataset.id));
  const before = await rows();
  assert.match(await page.locator(`#row-${scene.asked.id}`).innerText(),
    /change waits for the role approver/);
  const fresh = await startAndAsk(g, 1, "36.00");
  await page.getByTestId("fresh-pill").getByText(/^1 new/).waitFor();
  assert.deepEqual(await rows(), before);
  await page.getByTestId("fresh-pill").click();
  await page.locator(`#row-${fresh.id}`).waitFor();
  await page.getByTestId("filters").locator("summary").click();
  await page.getByTestId("run-status").selectOption("failed_terminal");
  await page.getByTestId("run-workflow").fill("sync-stock");
  await page.getByTestId("filter-go").click();
  await page.waitForURL(/status=failed_terminal&workflow=sync-stock/);
  assert.deepEqual(await rows(), [scene.failed.id]);
  await page.locator(`#row-${scene.failed.id} a`).click();
  assert.match(await page.getByTestId("failure").innerText(), /Failed at step count: unreachable[^]*does not answer/);
  await page.goBack();
  await page.waitForURL(/status=failed_terminal&workflow=sync-stock/);
});

test("by keys alone", limit, async (t) => {
  const page = await newPage(browser, t);
  await stillClock(page);
  await signIn(page, await g.setupLink("vic"));
  const go = async (key, where) => {
    await awake(page);
    await page.keyboard.press("g");
    await Promise.all([page.waitForURL(where), page.keyboard.press(key)]);
  };
  await go("r", "**/runs");
  await awake(page);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const second = page.getByTestId("run-row").nth(1);
  assert.match(await second.getAttribute("class"), /cursor/);
  await Promise.all([page.waitForURL("**/runs/run_*"), page.keyboard.press("Enter")]);
  assert.ok((await page.locator("#run").getAttribute("data-id")).length > 4);
  // A bar of the timeline is a link with a description, and leads to its step.
  await page.goto(path(scene.done));
  const bar = page.locator("[data-testid=tl-row][data-step=change]").getByRole("link");
  assert.match(await bar.evaluate((el) => el.textContent.replace(/\s+/g, " ")),
    /change.*succeeded: .*waited for people \d+ (ms|s)/);
  await bar.focus();
  await Promise.all([page.waitForURL(`**/*#s-${step(scene.done, "change").id}`), page.keyboard.press("Enter")]);
  assert.equal(await page.evaluate(() => document.querySelector(":target").dataset.step), "change");
  await awake(page);
  await Promise.all([page.waitForURL("**/runs"), page.keyboard.press("Escape")]);
  await go("w", "**/workflows");
  await awake(page);
  await page.keyboard.press("j");
  await Promise.all([page.waitForURL("**/workflows/reprice"), page.keyboard.press("Enter")]);
});

test("several runs are canceled by keys, and retried without script", limit, async (t) => {
  const going = [await startAndAsk(g, 7, "36.00"), await startAndAsk(g, 8, "37.00")];
  const page = await newPage(browser, t);
  await stillClock(page);
  await signIn(page, await g.setupLink("op"), `${g.url}/runs?status=waiting_approval&workflow=reprice`);
  await awake(page);
  assert.ok(!(await page.getByTestId("bulk-bar").isVisible()), "nothing is selected yet");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("J");
  assert.match(await page.locator("#picked").innerText(), /^2 selected/);
  await Promise.all([page.waitForURL("**/runs/bulk?*"), page.keyboard.press("v")]);
  await page.getByLabel("Why?").fill("not before May");
  await page.getByLabel("Why?").press("Enter");
  await page.getByTestId("notice").getByText("2 runs canceled").waitFor();
  for (const r of going) {
    assert.match((await untilStatus(g, r.id, "canceled")).failure.detail, /canceled by op: not before May/);
  }

  const plain = await open(t, "op2", `${g.url}/runs?status=canceled&workflow=reprice`, { javaScriptEnabled: false });
  for (const r of going) await plain.locator(`#row-${r.id} input[name=pick]`).check();
  await plain.getByTestId("bulk-review").click();
  await plain.getByTestId("bulk-retry-go").click();
  await plain.getByTestId("notice").getByText("2 runs retried").waitFor();
  const links = plain.getByTestId("bulk-run-results").locator("li a:nth-of-type(2)");
  const again = await links.evaluateAll((all) => all.map((el) => el.title));
  assert.equal(again.length, 2);
  for (const id of again) await g.api("POST", `/runs/${id}/cancel`, { body: {} });
});

test("without script: start, cancel, retry", limit, async (t) => {
  const page = await open(t, "op", `${g.url}/workflows`, { javaScriptEnabled: false });
  await page.getByTestId("workflow-row").filter({ hasText: "reprice" }).getByRole("link").click();
  assert.match(await page.getByTestId("triggers").innerText(),
    /POST \/api\/v1\/hooks\/reprice[^]*0 6 \* \* 1-5 in Europe\/Berlin · next at \d{4}-/);
  assert.match(await page.getByTestId("workflow-source").innerText(), /uses: connector\.shop\.update/);
  await page.getByTestId("start").locator("summary").first().click();
  const bad = '{"sku": 5,\n"n": 1.00}';
  await page.getByTestId("start-input").fill(bad);
  await page.getByTestId("start-go").click();
  assert.match(await page.getByTestId("start-error").innerText(), /\/input\/sku/);
  assert.equal(await page.getByTestId("start-input").inputValue(), bad);
  await page.getByTestId("start-input")
    .fill('{"sku": "SKU-0041", "to": "1.00", "price": "1.00", "version": "1", "watchers": []}');
  await page.getByTestId("start-go").click();
  await page.waitForURL("**/runs/run_*");
  const id = await page.locator("#run").getAttribute("data-id");
  await untilStatus(g, id, "waiting_approval");
  await page.reload();
  await page.getByTestId("cancel").locator("summary").click();
  await page.getByTestId("cancel-reason").fill("a trial");
  await Promise.all([page.waitForNavigation(), page.getByTestId("cancel-go").click()]);
  await untilStatus(g, id, "canceled");
  await page.reload();
  assert.match(await page.getByTestId("failure").innerText(), /canceled by op: a trial/);
  await page.getByTestId("retry").locator("summary").click();
  await page.getByTestId("retry-go").click();
  await page.getByTestId("retry-of").waitFor();
  const again = await page.locator("#run").getAttribute("data-id");
  assert.notEqual(again, id);
  assert.match(await page.locator("[data-testid=tl-row][data-step=read]").innerText(), /succeeded in the run before/);
  await g.api("POST", `/runs/${again}/cancel`, { body: {} });
  // Times and money are shown exactly: nothing was converted to a float.
  await page.goto(path(scene.done));
  assert.match(await page.getByTestId("costs").innerText(), /local small\s+1\s+812\s+41\s+0\.1464 USD/);
});

const looked = {
  "runs": "/runs", "runs, none": "/runs?status=queued",
  "runs, selected": `/runs/bulk?pick=${scene.asked.id}&pick=${scene.failed.id}&pick=${scene.done.id}`,
  "done": `/runs/${scene.done.id}`, "asked": `/runs/${scene.asked.id}`, "event": `/runs/${scene.event.id}`,
  "failed": `/runs/${scene.failed.id}`, "rejected": `/runs/${scene.rejected.id}`,
    "canceled": `/runs/${scene.canceled.id}`,
  "workflows": "/workflows", "workflow": "/workflows/reprice", "earlier version": "/workflows/reprice?version=1",
    "its action": `/actions/${step(scene.asked, "change").action_id}`,
};

test("the pages fit on a phone", limit, async (t) => {
  const page = await open(t, "op", `${g.url}/runs`, { viewport: phone, hasTouch: true, isMobile: true });
  for (const where of Object.values(looked)) {
    await page.goto(g.url + where);
    await page.locator("main details").evaluateAll((all) => all.forEach((el) => (el.open = true)));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${where} is ${wide} px too wide`);
    const small = await page.locator("main :is(a, button, summary, select, input:not([type=hidden]), textarea)")
      .evaluateAll((all) => all
      .filter((el) => el.checkVisibility() && !(getComputedStyle(el).display === "inline" &&
        el.matches("p a, li a, td a, dd a, h1 a")))
      // People press a box anywhere in its cell.
      .map((el) => [el.outerHTML.slice(0, 100), (el.closest(".pick") ?? el).getBoundingClientRect()])
      .filter(([, box]) => box.height < 43.5 || box.width < 43.5)
      .map(([html, box]) => `${html}: ${Math.round(box.width)} × ${Math.round(box.height)}`));
    assert.deepEqual(small, [], where);
  }
});

test("the pages have no serious accessibility violation", limit, async (t) => {
  const waiting = Object.entries(looked);
  const work = async (page) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await page.goto(g.url + next[1]);
      await page.locator("main details").evaluateAll((all) => all.forEach((el) => (el.open = true)));
      await everywhere(page, next[0]);
    }
  };
  await Promise.all([await open(t, "op", g.url), await open(t, "op2", g.url)].map(work));
});

const corpus = JSON.parse(await readFile(new URL("../../internal/card/testdata/hostile.json", import.meta.url),
  "utf8"));
const harmless = ["harmless", "two\nlines\n", "1\n2\n3\n4\n5\n",
  "a longer line of words that goes on and on, and has a_word_that_is_long_enough_to_be_broken_somewhere in it",
  "line\n".repeat(400), "more than a page shows of it ".repeat(1000)];

test("text from others stays text", limit, async (t) => {
  // The first attempt that is accepted; refused texts are shown to nobody.
  const fits = async (...attempts) => {
    for (const [i, attempt] of attempts.entries()) {
      try {
        return await attempt();
      } catch (e) {
        if (i === attempts.length - 1) throw e;
        assert.match(e.message, /: 4(00|09|22) /);
      }
    }
  };
  const worker = { key: scene.worker.key, token: null };
  const make = async ({ name, text: raw }, n) => {
    const text = raw.toWellFormed(); // half of a surrogate pair is not JSON
    const flow = `flow-${n}`;
    const source = (description) => JSON.stringify({
      name: flow, description,
      steps: [{ id: "say", uses: `worker.say-${n}` }, { id: "hear", uses: `worker.hear-${n}`, retry: { max: 0 } }],
    });
    const described = await fits(() => apply(g, flow, source(text)).then(() => true),
      () => apply(g, flow, source("plain")).then(() => false));
    const input = { said: text, [text || "empty"]: [text] };
    const made = await fits(() => start(g, flow, input, { trigger_ref: `${n} ${text}` }), () => start(g, flow, input));
    await fits(() => g.api("POST", `/runs/${made.id}/signals`, { body: { name: "word", data: input } }));
    const say = await fits(() => lease(g, worker, `say-${n}`, text), () => lease(g, worker, `say-${n}`));
    await g.api("POST", `/steps/${say.step.id}/complete`, { ...worker,
      body: { generation: say.lease.generation, output: input } });
    const hear = await lease(g, worker, `hear-${n}`);
    const fail = (code, detail) => g.api("POST", `/steps/${hear.step.id}/fail`,
      { ...worker, body: { generation: hear.lease.generation, code, detail, retryable: false } });
    await fits(() => fail(text, text), () => fail("said", text), () => fail("said", "plain"));
    await untilStatus(g, made.id, "failed_terminal");
    return { name, text, pages: [`/runs/${made.id}`, ...(described &&
      (name === "harmless" || n % 3 === 0) ? [`/workflows/${flow}`] : [])] };
  };
  const all = [...harmless.map((text) => ({ name: "harmless", text })), ...corpus];
  const runs = [];
  for (let n = 0; n < all.length; n += 8) runs.push(...await Promise.all(all.slice(n, n + 8)
    .map((x, i) => make(x, n + i))));

  const oracle = new Set();
  const check = async (page, { name, text }, where, opened = visit) => {
    await opened(page, g.url + where);
    await page.locator("main details").evaluateAll((all) => all.forEach((el) => (el.open = true)));
    const here = await page.evaluate(skeleton);
    const shown = await page.evaluate(look);
    assert.equal(shown.owned, undefined, name);
    if (name === "harmless") {
      for (const x of here) oracle.add(x);
      return;
    }
    assert.deepEqual(here.filter((x) => !oracle.has(x)), [], `${name}: ${where}`);
    assert.doesNotMatch(shown.text, unseen, name);
    // JSON writes the characters below U+0020 as escapes; a run marks every other invisible character somewhere.
    if (where.startsWith("/runs/") && unseen.test(text.replace(/[\u0000-\u001f]/g, ""))) assert.ok(shown.marks > 0,
      `${name}: nothing is marked`);
  };
  const tabs = await Promise.all([open(t, "op", g.url), open(t, "op2", g.url)]);
  const calm = runs.filter((r) => r.name === "harmless"), rest = runs.filter((r) => r.name !== "harmless");
  for (const r of calm) for (const where of r.pages) await check(tabs[0], r, where);
  await Promise.all(tabs.map(async (page) => {
    const opened = opener();
    for (let r = rest.pop(); r; r = rest.pop()) for (const where of r.pages) await check(page, r, where, opened);
  }));
  assert.ok(runs.filter((r) => r.pages.length > 1).length > corpus.length / 6, "most texts describe a workflow");
  // Each page of the lists.
  for (const list of ["/runs", "/workflows"]) {
    const seen = [];
    for (let next = list; next;) {
      await tabs[0].goto(g.url + next);
      assert.equal(await tabs[0].evaluate(() => window.__owned), undefined);
      assert.doesNotMatch(await tabs[0].evaluate(() => document.body.innerText), unseen, next);
      seen.push(new Set((await tabs[0].locator("#rows").evaluate((el) =>
        [...el.querySelectorAll("*")].map((x) => x.localName)))));
      const link = tabs[0].getByTestId("next-page");
      next = (await link.count()) ? await link.getAttribute("href") : "";
    }
    const known = new Set(["li", "a", "span", "time", "mark", "wbr", "input"]);
    for (const names of seen) for (const x of names) assert.ok(known.has(x), `${list} has ${x}`);
  }
});
