// No page has a serious accessibility violation, in the light and the dark theme, on a desktop and
// on a phone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { everywhere, newPage, signIn } from "../lib/browser.mjs";
import { fill } from "../lib/scene.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
const scene = await fill(g);

const pick = (...actions) => `/inbox/bulk?${actions.map((a) => `pick=${a.id}`).join("&")}`;
const [rejected, approved] = scene.done;
const dead = await g.finished(scene.dead.id);

const pages = {
  inbox: "/inbox",
  "inbox, team": "/inbox?tab=team",
  "inbox, decided": "/inbox?tab=decided",
  "inbox, nothing found": "/inbox?q=nothing-is-called-so",
  "inbox, open": `/inbox?open=${scene.price.id}`,
  "L3": `/actions/${scene.price.id}`,
  "L3, text": `/actions/${scene.text.id}`,
  "L4": `/actions/${scene.create.id}`,
  "L5": `/actions/${scene.bulk.id}`,
  "L1, allowed": `/actions/${scene.note.id}`,
  "L2, allowed": `/actions/${scene.safe.id}`,
  "applied": `/actions/${approved.id}`,
  "rejected": `/actions/${rejected.id}`,
  "dead letter": `/actions/${scene.dead.id}`,
  "bulk": pick(scene.price, scene.text, scene.bulk),
  "edit": `/actions/${scene.price.id}/edit`,
  "dispatch": "/dispatch",
  "dispatch, queue": "/dispatch?tab=queue",
  "dispatch, done": "/dispatch?tab=done",
  "policies": "/policies",
  "policy": "/policies/1",
  "policy editor": "/policies/edit",
  "explain": `/policies/explain?action=${scene.price.id}`,
  "audit": "/audit",
  "audit, filtered": "/audit?kind=decisions&by=admin&since=2026-01-01",
  "audit, nothing found": "/audit?by=nobody",
  "insights": "/insights",
  "settings": "/settings",
  "principals": "/settings/principals",
  "new principal": "/settings/principals/new",
  "principal": "/settings/principals/bo",
  "tenants": "/settings/tenants",
  "providers": "/settings/sign-in",
  "messages": "/settings/messages",
  "queues": "/runs/queues",
  "health": "/dispatch?tab=health",
  "connectors": "/settings/connectors",
  "new connector": "/settings/connectors/new?type=email",
  "secrets": "/settings/secrets",
  "grants": "/settings/grants",
  "mandates": "/settings/mandates",
  "groups": "/settings/groups",
  "delegations": "/settings/delegations",
  "devices": "/settings/notifications",
  "help": "/help",
  "no such page": "/no-such-page",
};

test("the pages before a sign-in", limit, async (t) => {
  const page = await newPage(browser, t);
  await page.goto(`${g.url}/signin`);
  await everywhere(page, "sign in");
  await page.goto(await g.setupLink("bo"));
  await everywhere(page, "set-up");
  await page.goto(`${g.url}/setup?token=gtu_wrong`);
  await everywhere(page, "a link that does not work");
});

// Two pages are checked concurrently: axe runs inside the page, so each page uses a core of its own.
test("every page", limit, async (t) => {
  const waiting = Object.entries(pages);
  const work = async (page) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const answer = await page.goto(g.url + next[1]);
      assert.equal(answer.ok(), next[0] !== "no such page", next[1]);
      await everywhere(page, next[0]);
    }
  };
  const tabs = [await newPage(browser, t), await newPage(browser, t)];
  for (const page of tabs) await signIn(page, await g.setupLink("ana")); // a new link invalidates the previous one
  await Promise.all(tabs.map(work));
});

/** Sends a form, as a page of the console would, and waits for the page that answers. */
async function send(page, path, fields) {
  const answered = page.waitForResponse((r) => r.request().method() === "POST" && new URL(r.url()).pathname === path);
  const loaded = page.waitForEvent("load");
  await page.evaluate(
    ([action, pairs]) => {
      const form = document.body.appendChild(Object.assign(document.createElement("form"), { method: "post", action }));
      for (const [name, value] of pairs) form.append(Object.assign(document.createElement("input"),
        { type: "hidden", name, value }));
      HTMLFormElement.prototype.submit.call(form);
    },
    [path, fields],
  );
  const status = (await answered).status();
  await loaded;
  return status;
}

const item = (a) => ["item", `${a.id} ${a.digest}`];

/** The forms to send, as [path, fields, expected status, test id that the answer must show, if any]. */
const forms = {
  "bulk, no reason": ["/inbox/bulk", [["decision", "rejected"], item(scene.text)], 422],
  "bulk, done": ["/inbox/bulk", [["decision", "approved"], item(scene.price), ["item", `${scene.text.id} sha256:0`],
    item(scene.create)], 200, "bulk-result"],
  "a decision on what is decided": [`/actions/${rejected.id}/decide`,
    [["decision", "approved"], ["digest", rejected.digest]], 409, "outcome"],
  "an edit that is not JSON": [`/actions/${scene.text.id}/edit`, [["change", "{"]], 400],
  "the log, checked": ["/audit/check", [], 200, "check-result"],
  "a policy, checked": ["/policies/check",
    [["source", "version: 1\nrules:\n  - {id: all, when: 'risk <= 2', then: allow}\n"]], 200, "policy-check"],
  "a policy that does not load": ["/policies/check", [["source",
    "version: 1\nrules:\n  - {id: all, when: 'nothing > 2', then: allow}\n"]], 200, "policy-check"],
  "a policy, refused": ["/policies/apply", [["source", "rules: 1"]], 422],
  "a proposal, explained": [
    "/policies/explain",
    [["proposal", JSON.stringify({ action_type: "note", connector: "shop", operation: "update",
      target: { entity_type: "item", entity_ref: "X" }, proposed_change: { tag: "x" } })]],
    200,
    "explanation",
  ],
  "a proposal that is not JSON": ["/policies/explain", [["proposal", "{"]], 400],
  "own key": ["/settings/keys", [["once", "axe-key"]], 200, "secrets"],
  "own edit token": ["/settings/edit-token", [["once", "axe-edit"], ["sure", "yes"]], 200, "secrets"],
  "own edit token, not sure": ["/settings/edit-token", [["once", "axe-edit-2"]], 422],
  "new agent": ["/settings/principals", [["once", "axe-new"], ["name", "axe-agent"], ["kind", "agent"],
    ["role", "proposer"], ["sponsor", "bo"]], 200, "secrets"],
  "new agent, refused": ["/settings/principals", [["once", "axe-new-2"], ["name", "a b"], ["kind", "agent"],
    ["role", "approver"]], 422, "principal-form"],
  "set-up link": ["/settings/principals/bo/setup-link", [["once", "axe-link"]], 200, "secrets"],
  "roles, refused": ["/settings/principals/bo/roles", [["role", "nonsense"]], 422],
  "tenant, refused": ["/settings/tenants", [["id", "a b"]], 422],
  "a push that is not there": ["/dispatch/pushes/psh_0/resolve", [["outcome", "applied"], ["reason", "seen"]], 404],
  "replay of nothing": ["/dispatch/replay", [], 422],
  "replayed": ["/dispatch/replay", [["push", dead.push.id]], 200],
};

// Rejects an action that the pages above show as open.
test("states that a click makes", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("cy"), `${g.url}/inbox?open=${scene.create.id}`);
  await page.getByTestId("approve-more").locator("summary").click();
  await page.getByTestId("reject").locator("summary").click();
  await page.getByTestId("person-menu").locator("summary").click();
  await everywhere(page, "everything unfolded");
  await page.getByTestId("person-menu").locator("summary").click();
  await page.locator(".row [name=pick]:visible").first().check();
  await page.keyboard.press("?");
  await page.getByTestId("help").waitFor();
  await everywhere(page, "help over the inbox");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").waitFor();
  await everywhere(page, "palette");
  await page.locator("#palette-input").fill("SKU");
  await page.getByTestId("palette-actions").waitFor();
  await everywhere(page, "palette with results");
  await page.keyboard.press("Escape");
  await page.locator(`.row[data-id="${scene.text.id}"]`).getByRole("link").click();
  await page.locator(`.row.open[data-id="${scene.text.id}"]`).waitFor();
  await page.getByTestId("reject").locator("summary").click();
  await page.getByTestId("reject-notes").fill("no");
  await page.getByTestId("reject-go").click();
  await page.locator(`#detail[data-done="${scene.text.id}"]`).waitFor();
  await everywhere(page, "after a decision");
  await page.goto(`${g.url}/inbox?open=${scene.create.id}`);
  await page.getByTestId("approve-more").locator("summary").click();
  await page.getByTestId("confirm").fill("wrong");
  await page.getByTestId("edit-token").fill("gte_wrong");
  await page.getByTestId("approve").click();
  await page.getByTestId("outcome").waitFor();
  await everywhere(page, "not accepted");
});

// This test decides the actions that the other tests show as open.
test("the pages that answer forms", limit, async (t) => {
  const waiting = Object.entries(forms);
  const work = async (name) => {
    const page = await newPage(browser, t);
    await g.person(name, "admin", "proposer");
    await signIn(page, await g.setupLink(name));
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [what, [path, fields, status, shown]] = next;
      assert.equal(await send(page, path, fields), status, what);
      if (shown) await page.getByTestId(shown).waitFor();
      await everywhere(page, what);
    }
  };
  await Promise.all(["fay", "gil"].map(work));
});
