/** Runs the snippets of docs/sdks.md unchanged, against the real server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide, outcome, pending } from "./world.ts";

test("the page", async () => {
  const name = "./page.ts"; // written by the program that runs the tests
  const page = import(name) as Promise<{ said: string; receive: (request: Request) => Promise<unknown> }>;
  await decide(await pending("ord_1042"), "approved");
  const { said, receive } = await page;
  assert.equal(said, "refunded 12.50 EUR for ord_1042");
  const { error } = await outcome(receive(new Request("http://127.0.0.1/", { method: "POST", body: "{}" })));
  assert.match(String(error), /InvalidSignature/);
});
