// Passkeys on a virtual authenticator: added in Settings, then used to sign in, then used as the
// step-up for an L4, for that action only.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage, signIn } from "../lib/browser.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");

/** Creating an item that does not exist: L4. */
const create = (ref) => g.propose({
  action_type: "create_item", operation: "insert", target: { entity_type: "item", entity_ref: ref },
    current_state: undefined,
  proposed_change: { name: "Copper washer", price: "0.12", cost: "0.05", currency: "USD", stock: 50, version: 1 },
});

/** Gives the page a virtual authenticator; use sets whether the authenticator recognizes its owner. */
async function authenticator(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true,
      isUserVerified: true, automaticPresenceSimulation: true },
  });
  return {
    use: (enabled) => cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: enabled }),
    count: async () => (await cdp.send("WebAuthn.getCredentials", { authenticatorId })).credentials.length,
  };
}

async function approve(page, a, confirm = a.approval.confirm.value) {
  await page.goto(`${g.url}/actions/${a.id}`);
  await page.getByTestId("approve-more").locator("summary").click();
  await page.getByTestId("confirm").fill(confirm);
  await page.getByTestId("approve").click();
}

test("add, sign in, step up", limit, async (t) => {
  const page = await newPage(browser, t);
  const key = await authenticator(page);
  await signIn(page, await g.setupLink("ana"), `${g.url}/settings`);
  await page.locator("#passkeys summary", { hasText: "Add a passkey" }).click();
  await page.getByTestId("add-passkey").getByRole("textbox").first().fill("Laptop");
  await page.getByTestId("add-passkey").getByRole("button").click();
  await page.getByTestId("passkeys").getByText("Laptop").waitFor();
  assert.equal(await key.count(), 1);

  // Sign out, and sign in again without a link.
  await page.getByTestId("person-menu").locator("summary").click();
  await page.getByTestId("person-menu").getByTestId("signout").click();
  const a = await create("SKU-9101");
  const other = await create("SKU-9102");
  await page.goto(`${g.url}/actions/${a.id}`);
  await page.getByTestId("passkey-signin").click();
  await page.waitForURL(`**/actions/${a.id}`);
  const { items } = await g.api("GET", "/sessions?principal=ana");
  assert.deepEqual(items.map((s) => s.method), ["passkey"]);

  // Nothing is decided if the authenticator does not recognize its owner, and the page says so.
  await key.use(false);
  const asked = [];
  page.on("request", (r) => r.method() === "POST" && asked.push(new URL(r.url()).pathname.split("/").slice(3)
    .join("/")));
  await approve(page, a);
  await page.locator(".passkey-problem").waitFor();
  assert.deepEqual(asked, ["stepup/passkey/begin"]);
  assert.equal((await g.action(a.id)).status, "pending");
  await key.use(true);

  // The proof remains valid for this action, although the typed value was wrong.
  await approve(page, a, "SKU-9109");
  await page.locator("[data-testid=outcome][data-code=confirmation_required]").waitFor();
  await page.getByTestId("step-up-done").waitFor();
  asked.length = 0;
  await approve(page, a);
  await page.getByTestId("approve").waitFor({ state: "detached" });
  assert.deepEqual(asked, ["decide"]);
  const end = await g.finished(a.id);
  assert.deepEqual([end.status, end.decided_by, end.decided_via], ["applied", "ana", "console"]);

  // The proof is not valid for another action.
  await page.goto(`${g.url}/actions/${other.id}`);
  assert.equal(await page.getByTestId("step-up-done").count(), 0);
  await page.route("**/stepup/passkey/**", (r) => r.abort());
  await approve(page, other);
  await page.locator(".passkey-problem").waitFor();
  // An approval without the step-up, forced by a script, is refused too.
  await page.evaluate(() => document.querySelector("[data-testid=approve-form]").removeAttribute("data-passkey"));
  await page.getByTestId("approve").click();
  await page.locator("[data-testid=outcome][data-code=step_up_required]").waitFor();
  assert.equal((await g.action(other.id)).status, "pending");
  await page.unroute("**/stepup/passkey/**");
  asked.length = 0;
  await approve(page, other);
  await page.getByTestId("approve").waitFor({ state: "detached" });
  assert.deepEqual(asked, ["stepup/passkey/begin", "stepup/passkey/finish", "decide"]);
  assert.equal((await g.finished(other.id)).status, "applied");
});

test("a step-up is valid only for the change that was shown", limit, async (t) => {
  const page = await newPage(browser, t);
  await authenticator(page);
  await signIn(page, await g.setupLink("ana"), `${g.url}/settings`);
  await page.locator("#passkeys summary", { hasText: "Add a passkey" }).click();
  await page.getByTestId("add-passkey").getByRole("button").click();
  await page.getByTestId("passkeys").getByRole("listitem").nth(1).waitFor();

  // The answer to one action's challenge is sent for another action.
  const a = await create("SKU-9103"), b = await create("SKU-9104");
  await page.route(`**/actions/${a.id}/stepup/passkey/begin*`, (route) =>
    route.continue({ url: `${g.url}/actions/${b.id}/stepup/passkey/begin?digest=${encodeURIComponent(b.digest)}` }));
  await approve(page, a);
  await page.locator("[data-testid=outcome], .passkey-problem").first().waitFor();
  assert.equal((await g.action(a.id)).status, "pending");
  await page.unrouteAll();
  await page.goto(`${g.url}/actions/${a.id}`);
  assert.equal(await page.getByTestId("step-up-done").count(), 0);
});

test("a removed passkey signs nobody in", limit, async (t) => {
  const page = await newPage(browser, t);
  const key = await authenticator(page);
  await signIn(page, await g.setupLink("ana"), `${g.url}/settings`);
  await page.locator("#passkeys summary", { hasText: "Add a passkey" }).click();
  await page.getByTestId("add-passkey").getByRole("textbox").first().fill("Lost phone");
  await page.getByTestId("add-passkey").getByRole("button").click();
  const entry = page.getByTestId("passkeys").getByRole("listitem").filter({ hasText: "Lost phone" });
  await entry.locator("summary").click();
  await entry.getByRole("checkbox").check();
  await entry.getByRole("button", { name: /remove/i }).click();
  await entry.waitFor({ state: "detached" });
  assert.equal(await key.count(), 1);
  await page.context().clearCookies();
  await page.goto(`${g.url}/inbox`);
  await page.getByTestId("passkey-signin").click();
  await page.locator(".passkey-problem").waitFor();
  await page.goto(`${g.url}/inbox`);
  await page.getByTestId("signin").waitFor();
});
