// The gate in front of third-party MCP servers from the registry.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { binary, Gatehouse } from "../lib/gatehouse.mjs";

const bin = join(dirname(dirname(fileURLToPath(import.meta.url))), "node_modules", ".bin");
const limit = { timeout: 120_000 };
const names = ["filesystem", "memory", "everything"];

let g, dir;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "gatehouse-mcp-"));
  g = await Gatehouse.start({
    configure: (text) => text.replace(/^ *"mcp:files":.*\n/m, (line) => line + names.map((name) => line.replace("mcp:files", `mcp:${name}`)).join("")),
  });
});

after(async () => {
  await g.close();
  await rm(dir, { recursive: true, force: true });
});

const server = (name) => [join(bin, `mcp-server-${name}`), ...(name === "filesystem" ? [dir] : [])];

const proxied = async (name) => [
  await binary(), "mcp", "proxy", "--name", name, "--state", join(dir, `state-${name}`), "--hold", "60s", "--", ...server(name),
];

/** A client of one server, over stdin and stdout. */
class Client {
  static async start(t, [command, ...args]) {
    const c = new Client();
    c.waiting = new Map();
    c.child = spawn(command, args, {
      stdio: ["pipe", "pipe", "ignore"],
      env: { ...process.env, GATEHOUSE_URL: g.url, GATEHOUSE_KEY: g.agent.key, MEMORY_FILE_PATH: join(dir, "memory.jsonl") },
    });
    createInterface({ input: c.child.stdout }).on("line", (line) => {
      const m = JSON.parse(line);
      if ("id" in m && !("method" in m)) c.waiting.get(m.id)?.(m);
    });
    t.after(() => c.child.kill("SIGKILL"));
    c.hello = await c.request("initialize", {
      protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" },
    });
    c.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return c;
  }

  send(message) {
    this.child.stdin.write(JSON.stringify(message) + "\n");
  }

  request(method, params = {}) {
    const id = this.waiting.size + 1;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.send({ jsonrpc: "2.0", id, method, params });
    return answer;
  }
}

/** The call that waits for a decision. */
async function pending() {
  for (;;) {
    const { items } = await g.api("GET", "/proposed-actions?status=pending");
    if (items.length > 0) return items[0];
  }
}

const decide = (a, body) => g.api("POST", `/proposed-actions/${a.id}/decide`, { body: { digest: a.digest, ...body } });

for (const name of names) {
  test(`what is no call passes the gate unchanged: ${name}`, limit, async (t) => {
    const [bare, gated] = await Promise.all([Client.start(t, server(name)), Client.start(t, await proxied(name))]);
    assert.deepEqual(gated.hello.result.serverInfo, bare.hello.result.serverInfo);
    assert.deepEqual(gated.hello.result.instructions, bare.hello.result.instructions);
    for (const method of ["ping", "resources/list", "prompts/list", "resources/templates/list", "no/such/method"]) {
      assert.deepEqual(await gated.request(method), await bare.request(method), method);
    }
    const want = (await bare.request("tools/list")).result.tools;
    const got = (await gated.request("tools/list")).result.tools;
    assert.ok(want.length > 5);
    assert.deepEqual(got.filter((tool) => !["gatehouse_answer", "gatehouse_wait"].includes(tool.name)), want);
  });
}

test("a file is written once, after somebody has approved it", limit, async (t) => {
  const client = await Client.start(t, await proxied("filesystem"));
  const path = join(dir, "note.txt");
  const call = () => client.request("tools/call", { name: "write_file", arguments: { path, content: "hello" } });
  const [first, second] = [call(), call()];
  const waits = await pending();
  assert.equal(waits.connector, "mcp:filesystem");
  assert.deepEqual(waits.proposed_change, { content: "hello", path });
  assert.ok(!(await readdir(dir)).includes("note.txt"));
  await decide(waits, { decision: "approved", confirm: "filesystem/write_file" });
  for (const answer of await Promise.all([first, second])) assert.match(JSON.stringify(answer.result), /Successfully wrote/);
  assert.equal(await readFile(path, "utf8"), "hello");
  const calls = (await g.api("GET", "/proposed-actions")).items.filter((a) => a.connector === "mcp:filesystem");
  assert.deepEqual(calls.map((a) => a.status), ["applied"]);
});

test("a rejected call gives the notes, and writes nothing", limit, async (t) => {
  const client = await Client.start(t, await proxied("filesystem"));
  const path = join(dir, "secret.txt");
  const answer = client.request("tools/call", { name: "write_file", arguments: { path, content: "no" } });
  const waits = await pending();
  await decide(waits, { decision: "rejected", notes: "not in this folder" });
  const { result } = await answer;
  assert.equal(result.isError, true);
  assert.match(JSON.stringify(result), /not in this folder/);
  assert.ok(!(await readdir(dir)).includes("secret.txt"));
});
