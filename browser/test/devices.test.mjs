// A person adds this browser to their devices, and it shows a notification while another page is
// open. The service worker, its permission and the notification are real. Headless Chromium has no
// push service, so PushManager.subscribe is a stand-in, and the DevTools protocol delivers the
// message; internal/notify tests what a push service gets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";
import { everywhere, newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage({
  whole: true,
  configure: (text) => `${text}
channels:
  phones: {kind: webpush, contact: "mailto:ops@example.com"}
`,
});

/** Stands in for the browser's push service, with keys of the browser. */
function subscribeHere() {
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    const pair = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
    const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const subscription = {
      endpoint: "https://push.example.com/send/1", expirationTime: null,
      keys: { p256dh: text(await crypto.subtle.exportKey("raw", pair.publicKey)),
        auth: text(crypto.getRandomValues(new Uint8Array(16))) },
    };
    window.subscribed = { userVisibleOnly, key: [...applicationServerKey] };
    return { ...subscription, options: { applicationServerKey }, toJSON: () => subscription };
  };
}

const until = async (what, ask) => {
  for (let left = 600; left > 0; left--) {
    const got = await ask();
    if (got) return got;
    await rest(50);
  }
  assert.fail(what);
};

test("a person adds a device, which shows a notification and opens its item", limit, async (t) => {
  const page = await newPage(browser, t);
  const context = page.context();
  await context.grantPermissions(["notifications"], { origin: g.url });
  await page.addInitScript(subscribeHere);
  await g.person("ana", "approver");
  await signIn(page, await g.setupLink("ana"));
  const devtools = await context.newCDPSession(page);
  const registrations = new Map();
  devtools.on("ServiceWorker.workerRegistrationUpdated", (e) => {
    for (const r of e.registrations) registrations.set(r.scopeURL, r.registrationId);
  });
  await devtools.send("ServiceWorker.enable");

  await page.goto(`${g.url}/settings`);
  await page.getByRole("navigation", { name: "Settings" }).getByText("Notifications").click();
  await page.getByTestId("notify-device").click();
  const device = page.getByTestId("devices").getByRole("listitem");
  await device.waitFor();
  assert.match(await device.innerText(), /Chrome on Linux[\s\S]*nothing sent yet · through push\.example\.com/);
  const worker = await until("no service worker", () => context.serviceWorkers()[0]);
  assert.equal(worker.url(), `${g.url}/service-worker.js`);

  await everywhere(page, "devices");

  // The message of a question, as internal/notify/webpush sends it.
  const a = await g.propose(priced(0, "12.50"));
  const registrationId = await until("no registration", () => registrations.get(`${g.url}/`));
  const deliver = (data) => devtools.send("ServiceWorker.deliverPushMessage", { origin: g.url, registrationId, data });
  const item = `${g.url}/actions/${a.id}`;
  const message = JSON.stringify({
    web_push: 8030, notification: { title: "An approval waits for you", body: "Change price\nRisk: L3", navigate: item,
      tag: "t" },
  });
  const shown = () => worker.evaluate(async () =>
    (await self.registration.getNotifications()).map(({ title, body, tag, data, actions }) =>
      ({ title, body, tag, data, actions })));
  // A busy browser may lose a message while the worker starts; repeated ones show one notification, by their tag.
  await until("no notification", async () => {
    await deliver(message);
    await rest(500);
    return (await shown()).length === 1;
  });
  assert.deepEqual(await shown(), [{
    title: "An approval waits for you", body: "Change price\nRisk: L3", tag: "t", data: { navigate: item }, actions: [],
  }]);

  // A click opens the item, or the inbox for an address of another server. The browser opens a window
  // only after a real click, so the test records the address instead.
  const click = (navigate) => worker.evaluate(async (navigate) => {
    let opened = "";
    self.clients.openWindow = async (url) => { opened = url; };
    await self.registration.showNotification("x", { tag: "x", data: { navigate } });
    const [notification] = await self.registration.getNotifications({ tag: "x" });
    const event = new NotificationEvent("notificationclick", { notification });
    let work;
    Object.defineProperty(event, "waitUntil", { value: (promise) => { work = promise; } });
    self.dispatchEvent(event);
    await work;
    return [opened, (await self.registration.getNotifications({ tag: "x" })).length];
  }, navigate);
  assert.deepEqual(await click(item), [item, 0]);
  assert.deepEqual(await click("https://elsewhere.example/"), [`${g.url}/inbox`, 0]);
  assert.deepEqual(await click(""), [`${g.url}/inbox`, 0]);
  assert.equal((await g.action(a.id)).status, "pending");

  // A message that cannot be read is shown as such, as browsers require.
  await until("no notification of an unreadable message", async () => {
    await deliver("not JSON");
    await rest(500);
    return (await shown()).some((n) => n.title === "Gatehouse");
  });

  await page.getByTestId("remove-device").locator("xpath=ancestor::details").locator("summary").click();
  await page.getByTestId("remove-device").getByRole("checkbox").check();
  await page.getByTestId("remove-device").getByRole("button").click();
  await page.getByText("None.").waitFor();
});

test("the page says why a device cannot be added", limit, async (t) => {
  const page = await newPage(browser, t);
  await g.person("bo", "approver");
  await signIn(page, await g.setupLink("bo"));
  await page.addInitScript(() => { Notification.requestPermission = async () => "denied"; });
  await page.goto(`${g.url}/settings/notifications`);
  await page.getByTestId("notify-device").click();
  await page.getByText("does not allow notifications").waitFor();
  await page.addInitScript(() => { delete window.PushManager; });
  await page.reload();
  await page.getByTestId("notify-device").click();
  await page.getByText("This browser cannot get notifications").waitFor();
});

test("without scripts, the page says what needs one", limit, async (t) => {
  const page = await newPage(browser, t, { javaScriptEnabled: false });
  await g.person("cy", "approver");
  await signIn(page, await g.setupLink("cy"), `${g.url}/settings/notifications`);
  // This way of switching scripts off leaves noscript elements unrendered.
  assert.match(await page.locator("noscript").textContent(), /Adding this device needs JavaScript/);
  assert.ok(!(await page.getByTestId("notify-device").isVisible()));
});
