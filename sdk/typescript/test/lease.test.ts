/** Tests leases and reports against a fake gate, whose answers each test chooses. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, test } from "node:test";
import {
  APIError, Client, Gate, NoEffect, Unknown, Waiting, type Call, type PushFailure,
} from "@gatehouse-dev/gatehouse";
import { outcome } from "./world.ts";

/** Status 0 breaks the connection. */
type Answer = { status?: number; headers?: Record<string, string>; body?: unknown };

const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

const busy: Answer = { status: 503, body: { code: "busy", retryable: true } };
const broken: Answer = { status: 0 };

/** An approved action, which can be leased once. The routes are named by the last part of their path. */
async function world(routes: Record<string, (body: Record<string, unknown>) => Answer> = {}, patience = 20) {
  const seen: [string, Record<string, unknown>][] = [];
  let action: object = { id: "act_1", status: "approved" };
  const leased = [{ push: { id: "psh_1", connector: "c" }, lease: { generation: 1 }, operation: "o", action_id: "act_1",
    idempotency_key: "k", attempt: 1, target: { entity_type: "t", entity_ref: "" }, proposed_change: {} }];
  const finish = (status: string, more = {}): Answer => {
    action = { id: "act_1", status, ...more };
    return {};
  };
  const all: Record<string, (body: Record<string, unknown>) => Answer> = {
    "proposed-actions": () => ({ body: action }), act_1: () => ({ body: action }),
    lease: () => ({ body: leased.splice(0) }), complete: () => finish("applied"), ...routes,
  };
  const server = createServer((request, response) => {
    const name = /([^/?]+)(?:\?|$)/.exec(request.url ?? "")?.[1] ?? "";
    let body = "";
    request.on("data", (chunk) => (body += chunk)).on("end", () => {
      const parsed = JSON.parse(body || "{}");
      seen.push([name, parsed]);
      const { status = 200, headers = {}, body: answer = {} } = all[name]?.(parsed) ?? {};
      if (status === 0) return void request.socket.destroy();
      const type = status < 300 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "Content-Type": type, ...headers }).end(JSON.stringify(answer));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  // Without retries, so that each failure alone would end a call.
  const client = new Client({ url: `http://127.0.0.1:${port}`, key: "gth_x", retries: 0 });
  const gate = new Gate({ client, patience, lease: 1 });
  let fn: (call: Call) => unknown;
  const pay = gate.tool(
    { action_type: "x", target: "t", connector: "c", operation: "o" }, (_: object, call) => fn(call));
  return {
    finish, leased, gate,
    count: (name: string): number => seen.filter(([each]) => each === name).length,
    body: (name: string): Record<string, unknown> => seen.find(([each]) => each === name)?.[1] ?? {},
    run(body: typeof fn) {
      fn = body;
      return outcome(pay({}));
    },
  };
}

test("a result is reported as soon as the gate answers again", async () => {
  const before: number[] = [];
  const w = await world({ complete: () => {
    before.push(w.count("heartbeat"));
    return w.count("heartbeat") < Number(before[0]) + 2 ? busy : w.finish("applied");
  } });
  assert.deepEqual(await w.run(() => "paid"), { result: "paid" });
  assert.deepEqual(w.body("lease").operations, { c: ["o"] }); // other programs carry out the rest
});

test("a server without operations is asked without them", async () => {
  const w = await world({ lease: (body) => body.operations
    ? { status: 400, body: { code: "malformed", retryable: false } } : { body: w.leased.splice(0) } });
  assert.deepEqual(await w.run(() => "paid"), { result: "paid" });
});

test("a result is not reported after the end of its lease", async () => {
  const w = await world({ heartbeat: () => broken, fail: () => broken });
  const { error } = await w.run(() => {
    w.finish("unknown", { failure: {} });
    throw new Error("broke");
  });
  assert.ok(error instanceof Unknown);
  assert.ok(w.count("fail") > 1);
});

test("a refused report is not repeated", async () => {
  const w = await world({ complete: () => {
    w.finish("unknown", { failure: {} });
    return { status: 409, body: { code: "lease_lost", retryable: false } };
  } });
  assert.ok((await w.run(() => "paid")).error instanceof Unknown);
  assert.equal(w.count("complete"), 1);
});

test("another process applies what failed here", async () => {
  const receipt = { response_metadata: { result: "paid there" } };
  const w = await world({ fail: () => w.finish("applied", { receipt }) });
  assert.deepEqual(await w.run(() => {
    throw new NoEffect("busy", { retry: true });
  }), { result: "paid there" });
});

test("another process carries out what this key may not", async () => {
  const applied = { id: "act_1", status: "applied", receipt: { response_metadata: { result: "paid there" } } };
  for (const code of ["role_required", "worker_not_allowed"]) {
    const w = await world({
      lease: () => ({ status: 403, body: { code, retryable: false } }),
      act_1: () => ({ body: w.count("act_1") < 3 ? { id: "act_1", status: "approved" } : applied }),
    });
    assert.deepEqual(await w.run(() => "paid here"), { result: "paid there" });
    assert.equal(w.count("lease"), 1);
    const { error } = await outcome(w.gate.work(AbortSignal.timeout(20_000)));
    assert.ok(error instanceof APIError && error.code === code);
  }
});

test("a key that may not report ends the call", async () => {
  const w = await world({ complete: () => ({ status: 403, body: { code: "role_required", retryable: false } }) });
  const { error } = await w.run(() => "paid");
  assert.ok(error instanceof APIError && error.code === "role_required");
});

test("a pause ends with the patience", async () => {
  const w = await world({ lease: () => ({ ...busy, headers: { "Retry-After": "3600" } }) }, 0.5);
  assert.ok((await w.run(() => "paid")).error instanceof Waiting);
});

test("a call that the gate stops may have had its effect", async () => {
  const w = await world({
    heartbeat: () => ({ body: { generation: 1, expires_at: "", cancel: true } }),
    fail: () => w.finish("unknown", { failure: {} }),
  });
  const { error } = await w.run(({ signal }) => new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  }));
  assert.ok(error instanceof Unknown);
  assert.deepEqual([w.body("fail")["kind"], w.body("fail")["code"]], ["ambiguous", "GatehouseError"]);
});

test("the code of a failure is one that the gate accepts", async () => {
  const named = (name: string): Error => Object.assign(new Error("x"), { name });
  for (const [thrown, kind, code] of [
    [new NoEffect("x", { code: "closed" }), "terminal", "closed"],
    [new NoEffect("x", { code: "" }), "terminal", "refused"],
    [new NoEffect("x", { code: "ö".repeat(40), retry: true }), "not_sent", "ö".repeat(32)],
    [new NoEffect("x", { code: "a" + "ö".repeat(40) }), "terminal", "a" + "ö".repeat(31)],
    [named("猫".repeat(40)), "ambiguous", "猫".repeat(21)], [named("a\0"), "ambiguous", "a\uFFFD"],
    [named(""), "ambiguous", "failed"],
  ] as const) {
    const w = await world({ fail: () => w.finish("failed", { failure: {} }) });
    await w.run(() => {
      throw thrown;
    });
    const { kind: gotKind, code: gotCode } = w.body("fail") as unknown as PushFailure;
    assert.deepEqual([gotKind, gotCode], [kind, code]);
  }
});

test("the limit of a result is in bytes", async () => {
  for (const [length, kept] of [[4000, true], [4096, false], [12_200, false]] as const) {
    const w = await world();
    assert.deepEqual(await w.run(() => "猫".repeat(length)), { result: "猫".repeat(length) });
    assert.equal("result" in (w.body("complete")["response_metadata"] as object), kept, String(length));
  }
});

test("a generator is refused", () => {
  const gate = new Gate({ client: new Client({ url: "http://127.0.0.1:1", key: "gth_x" }) });
  const options = { action_type: "x", target: "t", connector: "c", operation: "o" };
  const generators: (() => unknown)[] = [function* () { yield 1; }, async function* () { yield 1; }];
  for (const generator of generators) {
    assert.throws(() => gate.tool(options, generator), /TypeError: a gated function cannot be a generator/);
  }
});
