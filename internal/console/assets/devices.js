// Subscribes this browser to notifications, on the page of the person's devices.

import { post, problem } from "./console.js";

const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer ?? [])));

const unable = () =>
  new Error("This browser cannot get notifications. On an iPhone or iPad, add Gatehouse to the home " +
  "screen first. Elsewhere, the page has to be opened over https.");

// A subscription belongs to the key of one tenant: one for another key is replaced.
async function subscribe(registration, key) {
  const old = await registration.pushManager.getSubscription();
  if (old && encode(old.options.applicationServerKey) === encode(key)) return old;
  await old?.unsubscribe();
  return registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

document.addEventListener("click", async (e) => {
  const button = e.target.closest?.("[data-notify-device]");
  if (!button || button.disabled) return;
  button.disabled = true;
  try {
    if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) throw unable();
    // Some browsers ask only while they handle the click, so this comes first.
    if (await Notification.requestPermission() !== "granted") {
      throw new Error("The browser does not allow notifications from this site. You can change that in its settings.");
    }
    await navigator.serviceWorker.register("/service-worker.js");
    const registration = await navigator.serviceWorker.ready;
    const { key } = await post(button.dataset.notifyDevice + "/key");
    const subscription = await subscribe(registration, decode(key));
    await post(button.dataset.notifyDevice + "/devices", JSON.stringify(subscription.toJSON()));
    location.reload();
  } catch (err) {
    problem(button.parentElement, new Error(err.message));
    button.disabled = false;
  }
});
