// Makes workflows and runs through the API for the tests. It has a fake model provider that answers at
// once, and a function that leases a step as a worker would.
import { createServer } from "node:http";
import { items } from "./ledger.mjs";

/**
 * Starts a fake model provider. configure adds it to a configuration as the model connection "local": pass
 * configure to [Gatehouse.start]. close stops it.
 */
export async function model() {
  const server = createServer((req, res) => {
    req.resume();
    req.on("end", () => {
      res.setHeader("Content-Type", "application/json");
      res.end(JSON.stringify({
        id: "chatcmpl-1", object: "chat.completion", created: 1, model: "small",
        choices: [{ index: 0, message: { role: "assistant", content: "the supplier's price has risen" },
          finish_reason: "stop" }],
        usage: { prompt_tokens: 812, completion_tokens: 41, total_tokens: 853 },
      }));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  const configure = (text) => `${text}
models:
  local:
    type: openai
    base_url: "http://127.0.0.1:${server.address().port}/v1"
    allow_private: true
    prices:
      small: {input_per_million: "150.00", output_per_million: "600.00", currency: USD}
`;
  return { configure, close };
}

export const reprice = `name: reprice
description: Asks a model why the price should change, asks people, and changes the price
workspace: pricing
on:
  webhook: {kind: generic, secret: supplier_hook}
  schedule: {cron: "0 6 * * 1-5", timezone: Europe/Berlin}
limits: {max_concurrency: 20, max_writes_per_run: 5, deadline: 72h}
input: {type: object, required: [sku], properties: {sku: {type: string}}}
steps:
  - id: read
    uses: model.local
    with: {model: small, max_tokens: 100, prompt: "Why would the price of \${{ input.sku }} change?"}
  - id: look
    needs: []
    uses: wait
    with: {for: 1s}
  - id: change
    needs: [read, look]
    uses: connector.shop.update
    action_type: price_change
    risk: med
    with:
      target: {entity_type: item, entity_ref: "\${{ input.sku }}", version: "\${{ input.version }}"}
      current_state: {price: "\${{ input.price }}", currency: USD}
      change: {price: "\${{ input.to }}"}
      rationale: "\${{ steps.read.output.text }}"
  - id: tell
    for_each: input.watchers
    max_items: 10
    uses: transform
    with: {who: "\${{ item }}", said: "the price is \${{ input.to }}"}
  - id: heard
    uses: wait
    with: {event: acknowledged, timeout: 48h}
output: {price: "\${{ input.to }}", heard: "\${{ steps.heard.output.data }}"}
`;

/** Stores a workflow's source as the administrator. */
export function apply(g, name, source) {
  return g.api("PUT", `/workflows/${name}`, { text: source });
}

/** Starts a run as the agent. */
export function start(g, name, input, more = {}) {
  return g.api("POST", `/workflows/${name}/runs`, { key: g.agent.key, token: null, body: { input, ...more } });
}

/** Waits until the run meets the condition; fails after a minute. */
export async function until(g, id, ok) {
  const end = Date.now() + 60_000;
  for (;;) {
    const run = await g.api("GET", `/runs/${id}`);
    if (ok(run)) return run;
    if (Date.now() > end) throw new Error(`after a minute, the run does not meet the condition: ${JSON.stringify(run)}`);
    await g.api("GET", `/runs/${id}?wait=1s`);
  }
}

/** Waits until the run has the status; fails after a minute. */
export const untilStatus = (g, id, wanted) => until(g, id, (r) => r.status === wanted);
export const step = (run, key) => run.steps.find((s) => s.key === key);

/** Starts a repricing of the item at an index, and waits until it needs an approval. */
export async function startAndAsk(g, i, to, more = {}) {
  const run = await start(g, "reprice", { sku: items[i].sku, version: items[i].version, price: items[i].price, to,
    watchers: ["bo", "cy"] }, more);
  return untilStatus(g, run.id, "waiting_approval");
}

/** Approves or rejects the proposal of a run's step with a person's key and edit token. */
export async function answer(g, person, run, key, decision = "approved") {
  const a = await g.action(step(run, key).action_id);
  const body = decision === "approved" ? { decision, digest: a.digest,
    confirm: a.approval.confirm?.value } : { decision, notes: "not this one" };
  return g.api("POST", `/proposed-actions/${a.id}/decide`, { key: person.key, token: person.edit_token, body });
}

/** Leases the only ready step of a tool, as a worker with a name. */
export async function lease(g, worker, tool, name = "night-shift") {
  const [leased] = await g.api("POST", "/steps/lease", { key: worker.key, token: null,
    body: { tools: [tool], max: 1, wait: "30s", worker: name } });
  return leased;
}

/** Fills the gate with a run in each relevant state. */
export async function runScene(g, bo) {
  const worker = await g.api("POST", "/principals", { body: { name: "night", kind: "agent",
    roles: ["worker", "proposer"] } });
  // Two versions, so that the workflow has a history.
  await apply(g, "reprice", reprice.replace("asks people, ", ""));
  await apply(g, "reprice", reprice);
  await apply(g, "sync-stock", `name: sync-stock
description: Copies the warehouse's count into the stock
steps:
  - {id: count, uses: worker.warehouse, retry: {max: 1, backoff: [1s]}}
  - {id: keep, uses: transform, with: {stock: "\${{ steps.count.output.stock }}"}}
`);
  const scene = { worker };
  scene.done = await startAndAsk(g, 30, "60.00");
  await answer(g, bo, scene.done, "change");
  await untilStatus(g, scene.done.id, "waiting");
  await g.api("POST", `/runs/${scene.done.id}/signals`, { body: { name: "acknowledged", data: { by: "the shop" } } });
  scene.done = await untilStatus(g, scene.done.id, "succeeded");
  scene.event = await startAndAsk(g, 31, "61.00", { trigger_ref: "mail-2041" });
  await answer(g, bo, scene.event, "change");
  scene.event = await untilStatus(g, scene.event.id, "waiting");
  scene.rejected = await startAndAsk(g, 32, "1.00");
  await answer(g, bo, scene.rejected, "change", "rejected");
  scene.rejected = await untilStatus(g, scene.rejected.id, "failed_terminal");
  const broken = await start(g, "sync-stock", {});
  for (let attempt = 0; attempt < 2; attempt++) {
    const leased = await lease(g, worker, "warehouse");
    await g.api("POST", `/steps/${leased.step.id}/fail`, {
      key: worker.key, token: null,
      body: { generation: leased.lease.generation, code: "unreachable", detail: "the warehouse does not answer",
        retryable: true },
    });
  }
  scene.failed = await untilStatus(g, broken.id, "failed_terminal");
  scene.canceled = await startAndAsk(g, 33, "62.00");
  await g.api("POST", `/runs/${scene.canceled.id}/cancel`, { body: { reason: "the supplier took it back" } });
  scene.canceled = await untilStatus(g, scene.canceled.id, "canceled");
  scene.asked = await startAndAsk(g, 34, "63.00");
  // The evidence is made shortly after the end.
  scene.done = await until(g, scene.done.id, (r) => r.evidence_sha256);
  return scene;
}
