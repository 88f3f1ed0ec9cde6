// A store with an example of everything, made through the API.
import { items } from "./ledger.mjs";

const target = (i) => ({ entity_type: "item", entity_ref: items[i].sku, version: items[i].version });

/**
 * Fills the gate; ana administers, bo and cy approve. Before each decision, fill
 * calls think with the decision's number and waits for it.
 */
export async function fill(g, think = async () => {}) {
  await g.person("ana", "admin");
  await g.person("bo", "approver", "operator");
  await g.person("cy", "approver");
  const scene = {};
  scene.price = await g.propose({
    evaluations: [
      { name: "schema_validation", kind: "deterministic", result: "pass", confidence: 1, details: "" },
      { name: "margin_check", kind: "probabilistic", result: "warn", confidence: 0.7,
        details: "margin falls below 18 %" },
    ],
  });
  scene.text = await g.propose({
    action_type: "price_change",
    target: target(1),
    current_state: { description: "" },
    proposed_change: { description: "Letter box of birch\n34 x 22 x 10 cm\noiled\nwith lock and two keys\n" },
    rationale: "the supplier's data sheet of March",
  });
  scene.bulk = await g.propose({
    action_type: "bulk_delete",
    operation: "bulk_delete",
    target: { entity_type: "item", entity_refs: [items[2].sku, items[3].sku, items[4].sku] },
    current_state: undefined,
    proposed_change: {},
    rationale: "discontinued",
  });
  scene.create = await g.propose({
    action_type: "create_item",
    operation: "insert",
    target: { entity_type: "item", entity_ref: "SKU-9001" },
    current_state: undefined,
    proposed_change: { name: "Copper washer 8 mm", price: "0.12", cost: "0.05", currency: "USD", stock: 5000,
      version: 1 },
    rationale: "ordered by two customers, not in the catalogue",
  });
  scene.prices = [];
  for (let i = 5; i < 17; i++) {
    scene.prices.push(await g.propose({
      target: target(i),
      current_state: { price: items[i].price, currency: "USD" },
      proposed_change: { price: `${i + 10}.50` },
      rationale: "competitor's price of today",
    }));
  }
  // The policy allows this one without people.
  scene.note = await g.propose({ target: target(17), action_type: "note", current_state: { tag: "" },
    proposed_change: { tag: "oak" } });
  scene.safe = await g.propose({ target: target(18), action_type: "spec_update", current_state: { tag: "" },
    proposed_change: { tag: "birch" } });
  scene.done = [];
  for (let i = 20; i < 29; i++) {
    const a = await g.propose({ target: target(i), current_state: { price: items[i].price, currency: "USD" },
      proposed_change: { price: `${i}.00` } });
    scene.done.push(a);
  }
  for (const [i, a] of scene.done.entries()) {
    await think(i);
    if (i % 3 === 0) await g.decide(a.id, { decision: "rejected", notes: "wrong currency" });
    else await g.decide(a.id, { decision: "approved", digest: a.digest });
  }
  // This one becomes a dead letter, because the customer's address already exists.
  const dead = await g.propose({
    action_type: "create_customer",
    risk_level: 3,
    operation: "insert",
    target: { entity_type: "customer", entity_ref: "C-9001" },
    current_state: undefined,
    proposed_change: { name: "Esther Haas", email: "c0001@example.com", country: "US", currency: "USD", version: 1 },
    rationale: "a customer signed up",
  });
  await think(scene.done.length);
  await g.decide(dead.id, { decision: "approved", digest: dead.digest,
    confirm: dead.approval.confirm?.value ?? dead.target.entity_ref });
  scene.dead = dead;
  return scene;
}
