// Runs the tests with one build of the program. Arguments select files: npm test -- keyboard phone
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { binary } from "./lib/gatehouse.mjs";

const dir = join(dirname(fileURLToPath(import.meta.url)), "test");
const words = process.argv.slice(2);
const files = (await readdir(dir))
  .filter((name) => name.endsWith(".test.mjs") && (words.length === 0 || words.includes(name.replace(".test.mjs", ""))))
  .sort()
  .map((name) => join(dir, name));
if (files.length === 0) throw new Error(`no such tests: ${words.join(" ")}`);

const env = { ...process.env, GATEHOUSE_BINARY: await binary() };
// Each file has its own server and browser; two files at a time keep two cores busy.
const tests = spawn(process.execPath, ["--test", "--test-concurrency=2", "--test-reporter=spec", ...files], { env, stdio: "inherit" });
process.exitCode = await new Promise((resolve) => tests.on("exit", (code) => resolve(code ?? 1)));
