// Shows notifications, and opens their pages. It stores nothing, decides nothing, and does not
// touch the requests of pages.

const home = () => new URL("/inbox", self.location.origin);

self.addEventListener("push", (event) => {
  let n = {};
  try {
    n = event.data.json().notification ?? {};
  } catch {
    // A browser requires that every message is shown, readable or not.
  }
  event.waitUntil(self.registration.showNotification(n.title || "Gatehouse", {
    body: n.body ?? "", tag: n.tag ?? "", data: { navigate: n.navigate ?? "" }, icon: "/icon.png",
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.navigate));
});

async function open(to) {
  let url = home();
  try {
    const wanted = new URL(to);
    if (wanted.origin === url.origin) url = wanted;
  } catch {
    // no address: the inbox
  }
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const shown = pages.find((page) => page.url === url.href);
  return shown ? shown.focus() : self.clients.openWindow(url.href);
}
