// No serious violation on any page, in the light theme and in the dark one.
import { test } from "node:test";
import { accessible, newPage, signIn } from "../lib/browser.mjs";
import { fill } from "../lib/scene.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage({ configure: (text, url) => `${text}\nsign_in: {public_url: "${url}", passkeys: {}}\n` });
const scene = await fill(g);

/** Both themes of a page that is open. */
async function both(page, what) {
  await page.emulateMedia({ colorScheme: "light" });
  await accessible(page, `${what}, light`);
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, `${what}, dark`, ["color-contrast"]);
}

const pick = (...actions) => `/inbox/bulk?${actions.map((a) => `pick=${a.id}`).join("&")}`;
const [approved, , rejected] = scene.done;

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
  "dispatch, dead": "/dispatch?tab=dead",
  "policies": "/policies",
  "policy editor": "/policies/edit",
  "explain": `/policies/explain?action=${scene.price.id}`,
  "audit": "/audit",
  "insights": "/insights",
  "settings": "/settings",
  "principals": "/settings/principals",
  "new principal": "/settings/principals/new",
  "tenants": "/settings/tenants",
  "providers": "/settings/providers",
  "help": "/help",
  "no such page": "/no-such-page",
};

test("before signing in", limit, async (t) => {
  const page = await newPage(browser, t);
  await page.goto(`${g.url}/signin`);
  await both(page, "sign in");
  await page.goto(await g.setupLink("bo"));
  await both(page, "set-up");
  await page.goto(`${g.url}/setup?token=gtu_wrong`);
  await both(page, "a link that does not work");
});

test("states that a click makes", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("cy"));
  await page.goto(`${g.url}/inbox?open=${scene.create.id}`);
  await page.getByTestId("approve-more").locator("summary").click();
  await page.getByTestId("reject").locator("summary").click();
  await page.getByTestId("person-menu").locator("summary").click();
  await both(page, "everything unfolded");
  await page.getByTestId("person-menu").locator("summary").click();
  await page.locator(".row [name=pick]").first().check();
  await page.keyboard.press("?");
  await page.getByTestId("help").waitFor();
  await both(page, "help over the inbox");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").waitFor();
  await both(page, "palette");
  await page.keyboard.press("Escape");
  await page.locator(`.row[data-id="${scene.text.id}"]`).getByRole("link").click();
  await page.locator(`.row.open[data-id="${scene.text.id}"]`).waitFor();
  await page.getByTestId("reject").locator("summary").click();
  await page.getByTestId("reject-notes").fill("no");
  await page.getByTestId("reject-go").click();
  await page.locator(`#detail[data-done="${scene.text.id}"]`).waitFor();
  await both(page, "after a decision");
  await page.goto(`${g.url}/inbox?open=${scene.create.id}`);
  await page.getByTestId("approve-more").locator("summary").click();
  await page.getByTestId("confirm").fill("wrong");
  await page.getByTestId("edit-token").fill("gte_wrong");
  await page.getByTestId("approve").click();
  await page.getByTestId("outcome").waitFor();
  await both(page, "not accepted");
});

// Two pages side by side: axe works in the page, on a core of its own.
test("every page", limit, async (t) => {
  const waiting = Object.entries(pages);
  const work = async (page) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await page.goto(g.url + next[1]);
      await both(page, next[0]);
    }
  };
  const tabs = [await newPage(browser, t), await newPage(browser, t)];
  for (const page of tabs) await signIn(page, await g.setupLink("ana")); // a new link ends the one before
  await Promise.all(tabs.map(work));
});
