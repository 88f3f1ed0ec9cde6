/** Tests retries against a server that fails as the gate documents, numbers, and webhook signatures. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, test } from "node:test";
import { APIError, Client, InvalidSignature, Unreachable, verifyWebhook } from "@gatehouse-dev/gatehouse";
import { outcome } from "./world.ts";

type Canned = { status: number; headers?: Record<string, string>; body: string };

const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

/** Sends the given answers in order, and records the requests. */
async function serve(...answers: Canned[]) {
  const keys: (string | undefined)[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers["idempotency-key"] as string | undefined);
    let body = "";
    request.on("data", (chunk) => (body += chunk)).on("end", () => {
      bodies.push(body);
      const { status, headers = {}, body: text } = answers.shift() ?? { status: 500, body: "" };
      const type = status < 300 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "Content-Type": type, ...headers }).end(text);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { client: new Client({ url: `http://127.0.0.1:${port}`, key: "gth_x" }), keys, bodies };
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
  const broken = await serve({ status: 200, body: '{"a": 12345678901234567890-1}' });
  const { error } = await outcome(new Client({ url: broken.client.url, key: "gth_x", retries: 0 }).get("act_1"));
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
