/** Tests retries against a server that fails as the gate documents, numbers, and webhook signatures. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  APIError, Client, Gate, InvalidSignature, Rejected, Unreachable, verifyWebhook, type Call,
} from "@gatehouse-dev/gatehouse";
import { outcome } from "./world.ts";

type Canned = { status: number; headers?: Record<string, string>; body: string };

const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

/** Sends the given answers in order, and records the requests. Status 0 breaks the connection. */
async function serve(...answers: Canned[]) {
  const keys: (string | undefined)[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers["idempotency-key"] as string | undefined);
    let body = "";
    request.on("data", (chunk) => (body += chunk)).on("end", () => {
      bodies.push(body);
      const { status, headers = {}, body: text } = answers.shift() ?? { status: 500, body: "" };
      if (status === 0) return void request.socket.destroy();
      const type = status < 300 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "Content-Type": type, ...headers }).end(text);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { client: new Client({ url: `http://127.0.0.1:${port}`, key: "gth_x" }), keys, bodies, server, port };
}

/** A client without retries: each failure alone would end a call that is no wait. */
function once(url: string): Client {
  return new Client({ url, key: "gth_x", retries: 0 });
}

const proposal = {
  action_type: "x", connector: "c", operation: "o", target: { entity_type: "t" },
  proposed_change: { id: 1234567890123456789n, price: 0.1 },
};
const busy: Canned = { status: 503, headers: { "Retry-After": "1" }, body: '{"code": "busy", "retryable": true}' };

test("busy is retried under the same key", async () => {
  const { client, keys } = await serve(busy, { status: 201, body: '{"id": "act_1", "status": "pending"}' });
  const begun = Date.now();
  assert.deepEqual(await client.propose(proposal), { id: "act_1", status: "pending" });
  assert.ok(keys[0]);
  assert.deepEqual(keys, [keys[0], keys[0]]);
  assert.ok(Date.now() - begun >= 950, "Retry-After is heeded");
});

test("what is not retryable is not retried", async () => {
  const { client, keys } = await serve({
    status: 422, body: '{"code": "invalid", "retryable": false, "detail": "/target is required", "errors": ' +
      '[{"pointer": "/target", "detail": "is required"}, {"pointer": "/connector", "detail": "is required"}]}',
  });
  const { error } = await outcome(client.propose(proposal));
  assert.match(String(error), /invalid: \/target is required; \/connector is required$/);
  assert.equal(keys.length, 1);
});

test("a redirect does not take the key away", async () => {
  const { client, keys } = await serve({ status: 302, headers: { Location: "/elsewhere" }, body: "" });
  assert.ok((await outcome(client.propose(proposal))).error instanceof APIError);
  assert.equal(keys.length, 1);
});

test("a lease is not repeated", async () => {
  const { client, keys } = await serve(busy);
  assert.ok((await outcome(client.leasePushes({ connectors: ["erp"] }))).error instanceof APIError);
  assert.deepEqual(keys, [undefined]);
});

test("out of reach", async () => {
  const client = new Client({ url: "http://127.0.0.1:1", key: "gth_x", retries: 1 });
  assert.ok((await outcome(client.get("act_1"))).error instanceof Unreachable);
});

const pending: Canned = { status: 200, body: '{"id": "act_1", "status": "pending"}' };
const rejected: Canned = { status: 200, body: '{"id": "act_1", "status": "rejected"}' };
const broken: Canned = { status: 0, body: "" };
const limited: Canned = { status: 429, body: '{"code": "rate_limited", "retryable": true}' };

test("a wait outlasts an outage", async () => {
  const question: Canned = { status: 200, body: '{"id": "act_1", "status": "pending", '
    + '"comments": [{"kind": "question", "number": 1, "text": "why?"}]}' };
  const { client, keys } = await serve(pending, broken, { status: 502, body: "" }, limited, question,
    broken, { status: 201, body: "{}" }, limited, rejected);
  const asked: string[] = [];
  const answer = (q: { text: string }) => (asked.push(q.text), "so");
  assert.equal((await once(client.url).wait("act_1", { answer })).status, "rejected");
  assert.equal(keys.length, 9);
  assert.deepEqual(asked, ["why?"]);
  assert.equal(new Set(keys.filter(Boolean)).size, 1); // of the answer

  for (const call of ["propose and wait", "ask"]) {
    const other = await serve({ ...pending, status: 201 }, broken, limited, rejected);
    const tool = new Gate({ client: once(other.client.url) }).tool(
      { action_type: "x", target: "x/1", connector: "erp", operation: "refund" }, () => null);
    if (call === "ask") assert.equal((await tool.ask({})).approved, false);
    else assert.ok((await outcome(tool({}))).error instanceof Rejected);
    assert.equal(other.keys.length, 4);
  }
});

test("a wait continues when the decision precedes the answer", async () => {
  const question = { kind: "question", number: 1, text: "why?" };
  const asked: Canned = { status: 200, body: JSON.stringify({ id: "act_1", status: "pending", comments: [question] }) };
  const answer = () => "so";
  for (const [status, code] of [[409, "already_decided"], [410, "expired"]] as const) {
    const { client, keys } = await serve(asked, { status, body: `{"code": "${code}", "retryable": false}` }, rejected);
    assert.equal((await client.wait("act_1", { answer })).status, "rejected");
    assert.equal(keys.length, 3);
  }
  const { client } = await serve(asked, { status: 422, body: '{"code": "invalid", "retryable": false}' });
  assert.match(String((await outcome(client.wait("act_1", { answer }))).error), /APIError: invalid/);
});

test("a wait outlasts a restart", async () => {
  const { client, server, port } = await serve();
  await new Promise((resolve) => server.close(resolve));
  const wait = once(client.url).wait("act_1");
  await sleep(500);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  server.removeAllListeners("request").on("request", (_, response) => response.end(rejected.body));
  assert.equal((await wait).status, "rejected");
});

test("a wait ends with its patience", async () => {
  const begun = Date.now();
  const gone = await outcome(new Client({ url: "http://127.0.0.1:1", key: "gth_x" }).wait("act_1", { patience: 0.5 }));
  assert.ok(gone.error instanceof Unreachable);
  assert.match(String(gone.error), /patience is over: GET /);
  const took = Date.now() - begun;
  assert.ok(took >= 490 && took < 5000, String(took));
  const { client, keys } = await serve({ ...busy, headers: { "Retry-After": "40" } }, busy);
  const { error } = await outcome(once(client.url).wait("act_1", { patience: 0.5 }));
  assert.match(String(error), /APIError: busy/);
  assert.equal(keys.length, 2);
  const stop = AbortSignal.timeout(100);
  assert.equal((await outcome(once("http://127.0.0.1:1").wait("act_1", { signal: stop }))).error, stop.reason);
});

test("a refusal ends a wait", async () => {
  for (const [status, code] of [[401, "unauthenticated"], [404, "not_found"]] as const) {
    const { client, keys } = await serve({ status, body: `{"code": "${code}", "retryable": false}` });
    assert.match(String((await outcome(client.wait("act_1"))).error), new RegExp(`APIError: ${code}`));
    assert.equal(keys.length, 1);
  }
  const { client } = await serve({ status: 200, body: '{"ok": true}' });
  assert.match(String((await outcome(client.wait("act_1"))).error), /no action of Gatehouse/);
});

test("the signal of a function is aborted when its lease ends in an outage", async () => {
  const leased = { push: { id: "psh_1", connector: "c" }, lease: { generation: 1 }, operation: "o", action_id: "act_1",
    idempotency_key: "k", attempt: 1, target: { entity_type: "t", entity_ref: "" }, proposed_change: {} };
  const failures: string[] = [];
  let beats = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk)).on("end", () => {
      if (request.url?.endsWith("/heartbeat") && ++beats > 1) return void request.socket.destroy();
      if (request.url?.endsWith("/fail")) failures.push(body);
      const lease = request.url?.endsWith("/lease") && beats === 0;
      response.writeHead(200, { "Content-Type": "application/json" }).end(lease ? JSON.stringify([leased]) : "{}");
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const gate = new Gate({ client: once(`http://127.0.0.1:${port}`), lease: 0.6 });
  const stop = new AbortController();
  let ran = 0;
  gate.tool({ action_type: "x", connector: "c", operation: "o", target: "t" }, async (_: object, { signal }: Call) => {
    const begun = Date.now();
    await sleep(5000, undefined, { signal }).catch(() => undefined);
    ran = Date.now() - begun;
    stop.abort();
    throw signal.reason ?? new Error("the signal was not aborted");
  });
  await gate.work(stop.signal);
  assert.ok(ran >= 780 && ran < 2000, `the lease, extended after 0.2 s, ended after ${ran} ms`);
  assert.match(String(failures), /"ambiguous".*the lease ended/);
});

test("numbers keep their digits", async () => {
  const text = '{"a": 9007199254740993, "b": 0.1, "c": 1.50, "d": 0.12345678901234567890, "e": 1e400, "f": -0, '
    + '"g": 12345678901234567000, "h": "12345678901234567890 \\" 12345678901234567890", "i": [123456789012345678901]}';
  const { client, bodies } = await serve({ status: 200, body: text }, { status: 201, body: "{}" });
  assert.deepEqual(await client.call("GET", "/numbers"), {
    a: 9007199254740993n, b: 0.1, c: 1.5, d: "0.12345678901234567890", e: "1e400", f: -0,
    g: 12345678901234567000, h: '12345678901234567890 " 12345678901234567890', i: [123456789012345678901n],
  });
  await client.call("POST", "/proposed-actions", proposal);
  assert.match(bodies[1] ?? "", /"id":1234567890123456789,"price":0.1/);
  const wrong = await serve({ status: 200, body: '{"a": 12345678901234567890-1}' });
  const { error } = await outcome(once(wrong.client.url).get("act_1"));
  assert.ok(error instanceof Unreachable);
});

test("a number that is none is not sent as null", async () => {
  const { client, keys } = await serve();
  const { error } = await outcome(client.propose({ ...proposal, proposed_change: { price: NaN } }));
  assert.match(String(error), /TypeError: NaN is no value of JSON/);
  assert.deepEqual(keys, []);
});

test("an answer of another server", async () => {
  for (const body of ['{"ok": true}', "[]", "null"]) {
    const { client } = await serve({ status: 200, body });
    const { error } = await outcome(client.propose(proposal));
    assert.match(String(error), /Unreachable: the answer is no action of Gatehouse: is the address right/);
  }
});

test("what the client is given", () => {
  for (const [url, key] of [["127.0.0.1:8080", "gth_x"], ["ftp://127.0.0.1", "gth_x"], ["http://127.0.0.1", "gth_\nx"],
    ["http://127.0.0.1", "gth_ä"]] as const) {
    assert.throws(() => new Client({ url, key }),
      (error: Error) => error instanceof TypeError && !error.message.includes("gth_"));
  }
  assert.equal(new Client({ url: "http://127.0.0.1:1/api/v1/", key: "gth_x\n" }).url, "http://127.0.0.1:1");
});

// The test vector of the Standard Webhooks reference libraries.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"test": 2432232314}';
const headers = {
  "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "Webhook-Timestamp": "1614265330",
  "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};

test("a webhook that is signed right", async () => {
  for (const secrets of [secret, `whsec_plJ3nmyCDGBKInavdOK15jsl1VcD6eCWpH5b5Nf0kzA=\n${secret}\n`]) {
    for (const given of [headers, new Headers(headers)]) {
      assert.deepEqual(await verifyWebhook(secrets, given, body, { now: 1614265330 }), { test: 2432232314 });
    }
  }
  assert.ok(await verifyWebhook(secret, headers, Buffer.from(body), { now: 1614265330 }));
});

test("a webhook that is refused", async () => {
  const now = 1614265330;
  for (const [given, text, at] of [
    [headers, body + " ", now], [headers, body, now + 301], [headers, body, now - 301],
    [{ ...headers, "Webhook-Id": "msg_2" }, body, now], [{}, body, now],
    [{ ...headers, "Webhook-Signature": "v2" + headers["Webhook-Signature"].slice(2) }, body, now],
    [{ ...headers, "Webhook-Timestamp": "1614265330.0" }, body, now],
  ] as const) {
    const { error } = await outcome(verifyWebhook(secret, given, text, { now: at }));
    assert.ok(error instanceof InvalidSignature, String(error));
  }
  await assert.rejects(verifyWebhook("", headers, body, { now }), InvalidSignature);
  await assert.rejects(verifyWebhook("whsec_", headers, body, { now }), TypeError);
});
