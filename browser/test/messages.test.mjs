// Sent messages with their recipients: a channel that works and one that fails, in both themes and
// on a phone.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";
import { everywhere, newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

// A receiver that refuses requests to /refused.
const received = [];
const receiver = createServer(async (request, response) => {
  received.push(`${request.url} ${await text(request)}`);
  response.writeHead(request.url === "/refused" ? 500 : 204).end();
});
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
after(() => receiver.close());
const at = `http://127.0.0.1:${receiver.address().port}`;

const { g, browser } = await stage({
  configure: (text) => `${text}
channels:
  works: {kind: webhook, url: "${at}/in", secret: hook, allow_private: true}
  refused: {kind: webhook, url: "${at}/refused", secret: hook, allow_private: true}
secrets: {hook: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}
`,
});

test("an administrator sees the channels and the messages, and tries them", limit, async (t) => {
  const page = await newPage(browser, t);
  await g.propose(priced(0, "11.00"));
  await g.person("ana", "admin");
  await signIn(page, await g.setupLink("ana"), `${g.url}/settings/messages`);
  await page.getByTestId("test-works").click();
  await page.getByText("The channel works accepted the test").waitFor();
  for (let i = 0; i < 3; i++) {
    await page.goto(`${g.url}/settings/messages`);
    await page.getByTestId("test-refused").click();
    await page.getByText("The channel refused did not accept the test").waitFor();
  }
  await page.locator('[data-channel="refused"] [data-status="failing"]').waitFor();
  await page.locator('[data-channel="works"] [data-status="works"]').waitFor();
  await page.locator('[data-kind="asked"] [data-status="delivered"]').first().waitFor();
  await everywhere(page, "messages");
  const tries = (to) => received.filter((r) => r.startsWith(`${to} `) && r.includes('"gatehouse.test"')).length;
  assert.deepEqual([tries("/in"), tries("/refused")], [1, 3]);
  await page.goto(`${g.url}/settings/messages?show=failed`);
  await page.getByTestId("retry").first().click();
  await page.waitForURL(`${g.url}/settings/messages?show=failed`);
  for (let left = 300; tries("/refused") < 4 && left > 0; left--) await rest(100);
  assert.equal(tries("/refused"), 4, "the retry calls the receiver");
});
