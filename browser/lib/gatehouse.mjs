// A real server in a folder of its own, and the API calls that prepare it.
import { execFile, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { items } from "./ledger.mjs";

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Builds a command of the repository into a folder that ends with the process. */
export async function build(command) {
  const dir = await mkdtemp(join(tmpdir(), "gatehouse-browser-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  const out = join(dir, "program");
  await run("go", ["build", "-o", out, command], { cwd: root });
  return out;
}

let built;

/** The program, built once for all tests of a process, or the one that GATEHOUSE_BINARY names. */
export function binary() {
  built ??= process.env.GATEHOUSE_BINARY ? Promise.resolve(process.env.GATEHOUSE_BINARY) : build("./cmd/gatehouse");
  return built;
}

/**
 * A free port below the range from which systems assign ports to clients: a port of
 * that range could be taken while the server restarts.
 */
async function freePort() {
  for (;;) {
    const port = 24_000 + Math.floor(8_000 * Math.random()); // tests of NATS use those below
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

export class Gatehouse {
  /**
   * Starts `gatehouse dev` and waits until it serves. configure, if given, gets
   * the text of the configuration that development mode made and the server's
   * URL, and returns the text to serve with, or a promise of it.
   */
  static async start({ configure } = {}) {
    const g = new Gatehouse();
    g.dir = await mkdtemp(join(tmpdir(), "gatehouse-browser-"));
    g.data = join(g.dir, "data");
    // localhost, not 127.0.0.1: a passkey belongs to a host name, not to an address.
    g.port = await freePort();
    g.url = `http://localhost:${g.port}`;
    try {
      await g.launch();
      if (configure) {
        await g.stop();
        const file = join(g.data, "gatehouse.yaml");
        await writeFile(file, await configure(await readFile(file, "utf8"), g.url));
        await g.launch();
      }
      const creds = JSON.parse(await readFile(join(g.data, "dev-credentials.json"), "utf8"));
      g.admin = creds.admin;
      g.agent = creds.agent;
    } catch (e) {
      g.child?.kill("SIGKILL");
      await rm(g.dir, { recursive: true, force: true });
      throw e;
    }
    return g;
  }

  async launch() {
    const child = spawn(await binary(), ["dev", "--data", this.data, "--listen", `localhost:${this.port}`, "--json"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.child = child;
    // An aborted run must not leave a server behind.
    const orphaned = () => child.kill("SIGKILL");
    process.on("exit", orphaned);
    child.on("exit", () => process.off("exit", orphaned));
    this.ended = new Promise((resolve) => child.on("exit", resolve));
    let text = "";
    this.info = await new Promise((resolve, reject) => {
      child.stdout.on("data", (chunk) => {
        text += chunk;
        try {
          resolve(JSON.parse(text));
        } catch {
          // not complete yet
        }
      });
      child.on("exit", (code) => reject(new Error(`gatehouse dev ended with ${code}: ${text}`)));
    });
    this.setupURL = this.info.setup_url.replace(/^http:\/\/[^/]+/, this.url);
  }

  /** Stops the server, which keeps its data. */
  async stop() {
    this.child.kill("SIGTERM");
    this.child.kill("SIGCONT");
    await this.ended;
  }

  async close() {
    await this.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Calls the API; an answer of 400 or more is an error unless it is expected. */
  async api(method, path, { key = this.admin.key, token = this.admin.edit_token, body, text: source, expect } = {}) {
    const res = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(token ? { "X-Edit-Token": token } : {}),
        ...(body ? { "Content-Type": "application/json" } : {}),
      },
      body: body ? JSON.stringify(body) : source,
    });
    const text = await res.text();
    const answer = text ? JSON.parse(text) : null;
    if (expect ? res.status !== expect : res.status >= 400) throw new Error(`${method} ${path}: ${res.status} ${text}`);
    return answer;
  }

  /** Creates a person with roles. */
  async person(name, ...roles) {
    const creds = await this.api("POST", "/principals", { body: { name, kind: "person", roles } });
    return { name, ...creds };
  }

  /** A one-time link that signs the person in. */
  async setupLink(name) {
    const link = await this.api("POST", `/principals/${name}/setup-link`);
    return this.url + link.setup_path;
  }

  /** Proposes as the agent of development mode: a price change of L3 unless told otherwise. */
  async propose(change = {}) {
    return this.api("POST", "/proposed-actions", {
      key: this.agent.key,
      token: null,
      body: {
        action_type: "price_change",
        connector: "shop",
        operation: "update",
        target: { entity_type: "item", entity_ref: items[0].sku, version: items[0].version },
        current_state: { price: items[0].price, currency: "USD" },
        proposed_change: { price: "12.50" },
        rationale: "supplier raised cost by 25 %",
        ...change,
      },
    });
  }

  /** Applies a text as the active policy. */
  policy(source) {
    return this.api("POST", "/policies", { body: { source } });
  }

  action(id) {
    return this.api("GET", `/proposed-actions/${id}`);
  }

  /** Waits until the action's outcome at the target is known. */
  finished(id) {
    return this.api("GET", `/proposed-actions/${id}?wait=30s&until=finished`);
  }

  decide(id, decision) {
    return this.api("POST", `/proposed-actions/${id}/decide`, { body: decision });
  }
}
