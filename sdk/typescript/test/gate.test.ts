/** Tests gated functions and the client against the real server, with a person who decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  APIError, Canceled, Client, Denied, Failed, Gate, NoEffect, Rejected, Unknown, Waiting, type Call, type ToolOptions,
} from "@gatehouse-dev/gatehouse";
import { ask, decide, outcome, pending } from "./world.ts";

type Refund = { order: string; amount?: string };

/** A gate with one function, and the calls that reached it. */
function world(more: { throws?: unknown; patience?: number; options?: Partial<ToolOptions<Refund>> } = {}) {
  const gate = new Gate({ patience: more.patience ?? 60 });
  const runs: Refund[] = [];
  const calls: Call[] = [];
  const refund = gate.tool(
    { action_type: "refund", target: "order/{order}", connector: "erp", operation: "refund", ...more.options,
      run: "function" },
    async (args: Refund, call) => {
      runs.push(args);
      calls.push(call);
      if (more.throws) throw more.throws;
      return { refunded: args.amount ?? "1.00" };
    },
  );
  return { gate, refund, runs, calls };
}

test("the function runs once approved, with the approved arguments, once", async () => {
  const { gate, refund, runs, calls } = world();
  const call = refund({ order: "T-1", amount: "12.50" });
  const action = await pending("T-1");
  assert.deepEqual(action.proposed_change, { order: "T-1", amount: "12.50" });
  assert.equal(runs.length, 0);
  await decide(action, "approved");
  assert.deepEqual(await call, { refunded: "12.50" });
  assert.deepEqual(await refund({ amount: "12.50", order: "T-1" }), { refunded: "12.50" });
  assert.deepEqual(await world().refund({ order: "T-1", amount: "12.50" }), { refunded: "12.50" });
  assert.deepEqual(runs, [{ order: "T-1", amount: "12.50" }]);
  assert.deepEqual([calls[0]?.actionId, calls[0]?.attempt], [action.id, 1]);
  assert.equal((await gate.client.get(action.id)).status, "applied");
});

test("two equal calls at once run the function once", async () => {
  const { refund, runs } = world();
  const calls = [refund({ order: "T-2" }), refund({ order: "T-2" })];
  await decide(await pending("T-2"), "approved");
  assert.deepEqual(await Promise.all(calls), [{ refunded: "1.00" }, { refunded: "1.00" }]);
  assert.equal(runs.length, 1);
});

test("a call with a key of its own is other work, and the same key with other arguments is refused", async () => {
  const { refund, runs } = world();
  const first = await refund.propose({ order: "T-3" }, { key: "run-1:call-1" });
  assert.equal((await refund.propose({ order: "T-3" }, { key: "run-1:call-1" })).id, first.id);
  assert.notEqual((await refund.propose({ order: "T-3" }, { key: "run-1:call-2" })).id, first.id);
  const { error } = await outcome(refund({ order: "T-3", amount: "9000.00" }, { key: "run-1:call-1" }));
  assert.ok(error instanceof APIError && error.code === "duplicate_key", String(error));
  assert.equal(runs.length, 0);
});

test("rejected, with the words of the person", async () => {
  const { refund, runs } = world();
  const call = outcome(refund({ order: "T-4" }));
  await decide(await pending("T-4"), "rejected", "ask the shop first");
  const { error } = await call;
  assert.ok(error instanceof Rejected);
  assert.deepEqual([error.notes, runs.length], [["ask the shop first"], 0]);
});

test("denied, with the reasons of the policy", async () => {
  const { error } = await outcome(world({ options: { action_type: "wipe" } }).refund({ order: "T-5" }));
  assert.ok(error instanceof Denied && error.reasons.length > 0);
});

test("what a failing function knows", async () => {
  const nameless = Object.assign(new Error(""), { name: "" });
  for (const [ref, throws, want] of [["T-6", new Error("broke"), Unknown], ["T-6a", nameless, Unknown],
    ["T-7", new NoEffect("closed"), Failed]] as const) {
    const { refund } = world({ throws });
    const call = outcome(refund({ order: ref }));
    await decide(await pending(ref), "approved");
    const { error } = await call;
    assert.ok(error instanceof want, String(error));
    assert.equal(error.cause, throws);
    assert.match(error.message, new RegExp(throws.message));
  }
});

test("a function that asks for another attempt gets one", async () => {
  const gate = new Gate({ patience: 60 });
  const attempts: number[] = [];
  const pay = gate.tool({ action_type: "refund", target: "order/{order}", connector: "erp", operation: "refund" },
    ({ order }: Refund, call) => {
    attempts.push(call.attempt);
    if (call.attempt === 1) throw new NoEffect("busy", { retry: true });
    return order;
  });
  const call = pay({ order: "T-8" });
  await decide(await pending("T-8"), "approved");
  assert.equal(await call, "T-8");
  assert.deepEqual(attempts, [1, 2]);
});

test("a revision for another target does not run", async () => {
  const { gate, refund, runs } = world();
  const call = outcome(refund({ order: "T-9" }));
  const { id, action_type, connector, operation, target } = await pending("T-9");
  const proposed_change = { order: "B-9", amount: "1.00" };
  await decide(await gate.client.revise(id, { action_type, connector, operation, target, proposed_change }),
    "approved");
  const { error } = await call;
  assert.ok(error instanceof Failed && error.code === "other_target", String(error));
  assert.equal(runs.length, 0);
});

test("patience, an aborted wait, and cancel", async () => {
  const { gate, refund } = world({ patience: 0.2 });
  const { error } = await outcome(refund({ order: "T-10" }));
  assert.ok(error instanceof Waiting);
  const stop = new AbortController();
  const waiting = outcome(world().refund({ order: "T-10" }, { signal: stop.signal }));
  stop.abort(new Error("enough"));
  assert.match(String((await waiting).error), /enough/);
  assert.equal((await gate.client.cancel(error.action.id)).status, "canceled");
  assert.ok((await outcome(refund({ order: "T-10" }))).error instanceof Canceled);
});

test("ask waits for the decision alone", async () => {
  const { refund, runs } = world();
  const [no, yes] = [refund.ask({ order: "T-13" }), refund.ask({ order: "T-14" })];
  await decide(await pending("T-13"), "rejected", "too much");
  assert.deepEqual([(await no).approved, (await no).reason], [false, "rejected: too much"]);
  await decide(await pending("T-14"), "approved");
  assert.deepEqual([(await yes).approved, runs.length], [true, 0]);
  await refund({ order: "T-14" });
  assert.deepEqual([(await refund.ask({ order: "T-14" })).approved, runs.length], [true, 1]);
  assert.ok((await outcome(world({ patience: 0.1 }).refund.ask({ order: "T-15" }))).error instanceof Waiting);
});

test("a question is answered where the agent waits", async () => {
  const { gate, refund } = world();
  const action = await refund.propose({ order: "T-20" });
  const asked: string[] = [];
  const waiting = gate.client.wait(action.id, {
    until: "decided", patience: 60,
    answer: (question) => {
      asked.push(question.text);
      return "the supplier raised it";
    },
  });
  await ask(action, "why <so> much?");
  let now = action;
  while ((now.comments ?? []).length < 2) now = await gate.client.get(action.id);
  await decide(now, "rejected", "no");
  assert.equal((await waiting).status, "rejected");
  assert.deepEqual(asked, ["why <so> much?"]);
  assert.deepEqual((now.comments ?? []).map((c) => [c.kind, c.text]), [
    ["question", "why <so> much?"], ["answer", "the supplier raised it"],
  ]);
});

test("a connector carries it out", async () => {
  const gate = new Gate({ patience: 60 });
  const setPrice = gate.tool(
    {
      action_type: "price_change", target: "item/{sku}", connector: "shop", operation: "update", run: "connector",
      current_state: () => ({ price: "10.00" }), rationale: ({ price }) => `cost is up, so ${price}`,
    },
    ({ price }: { sku: string; price: string }) => ({ price }),
  );
  const call = setPrice({ sku: "SKU-1", price: "12.00" });
  const action = await pending("SKU-1");
  assert.equal(action.rationale, "cost is up, so 12.00");
  await decide(action, "approved");
  assert.equal((await call).status, "applied");
});

test("a worker carries out what others propose", async (t) => {
  const { gate, runs } = world();
  const stop = new AbortController();
  t.after(() => stop.abort());
  const work = gate.work(stop.signal);
  const action = await gate.client.propose({
    action_type: "refund", connector: "erp", operation: "refund", target: { entity_type: "order", entity_ref: "T-11" },
    proposed_change: { order: "T-11", id: 9007199254740993n }, idempotency_key: "T-11",
  });
  await decide(action, "approved");
  assert.equal((await gate.client.wait(action.id, { patience: 30 })).status, "applied");
  stop.abort();
  await work;
  assert.deepEqual(runs, [{ order: "T-11", id: 9007199254740993n }]);
});

test("a wrong key", async () => {
  const { error } = await outcome(new Client({ key: "gth_nobody" }).get("act_1"));
  assert.ok(error instanceof APIError);
  assert.deepEqual([error.code, error.status], ["unauthenticated", 401]);
});

test("an id is one segment of the path", async () => {
  const { error } = await outcome(new Client().get(".."));
  assert.ok(error instanceof APIError && error.code === "not_found", String(error));
});

test("arguments that are no JSON are refused before anything is proposed", async () => {
  const { refund } = world();
  for (const wrong of [new Date(), Number.NaN, () => 1, "\ud800", 5n, [undefined], new Map()]) {
    const { error } = await outcome(refund({ order: "T-12", amount: wrong as string }));
    assert.ok(error instanceof TypeError, String(error));
  }
});
