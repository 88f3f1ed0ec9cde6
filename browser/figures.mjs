// Figures of the console with many pending actions, for docs/proof/performance.md:
//   node figures.mjs [PENDING]
// First byte by fetch, interactions by a real browser, on one machine.
import { launch, newPage, signIn } from "./lib/browser.mjs";
import { Gatehouse } from "./lib/gatehouse.mjs";
import { priced } from "./lib/stage.mjs";

const pending = Number(process.argv[2] ?? 100_000);
const g = await Gatehouse.start();
const browser = await launch();
const after = [];
const t = { after: (fn) => after.push(fn) };

function told(name, times) {
  times.sort((a, b) => a - b);
  const at = (p) => times[Math.min(times.length - 1, Math.ceil((times.length * p) / 100) - 1)].toFixed(1);
  console.log(`${name}: p50 ${at(50)} ms, p90 ${at(90)} ms, p99 ${at(99)} ms (${times.length})`);
}

try {
  await g.person("kim", "approver");
  let next = 0;
  const propose = async () => {
    while (next < pending) {
      const i = next++;
      await g.propose({ ...priced(i % 40, `${10 + (i % 90)}.50`), rationale: `nightly repricing, item ${i}` });
    }
  };
  await Promise.all(Array.from({ length: 64 }, propose));

  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("kim"));
  const cookies = await page.context().cookies();
  const headers = { Cookie: cookies.map((c) => `${c.name}=${c.value}`).join("; ") };
  const first = [];
  for (let i = 0; i < 300; i++) {
    const began = performance.now();
    const res = await fetch(`${g.url}/inbox`, { headers });
    first.push(performance.now() - began);
    await res.text();
  }
  told("first byte of the inbox", first);

  const loads = [];
  for (let i = 0; i < 20; i++) {
    const began = performance.now();
    await page.goto(`${g.url}/inbox`, { waitUntil: "domcontentloaded" });
    await page.getByTestId("row").first().waitFor();
    loads.push(performance.now() - began);
  }
  told("the inbox, shown", loads);

  const opened = [];
  const rows = await page.locator(".row").evaluateAll((all) => all.map((r) => r.dataset.id));
  for (const id of rows.slice(0, 40)) {
    const began = performance.now();
    await page.locator(`.row[data-id="${id}"] .row-link`).click();
    await page.locator(`.row.open[data-id="${id}"]`).waitFor();
    opened.push(performance.now() - began);
  }
  told("an item opened, shown", opened);

  const decided = [];
  for (const id of rows.slice(0, 20)) {
    await page.goto(`${g.url}/inbox?open=${id}`);
    const began = performance.now();
    await page.getByTestId("action").getByRole("button", { name: /^Change/ }).click();
    await page.locator(`#detail[data-done="${id}"]`).waitFor();
    decided.push(performance.now() - began);
  }
  told("an item approved, the next shown", decided);
} finally {
  for (const fn of after) await fn();
  await browser.close();
  await g.close();
}
