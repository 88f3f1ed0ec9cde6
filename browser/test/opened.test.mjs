// The page of a link, opened by a stranger and by its recipient: only the recipient's own browser reports the opening.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";
import { newPage, signIn } from "../lib/browser.mjs";
import { limit, priced, stage } from "../lib/stage.mjs";

const { g, browser } = await stage();
await g.person("ana", "approver");

/** The link in the newest caught mail to ana. */
async function mailed() {
  for (let left = 200; left > 0; left--) {
    const html = await (await fetch(`${g.url}/dev/mail`)).text();
    const mail = html.split("<article").find((m) => m.includes("ana@"));
    const link = mail?.match(/\/review\/[^"<&\s]+/)?.[0];
    if (link) return g.url + link;
    await rest(100);
  }
  throw new Error("no mail arrived for ana");
}

/** The entries of the log that contain a text. */
async function logged(text) {
  return (await g.api("GET", "/audit/entries?limit=200")).items.filter((e) => JSON.stringify(e).includes(text));
}

test("only the recipient's browser reports opening a link, and the log records it once", limit, async (t) => {
  const page = await newPage(browser, t);
  await signIn(page, await g.setupLink("ana"));
  await g.propose(priced(0, "12.50"));
  const link = await mailed();
  const sent = [];
  for (const one of [await newPage(browser, t), page]) {
    one.on("request", (r) => r.method() === "POST" && sent.push(new URL(r.url()).pathname));
    await one.goto(link, { waitUntil: "networkidle" });
    await one.reload({ waitUntil: "networkidle" });
    if (one !== page) assert.deepEqual(sent, [], "a stranger's browser reports nothing");
  }
  assert.deepEqual(sent, Array(2).fill(new URL(link).pathname + "/opened"));
  const later = await g.propose(priced(1, "36.00"));
  for (let left = 600; (await logged(later.id)).length === 0 && left > 0; left--) await rest(100);
  assert.equal((await logged(later.id)).length > 0, true);
  assert.equal((await logged("review.opened")).length, 1);
});
