// A question to the agent, its answer on an open page, an assignment, and a snooze.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, awake, desktop, newPage, phone, signIn, stillClock } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
const shots = process.env.SHOTS;

async function reviewer(t, name, options) {
  const person = await g.person(name, "approver");
  const page = await newPage(browser, t, options);
  const scripts = options?.javaScriptEnabled !== false;
  if (scripts) await stillClock(page);
  await signIn(page, await g.setupLink(name));
  if (scripts) await awake(page);
  return { page, person };
}

test("ask the agent by keyboard, and read its answer without a reload", limit, async (t) => {
  const a = await g.propose(priced(0, "7.25"));
  const { page } = await reviewer(t, "ada");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(`.row.open[data-id="${a.id}"]`).waitFor();
  await awake(page);
  await page.keyboard.press("c");
  const text = page.getByTestId("comment-text");
  assert.ok(await text.evaluate((el) => el === document.activeElement), "the text has no focus");
  await page.keyboard.type("a supplier's letter? \u202e");
  await accessible(page, "the form of a comment");
  await page.getByTestId("ask-go").click();
  await page.getByTestId("open-question").waitFor();
  assert.equal(await page.locator("#detail").getAttribute("data-open"), a.id);
  assert.match(await page.getByTestId("comment").innerText(), /ada[\s\S]*asks[\s\S]*U\+202E/);
  assert.equal((await g.api("GET", `/proposed-actions/${a.id}`)).status, "pending", "a typed letter decided");

  // What somebody types stays while the conversation is loaded again.
  await awake(page);
  await page.keyboard.press("c");
  await page.keyboard.type("half a sen");
  const answer = { answers: 1, text: "yes: <b>INV-7</b>" };
  await g.api("POST", `/proposed-actions/${a.id}/comments`, { key: g.agent.key, token: "", body: answer });
  await page.locator('[data-testid="comment"][data-kind="answer"]').waitFor();
  assert.equal(await page.getByTestId("open-question").count(), 0);
  assert.match(await page.locator('[data-kind="answer"]').innerText(), /yes: <b>INV-7<\/b>/);
  assert.equal(await text.inputValue(), "half a sen");
  await accessible(page, "a conversation");
  await page.reload();
  assert.equal(await page.getByTestId("answered").count(), 1);
});

test("assign and snooze by keyboard", limit, async (t) => {
  const b = await g.propose(priced(1, "8.25"));
  const { page } = await reviewer(t, "bea");
  await page.goto(`${g.url}/inbox?open=${b.id}`);
  await awake(page);
  await page.keyboard.press("s");
  const assignee = page.getByTestId("assignee");
  assert.equal(await assignee.inputValue(), "bea");
  await assignee.fill("nobody");
  await page.keyboard.press("Enter");
  await page.getByTestId("refused-assign").waitFor();
  assert.equal(await assignee.inputValue(), "nobody");
  assert.ok(await assignee.evaluate((el) => el === document.activeElement), "the refused field has no focus");
  await page.waitForFunction(() => {
    const { top, bottom } = document.querySelector("[data-testid=refused-assign]").getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  });
  await accessible(page, "a refused form");
  await assignee.fill("bea");
  await page.keyboard.press("Enter");
  await page.getByTestId("assigned").waitFor();
  assert.match(await page.getByTestId("assigned").innerText(), /assigned to you/);
  await page.goto(`${g.url}/inbox?assignee=me&open=${b.id}`);
  assert.equal(await page.getByTestId("row").count(), 1);
  await page.goto(`${g.url}/inbox?open=${b.id}`);
  await awake(page);
  const before = Number(await page.getByTestId("count-mine").innerText());
  await page.keyboard.press("z");
  await page.getByTestId("snooze-tomorrow").waitFor();
  await accessible(page, "the form of a snooze");
  await page.getByTestId("snooze-hour").click();
  await page.waitForFunction((id) => !document.getElementById(`row-${id}`), b.id);
  assert.equal(Number(await page.getByTestId("count-mine").innerText()), before - 1);
  assert.equal(await page.getByTestId("count-snoozed").innerText(), ", 1 snoozed");
  await page.goto(`${g.url}/inbox?snoozed=1`);
  assert.deepEqual(await page.getByTestId("row").evaluateAll((all) => all.map((el) => el.dataset.id)), [b.id]);
});

test("without scripts", limit, async (t) => {
  const c = await g.propose(priced(2, "9.25"));
  const { page } = await reviewer(t, "cay", { javaScriptEnabled: false });
  await page.goto(`${g.url}/actions/${c.id}`);
  await page.getByTestId("comment-more").locator("summary").click();
  await page.getByTestId("comment-text").fill("who says so?");
  await page.getByTestId("ask-go").click();
  assert.match(await page.getByTestId("comment").innerText(), /who says so\?/);
  await page.getByTestId("assign-more").locator("summary").click();
  await page.getByTestId("assign-go").click();
  assert.match(await page.getByTestId("assigned").innerText(), /assigned to you/);
  await page.getByTestId("snooze-more").locator("summary").click();
  await page.getByTestId("snooze-tomorrow").click();
  await page.getByTestId("snooze-more").locator("summary").click();
  assert.match(await page.getByTestId("snoozed").innerText(), /Snoozed until/);
});

if (shots) {
  test("pictures", limit, async (t) => {
    const d = await g.propose(priced(3, "6.25", { rationale: "The supplier raised the cost by 12 %." }));
    const { page, person } = await reviewer(t, "dot");
    const say = (who, body) =>
      g.api("POST", `/proposed-actions/${d.id}/comments`, { key: who.key, token: who.edit_token ?? "", body });
    await say(person, { kind: "question", text: "Which supplier, and is there a letter?" });
    await say(g.agent, { answers: 1, text: "Acme Foods, letter of 3 November.\nINV-7 has the new price." });
    await say(person, { kind: "question", text: "Does it hold for SKU-0003 too?" });
    await g.api("POST", `/proposed-actions/${d.id}/assign`,
      { key: person.key, token: person.edit_token, body: { assignee: "dot" } });
    for (const colorScheme of ["light", "dark"]) {
      for (const [device, viewport] of [["desktop", desktop], ["phone", phone]]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.setViewportSize(viewport);
        await page.goto(`${g.url}/inbox`);
        await page.screenshot({ path: `${shots}/inbox-${device}-${colorScheme}.png` });
        await page.goto(`${g.url}/inbox?open=${d.id}`);
        await page.getByTestId("talk").scrollIntoViewIfNeeded();
        await page.screenshot({ path: `${shots}/talk-${device}-${colorScheme}.png` });
        await page.getByTestId("snooze-more").locator("summary").click();
        await page.getByTestId("snooze-go").scrollIntoViewIfNeeded();
        await page.screenshot({ path: `${shots}/snooze-${device}-${colorScheme}.png` });
      }
    }
  });
}
