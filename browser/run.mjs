// Runs the tests with one build of the program. Arguments select files: npm test -- keyboard phone
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { binary } from "./lib/gatehouse.mjs";

const dir = join(dirname(fileURLToPath(import.meta.url)), "test");
const words = process.argv.slice(2);
// The longest first, so that none is left alone at the end.
const longest = ["axe", "runs", "hostile", "links", "together", "keyboard", "looks", "operate"];
const rank = (name) => (longest.includes(name) ? longest.indexOf(name) : longest.length);
const names = (await readdir(dir))
  .filter((file) => file.endsWith(".test.mjs"))
  .map((file) => file.replace(".test.mjs", ""))
  .filter((name) => words.length === 0 || words.includes(name))
  .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
const unknown = words.filter((word) => !names.includes(word));
if (unknown.length > 0) throw new Error(`no such tests: ${unknown.join(" ")}`);

const env = { ...process.env, GATEHOUSE_BINARY: await binary() };

/** Runs a file's tests. When they have ended, it prints their output and resolves to whether they passed. */
function run(name) {
  const child = spawn(process.execPath, ["--test-reporter=spec", join(dir, `${name}.test.mjs`)], {
    env, stdio: ["ignore", "pipe", "pipe"],
  });
  const began = Date.now(), printed = [];
  for (const out of [child.stdout, child.stderr]) out.on("data", (chunk) => printed.push(chunk));
  return new Promise((resolve) => child.on("close", (code) => {
    console.log(`${name}: ${Math.round((Date.now() - began) / 1000)} s${code === 0 ? "" : `, failed with ${code}`}`);
    process.stdout.write(Buffer.concat(printed));
    resolve(code === 0);
  }));
}

// Each file has its own server and browser; two files at a time keep two cores busy.
let failed = false;
await Promise.all([1, 2].map(async () => {
  for (let name = names.shift(); name; name = names.shift()) failed = !(await run(name)) || failed;
}));
process.exitCode = failed ? 1 : 0;
