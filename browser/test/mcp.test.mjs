// The gate in front of third-party MCP servers from the registry.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { executable } from "../lib/browser.mjs";
import { binary, Gatehouse } from "../lib/gatehouse.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const bin = join(root, "browser", "node_modules", ".bin");
// dbhub needs Node 22.5. scripts/tools installs one where the system's is older.
const installed = join(root, ".tools", "node", "node_modules", "node", "bin", "node");
const node = existsSync(installed) ? installed : process.execPath;
const limit = { timeout: 120_000 };
const own = ["gatehouse_answer", "gatehouse_wait"]; // the gate's tools
const names = ["filesystem", "memory", "everything", "dbhub", "git", "playwright"];

let g, dir;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "gatehouse-mcp-"));
  g = await Gatehouse.start({
    configure: (text) => text.replace(/^ *"mcp:files":.*\n/m,
      (line) => line + names.map((name) => line.replace("mcp:files", `mcp:${name}`)).join("")),
  });
});

after(async () => {
  await g.close();
  await rm(dir, { recursive: true, force: true });
});

function server(name) {
  switch (name) {
    case "dbhub":
      return [node, join(bin, "dbhub"), "--transport", "stdio", "--dsn", `sqlite://${join(dir, "shop.db")}`];
    case "git":
      return [node, join(bin, "git-mcp-server")];
    case "playwright":
      return [
        node, join(bin, "playwright-mcp"), "--headless", "--no-sandbox", "--isolated",
        "--executable-path", executable(),
      ];
    case "filesystem":
      return [join(bin, "mcp-server-filesystem"), dir];
    default:
      return [join(bin, `mcp-server-${name}`)];
  }
}

const proxied = async (name) => [
  await binary(), "mcp", "proxy", "--name", name, "--state", join(dir, `state-${name}`), "--hold", "60s", "--",
    ...server(name),
];

/** A client of one server, over stdin and stdout. */
class Client {
  static async start(t, [command, ...args]) {
    const c = new Client();
    c.waiting = new Map();
    c.child = spawn(command, args, {
      cwd: dir, // servers may write files
      stdio: ["pipe", "pipe", "ignore"],
      env: { ...process.env, GATEHOUSE_URL: g.url, GATEHOUSE_KEY: g.agent.key,
        MEMORY_FILE_PATH: join(dir, "memory.jsonl") },
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
    await rest(50);
  }
}

const decide = (a, body) => g.api("POST", `/proposed-actions/${a.id}/decide`, { body: { digest: a.digest, ...body } });

for (const name of names) {
  test(`messages other than calls pass the gate unchanged: ${name}`, limit, async (t) => {
    const [bare, gated] = await Promise.all([Client.start(t, server(name)), Client.start(t, await proxied(name))]);
    assert.deepEqual(gated.hello.result.serverInfo, bare.hello.result.serverInfo);
    assert.deepEqual(gated.hello.result.instructions, bare.hello.result.instructions);
    for (const method of ["ping", "resources/list", "prompts/list", "resources/templates/list", "no/such/method"]) {
      assert.deepEqual(await gated.request(method), await bare.request(method), method);
    }
    const want = (await bare.request("tools/list")).result.tools;
    const got = (await gated.request("tools/list")).result.tools;
    assert.ok(want.length > 1);
    assert.deepEqual(got.filter((tool) => !own.includes(tool.name)), want);
  });
}

/** Calls a tool through the gate, approves the call, and returns the tool's result. */
async function approved(client, name, tool, args) {
  const answer = client.request("tools/call", { name: tool, arguments: args });
  const waits = await pending();
  assert.equal(waits.connector, `mcp:${name}`);
  assert.deepEqual(waits.proposed_change, args);
  await decide(waits, { decision: "approved", confirm: `${name}/${tool}` });
  const { result } = await answer;
  assert.ok(!result.isError, JSON.stringify(result));
  return JSON.stringify(result);
}

test("a statement runs after its approval: dbhub", limit, async (t) => {
  const client = await Client.start(t, await proxied("dbhub"));
  await approved(client, "dbhub", "execute_sql", { sql: "CREATE TABLE price (sku TEXT, amount REAL)" });
  await approved(client, "dbhub", "execute_sql", { sql: "INSERT INTO price VALUES ('A-1', 9.5)" });
  const counted = await approved(client, "dbhub", "execute_sql", { sql: "SELECT count(*) AS n FROM price" });
  assert.match(counted, /\"n\\*":\s*1\b/);
});

test("a repository is made after an approval: git", limit, async (t) => {
  const client = await Client.start(t, await proxied("git"));
  const path = join(dir, "repository");
  await mkdir(path);
  await approved(client, "git", "git_init", { path });
  assert.ok((await readdir(path)).includes(".git"));
});

test("a page is opened after an approval: playwright", limit, async (t) => {
  const client = await Client.start(t, await proxied("playwright"));
  const url = "data:text/html,<title>Prices</title>";
  assert.match(await approved(client, "playwright", "browser_navigate", { url }), /Prices/);
});

/** Runs the inspector's command against a server; gives its exit code and output. */
function inspect(target, ...args) {
  // The server gets no other variable of the inspector's environment.
  const env = ["-e", `GATEHOUSE_URL=${g.url}`, "-e", `GATEHOUSE_KEY=${g.agent.key}`];
  const argv = [join(bin, "mcp-inspector"), "--cli", "--format", "json", "-q", ...env, ...args, "--", ...target];
  return new Promise((resolve) => {
    execFile(node, argv, (e, stdout, stderr) => resolve({ code: e?.code ?? 0, output: stdout || stderr }));
  });
}

test("the inspector sees the same tools, and gets decisions", limit, async () => {
  const gated = await proxied("filesystem");
  // The inspector declares tasks, so the gate adds to each tool that its calls may be tasks.
  const tools = async (target) => {
    const { result } = JSON.parse((await inspect(target, "--method", "tools/list")).output);
    return result.tools.filter((tool) => !own.includes(tool.name)).map((tool) => ({ ...tool, execution: null }));
  };
  assert.deepEqual(await tools(gated), await tools(server("filesystem")));

  const path = join(dir, "inspected.txt");
  const write = (content) => {
    const args = JSON.stringify({ path, content });
    return inspect(gated, "--method", "tools/call", "--tool-name", "write_file", "--tool-args-json", args);
  };
  const rejected = write("no");
  await decide(await pending(), { decision: "rejected", notes: "not today" });
  // 5 is the inspector's code for a result with isError.
  const { code, output } = await rejected;
  assert.equal(code, 5);
  assert.match(output, /not today/);

  const accepted = write("yes");
  await decide(await pending(), { decision: "approved", confirm: "filesystem/write_file" });
  assert.equal((await accepted).code, 0);
  assert.equal(await readFile(path, "utf8"), "yes");
});

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
  for (const answer of await Promise.all([first, second])) assert.match(JSON.stringify(answer.result),
    /Successfully wrote/);
  assert.equal(await readFile(path, "utf8"), "hello");
  const calls = (await g.api("GET", "/proposed-actions")).items.filter((a) => a.proposed_change.path === path);
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
