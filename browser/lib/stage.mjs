// A server and a browser for each test file.
import { after } from "node:test";
import { launch } from "./browser.mjs";
import { Gatehouse } from "./gatehouse.mjs";
import { items } from "./ledger.mjs";

/** Starts both, and ends them after the file's tests; see [Gatehouse.start] and [launch]. */
export async function stage(options) {
  const [g, browser] = await Promise.all([Gatehouse.start(options), launch(options)]);
  after(async () => {
    await browser.close();
    await g.close();
  });
  return { g, browser };
}

/** Ends a test that hangs, instead of the whole run. */
export const limit = { timeout: 900_000 };

/** A price change of the ledger's item at an index, to the given price. */
export function priced(i, price, more = {}) {
  return {
    target: { entity_type: "item", entity_ref: items[i].sku, version: items[i].version },
    current_state: { price: items[i].price, currency: "USD" },
    proposed_change: { price },
    ...more,
  };
}
