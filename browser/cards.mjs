// Pictures of honest and hostile cards, one file each, in the folder that the argument names. Readers who
// know nothing else say what changes, who says so, and what happens on approval.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { desktop, launch, signIn } from "./lib/browser.mjs";
import { elsewhere, put } from "./lib/elsewhere.mjs";
import { Gatehouse } from "./lib/gatehouse.mjs";
import { items } from "./lib/ledger.mjs";
import { apply, start, step, untilStatus } from "./lib/runs.mjs";
import { priced } from "./lib/stage.mjs";

const out = process.argv[2];
if (!out) throw new Error("usage: node cards.mjs FOLDER");
await mkdir(out, { recursive: true });

const g = await Gatehouse.start(await elsewhere());
const ana = await g.person("ana", "approver", "operator", "admin");
await g.person("bo", "approver");
const active = await g.api("GET", "/policies/active");
await g.policy(active.source.replace(/^version: 1$/m, "version: 1\nmandates: {up_to: 3, max_window: 72h}"));

const thing = (ref, before, after, more = {}) =>
  g.propose(put(ref, { action_type: "price_change", current_state: before, proposed_change: after, ...more }));
const item = (more) => g.propose({ current_state: undefined, ...more });

/** Approves an action and waits for its outcome. */
async function applied(a) {
  await g.decide(a.id, { decision: "approved", digest: a.digest, confirm: a.approval.confirm?.value });
  return g.finished(a.id);
}

const address = { street: "Elm Street 4", city: "Ghent", zip: "9000", country: "BE" };
const wide = Object.fromEntries(
  Array.from({ length: 59 }, (_, i) => [`field_${String(i).padStart(2, "0")}`, `value ${i}`]),
);
const lines = [{ sku: "A-1", quantity: 2, price: "10.00" }, { sku: "B-2", quantity: 1, price: "25.00" }];

const cards = {
  price: () => g.propose(priced(0, "12.50", { rationale: "supplier raised cost by 25 %" })),
  conflict: () => g.propose(priced(1, "36.00", {
    current_state: { price: "30.00", currency: "USD" },
    rationale: "a rise of 20 %",
  })),
  create: () => item({
    action_type: "create_item",
    operation: "insert",
    target: { entity_type: "item", entity_ref: "SKU-9001" },
    proposed_change: {
      name: "Copper washer 8 mm", price: "0.12", cost: "0.05", currency: "USD", stock: 5000, version: 1,
    },
    rationale: "ordered by two customers, not in the catalogue",
  }),
  "bulk-delete": () => item({
    action_type: "bulk_delete",
    operation: "bulk_delete",
    target: { entity_type: "item", entity_refs: [2, 3, 4].map((i) => items[i].sku) },
    proposed_change: {},
    rationale: "tidies up the catalogue",
  }),
  claim: () => thing(
    "invoice-88",
    undefined,
    { amount: "9800.00", currency: "USD" },
    { magnitude: { amount: "98.00", currency: "USD" }, rationale: "a refund of 98.00 USD" },
  ),
  iban: () => thing(
    "vendor-7",
    { name: "Acme", iban: "DE89370400440532013000" },
    { name: "Acme", iban: "DE89370400440532031000" },
    { rationale: "confirms the vendor's bank account" },
  ),
  space: () => thing("code-3", { code: "123" }, { code: "123 " }, { rationale: "corrects the code" }),
  note: () => item({
    action_type: "delete_item",
    operation: "delete",
    target: { entity_type: "item", entity_ref: items[5].sku, version: items[5].version },
    proposed_change: {},
    rationale: "Only adds a note to the item. Nothing is deleted. Approved by the CFO on Monday.",
  }),
  verified: () => g.propose(priced(6, "9.35", {
    rationale: "✓ verified by Gatehouse",
    evaluations: [{
      name: "✓ Verified by Gatehouse",
      kind: "deterministic",
      result: "pass",
      confidence: 1,
      details: "read from shop ✓",
    }],
  })),
  bidi: () => thing(
    "vendor-8",
    { payee: "Acme Ltd" },
    { payee: "Acme \u202edtL" },
    { rationale: "spelling of \u202ethe name" },
  ),
  rewritten: () => thing(
    "vendor-9",
    { ...wide, limit: "1000.00" },
    { ...wide, limit: "100000.00" },
    { rationale: "synchronises the vendor" },
  ),
  currency: () => thing(
    "quote-5",
    { amount: "480", currency: "JPY" },
    { amount: "480", currency: "USD" },
    { rationale: "sets the currency" },
  ),
  lines: () => thing(
    "order-12",
    { lines },
    { lines: [...lines, { sku: "Z-9", quantity: 1, price: "999.00" }] },
    { rationale: "updates the order" },
  ),
  type: () => thing("stock-4", { quantity: 100 }, { quantity: "100" }, { rationale: "cleans the data" }),
  role: () => thing(
    "user-31",
    { name: "Kim", role: "viewer" },
    { name: "Kim", role: "admin" },
    { rationale: "updates the profile" },
  ),
  address: () => thing(
    "customer-2",
    address,
    { ...address, street: "Elm Street 44", city: "Gent" },
    { rationale: "as the customer wrote" },
  ),
  fall: () => g.propose(priced(8, "9.30", { rationale: "clearance" })),
  plan: async () => {
    const plan = {
      goal: "Pay back the customers of the recalled lamp",
      for: "72h",
      per_day: { count: 10 },
      steps: [{
        action_type: "refund",
        connector: "shop",
        operation: "update",
        entity_type: "refund",
        when: "change.amount <= 50",
        count: 40,
        amounts: [{ amount: 2000, currency: "EUR" }],
      }],
    };
    return g.api("POST", "/mandates", { key: g.agent.key, token: null, body: plan });
  },
  question: async () => {
    await apply(g, "offer", `name: offer
input: {type: object, properties: {customer: {type: string}}}
steps:
  - {id: price, uses: transform, with: {net: "1180.00", currency: EUR}}
  - id: ask
    needs: [price]
    uses: approval
    with:
      title: "Send this offer to \${{ input.customer }}?"
      context: "\${{ steps.price.output }}"
`);
    const run = await untilStatus(g, (await start(g, "offer", { customer: "Brand & Sons" })).id, "waiting_approval");
    return g.action(step(run, "ask").action_id);
  },
  edited: async () => {
    const a = await g.propose(priced(10, "12.00", { rationale: "competitor's price" }));
    const edit = { digest: a.digest, note: "the agreed price", patch: { price: "9.50" } };
    return g.api("POST", `/proposed-actions/${a.id}/edit`, { key: ana.key, token: ana.edit_token, body: edit });
  },
  undo: async () => {
    const a = await applied(await g.propose(priced(11, "31.50", { rationale: "list price" })));
    return g.api("POST", `/proposed-actions/${a.id}/reverse`, { body: { rationale: "wrong supplier" } });
  },
};

const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { ...desktop, height: 1400 } });
  const page = await context.newPage();
  await signIn(page, await g.setupLink("bo"));
  let n = 0;
  for (const [name, propose] of Object.entries(cards)) {
    const a = await propose();
    await page.goto(`${g.url}/actions/${a.id}`);
    await page.screenshot({ path: join(out, `${String(++n).padStart(2, "0")}-${name}.png`) });
  }
} finally {
  await browser.close();
  await g.close();
}
