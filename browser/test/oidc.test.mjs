// Signing in at a real OpenID provider, and the step-up of the person who approves an L4, with and
// without scripts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newPage } from "../lib/browser.mjs";
import { client, logIn, provider } from "../lib/idp.mjs";
import { limit, stage } from "../lib/stage.mjs";

let issuer;
const people = [
  { subject: "1001", username: "ana", email: "ana@acme.test", password: "pass", groups: ["finance"] },
  { subject: "1002", username: "ben", email: "ana@acme.test", password: "pass", groups: ["finance"] },
  { subject: "1003", username: "eve", email: "eve@acme.test", password: "pass", groups: ["visitors"] },
];
const { g, browser } = await stage({
  configure: async (text, url) => {
    issuer = await provider(url, people);
    return `${text}
sign_in:
  public_url: ${url}
  oidc:
    - {name: acme, issuer: "${issuer}", client_id: ${client.id}, client_secret: ${client.secret}, provision: true,
      roles: {finance: [approver]}}
`;
  },
});

/** Creating an item that does not exist: L4. */
const create = (ref) => g.propose({
  action_type: "create_item", operation: "insert", target: { entity_type: "item", entity_ref: ref },
    current_state: undefined,
  proposed_change: { name: "Copper washer", price: "0.12", cost: "0.05", currency: "USD", stock: 50, version: 1 },
});

for (const [how, options, ref] of [["with script", {}, "SKU-9201"],
  ["without script", { javaScriptEnabled: false }, "SKU-9202"]]) {
  test(`sign in at the provider, and approve an L4 after a step-up there, ${how}`, limit, async (t) => {
    const a = await create(ref), other = await create(`${ref}-other`);
    const page = await newPage(browser, t, options);
    const here = `${g.url}/actions/${a.id}`;
    await page.goto(here);
    await page.getByTestId("oidc-acme").click();
    await logIn(page, issuer, "1001", "wrong");
    await page.getByRole("alert").waitFor();
    await logIn(page, issuer, "1001");
    await page.waitForURL(here);
    assert.match(await page.getByTestId("person-menu").innerText(), /acme:ana/);
    const cookies = await page.context().cookies(g.url);
    assert.deepEqual(cookies.filter((c) => c.name.startsWith("gatehouse_"))
      .map((c) => [c.name, c.httpOnly, c.sameSite]),
      [["gatehouse_session", true, "Lax"], ["gatehouse_device", true, "Lax"]], "the ceremony's cookie is gone");

    const unfold = () => page.getByTestId("approve-more").locator("summary").click();
    const approve = async () => {
      await page.getByTestId("confirm").fill(a.approval.confirm.value);
      await page.getByTestId("approve").click();
    };
    // A session is not enough, nor is a proof for another action, nor another person's proof.
    await unfold();
    await approve();
    await page.locator("[data-testid=outcome][data-code=step_up_required]").waitFor();
    await page.goto(`${g.url}/actions/${other.id}`);
    await unfold();
    await page.getByTestId("step-up-acme").click();
    await logIn(page, issuer, "1001");
    await page.waitForURL(`${g.url}/actions/${other.id}`);
    await page.getByTestId("step-up-done").waitFor({ state: "attached" });
    await page.goto(here);
    assert.equal(await page.getByTestId("step-up-done").count(), 0);
    await unfold();
    await page.getByTestId("step-up-acme").click();
    await logIn(page, issuer, "1002");
    await page.waitForURL("**/signin/oidc/callback?**");
    await page.getByText("somebody else's identity").waitFor();
    assert.equal((await g.action(a.id)).status, "pending");

    await page.goto(here);
    await unfold();
    await page.getByTestId("step-up-acme").click();
    await logIn(page, issuer, "1001");
    await page.waitForURL(here);
    await unfold();
    await page.getByTestId("step-up-done").waitFor();
    await approve();
    await page.getByTestId("approve").waitFor({ state: "detached" });
    const end = await g.finished(a.id);
    assert.deepEqual([end.status, end.decided_by, end.decided_via], ["applied", "acme:ana", "console"]);
    assert.equal((await g.action(other.id)).status, "pending");
  });
}

test("no sign-in without a group that gives a role, and none by a repeated callback", limit, async (t) => {
  const page = await newPage(browser, t);
  await page.goto(`${g.url}/inbox`);
  await page.getByTestId("oidc-acme").click();
  await logIn(page, issuer, "1003");
  await page.waitForURL("**/signin/oidc/callback?**");
  await page.getByText("none of your groups gives you a role here").waitFor();
  await page.goto(`${g.url}/inbox`);
  await page.getByTestId("signin").waitFor();

  const answers = [];
  page.on("request", (r) => r.url().includes("/signin/oidc/callback?") && answers.push(r.url()));
  await page.getByTestId("oidc-acme").click();
  await logIn(page, issuer, "1002");
  await page.waitForURL(`${g.url}/inbox`);
  assert.equal(answers.length, 1);
  await page.goto("about:blank"); // the inbox asks for news, and would redirect to the sign-in by itself
  await page.context().clearCookies();
  await page.goto(answers[0]);
  await page.getByText("Not signed in").first().waitFor();
  await page.goto(`${g.url}/inbox`);
  await page.getByTestId("signin").waitFor();
  const { items } = await g.api("GET", "/sessions?principal=acme:ben");
  assert.deepEqual(items.map((s) => s.method), ["oidc"]);
});
