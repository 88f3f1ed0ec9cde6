// A person adds a connector in a browser without scripts: adds and removes rows, tests and proposes the connector,
// and after an approval by somebody else tests a change of it. Then the form with scripts, by axe.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { everywhere, newPage, signIn } from "../lib/browser.mjs";
import { limit, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("eve", "admin");
const ana = await g.person("ana", "approver");
const asked = [];
const target = createServer((req, res) => {
  asked.push(`${req.method} ${req.url}`);
  res.end("{}");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => target.once("listening", resolve));
target.unref();

test("a connector from the catalogue to its use", limit, async (t) => {
  const page = await newPage(browser, t, { javaScriptEnabled: false });
  await signIn(page, await g.setupLink("eve"), `${g.url}/settings/connectors`);
  const key = (path) => page.locator(`[name="key.${path}"]`);
  const add = (path) => page.getByTestId(`add-${path}`).click();
  const tried = async (want) => {
    await page.getByTestId("try-connector").click();
    await page.getByTestId("notice").filter({ hasText: want }).waitFor();
  };

  await page.getByTestId("catalogue").getByRole("link", { name: "http", exact: true }).click();
  await page.getByTestId("doc-link").click();
  await page.getByTestId("doc").getByRole("heading", { name: "Let agents call an API" }).waitFor();
  await page.goBack();

  await page.locator("[name=name]").fill("crm");
  await key("base_url").fill(`http://127.0.0.1:${target.address().port}`);
  await add("operations");
  await page.locator('[name="key.operations.0"]:focus').waitFor();
  await key("operations.0").fill("update");
  await key("operations.0.method").selectOption("PUT");
  await key("operations.0.path").fill("items");
  await add("operations");
  await key("operations.1").fill("wrong");
  await page.getByTestId("remove-operations.1").click();
  await key("operations.1").waitFor({ state: "detached" });
  await page.locator('[data-row="operations.0"] > .more-keys > summary').click();
  await add("operations.0.outcomes");
  await key("operations.0.outcomes.0.status").fill("409\n422");
  await key("operations.0.outcomes.0.outcome").selectOption("terminal");
  await page.locator("form > .more-keys > summary").click();
  await page.locator("summary", { hasText: "probe" }).click();
  await key("probe.path").fill("/me");

  await tried(/internal address; set allow_private/);
  await key("allow_private").check();
  await tried(/operations\.update\.path: must begin with a slash/);
  assert.match(await page.getByTestId("fault").innerText(), /must begin with a slash/);
  assert.equal(await key("operations.0.path").getAttribute("aria-invalid"), "true");
  await key("operations.0.path").fill("/items");
  await tried(/inside the network.*tested after approval/s);
  assert.deepEqual(asked, []);
  assert.equal(await key("operations.0.outcomes.0.status").inputValue(), "409\n422");

  await key("base_url").press("Enter"); // proposes, as the first button does
  await page.waitForURL(/\/actions\/act_[0-9a-f]+$/);
  const action = await g.action(page.url().split("/").pop());
  assert.match(action.proposed_change.source, /status: \["409", "422"\]|status: \['409', '422'\]/);
  await g.api("POST", `/proposed-actions/${action.id}/decide`, {
    key: ana.key, token: ana.edit_token,
    body: { decision: "approved", digest: action.digest, confirm: action.approval.confirm?.value },
  });
  assert.equal((await g.finished(action.id)).status, "applied");
  // The server loads the applied version a moment after the action is applied.
  do await page.goto(`${g.url}/settings/connectors`); while (!(await page.locator('[data-id="crm"]').count()));
  await page.locator('[data-id="crm"]').getByRole("link", { name: "Change the connector crm" }).click();
  await key("operations.0.path").fill("/things");
  await tried(/crm can be used: its target answers/);
  assert.ok(asked.includes("GET /me"), `${asked}`);
  assert.equal(await key("operations.0.path").inputValue(), "/things");
});

test("the form and the documentation", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("eve"), `${g.url}/settings/connectors/new?type=http`);
  for (const path of ["operations", "operations.0.outcomes", "operations.0.headers", "headers"]) {
    await page.locator("details").evaluateAll((all) => all.forEach((el) => { el.open = true; }));
    await page.getByTestId(`add-${path}`).click();
  }
  await page.locator("details:not(.menu, .pop)").evaluateAll((all) => all.forEach((el) => { el.open = true; }));
  await everywhere(page, "http, unfolded");
  await page.goto(`${g.url}/docs/connectors/jira`);
  await everywhere(page, "a page of the documentation");
});
