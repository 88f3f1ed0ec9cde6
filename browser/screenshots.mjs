// Screenshots of every page, light and dark, desktop and phone, for docs/.
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { desktop, launch, phone, signIn } from "./lib/browser.mjs";
import { Gatehouse } from "./lib/gatehouse.mjs";
import { model, runScene } from "./lib/runs.mjs";
import { fill } from "./lib/scene.mjs";

const out = process.argv[2] ?? join(dirname(dirname(fileURLToPath(import.meta.url))), "docs", "screenshots");
await mkdir(out, { recursive: true });

const provider = await model();
const g = await Gatehouse.start(provider);
const browser = await launch();
try {
  // People take different times to decide, which Insights shows.
  const scene = await fill(g, (i) => rest(300 * (1 + ((i * 7) % 10))));
  await g.api("POST", "/tenants", { body: { id: "acme" } });
  const runs = await runScene(g, await g.person("dee", "approver"));
  const context = await browser.newContext({ viewport: desktop });
  const page = await context.newPage();
  // eve sees every page and every form.
  await g.person("eve", "admin", "proposer");
  await signIn(page, await g.setupLink("eve"));
  const pages = {
    inbox: "/inbox?tab=team",
    action: `/inbox?tab=team&open=${scene.price.id}`,
    "action-l5": `/actions/${scene.bulk.id}`,
    edit: `/actions/${scene.price.id}/edit`,
    runs: "/runs",
    run: `/runs/${runs.done.id}`,
    "run-waiting": `/runs/${runs.asked.id}`,
    workflows: "/workflows",
    workflow: "/workflows/reprice",
    queues: "/runs/queues",
    dispatch: "/dispatch",
    health: "/dispatch?tab=health",
    bulk: `/inbox/bulk?${[scene.price, scene.text, ...scene.prices.slice(0, 4), scene.bulk].map((a) => `pick=${a.id}`).join("&")}`,
    dead: `/actions/${scene.dead.id}`,
    policies: "/policies",
    "policy-edit": "/policies/edit",
    "policy-explain": `/policies/explain?action=${scene.price.id}`,
    audit: "/audit",
    insights: "/insights",
    settings: "/settings",
    principals: "/settings/principals",
    principal: "/settings/principals/bo",
    "principal-new": "/settings/principals/new",
    providers: "/settings/sign-in",
    connectors: "/settings/connectors",
    "connector-new": "/settings/connectors/new?type=http",
    doc: "/docs/connectors/jira",
    secrets: "/settings/secrets",
    grants: "/settings/grants",
    mandates: "/settings/mandates",
    devices: "/settings/notifications",
    messages: "/settings/messages",
    tenants: "/settings/tenants",
    help: "/help",
  };
  for (const [theme, colorScheme] of [["light", "light"], ["dark", "dark"]]) {
    for (const [device, viewport] of [["desktop", desktop], ["phone", phone]]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize(viewport);
      const stranger = await browser.newContext({ viewport, colorScheme });
      const door = await stranger.newPage();
      await door.goto(`${g.url}/signin`);
      await door.screenshot({ path: join(out, `signin-${device}-${theme}.png`) });
      await door.goto(await g.setupLink("cy"));
      await door.screenshot({ path: join(out, `setup-${device}-${theme}.png`) });
      await stranger.close();
      for (const [name, path] of Object.entries(pages)) {
        const res = await page.goto(g.url + path);
        if (!res.ok()) {
          console.error(`${path}: ${res.status()}`);
          continue;
        }
        await page.screenshot({ path: join(out, `${name}-${device}-${theme}.png`) });
      }
    }
  }
} finally {
  await browser.close();
  await g.close();
  provider.close();
}
