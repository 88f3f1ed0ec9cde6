/** The real server of the tests, and the person who decides. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type Action } from "@gatehouse-dev/gatehouse";

const { GATEHOUSE_URL = "", REVIEWER_KEY = "", REVIEWER_EDIT_TOKEN = "" } = process.env;

const reviewer = new Client({ key: REVIEWER_KEY });

/** Waits until an action on ref is pending. */
export async function pending(ref: string): Promise<Action> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(50)) {
    const query = { status: "pending", limit: "200" };
    const page = await reviewer.call<{ items: Action[] }>("GET", "/proposed-actions", undefined, { query });
    const found = page.items.find((action) => action.target.entity_ref === ref);
    if (found) return found;
  }
  assert.fail(`nothing is pending for ${ref}`);
}

/** Decides as a person. */
export async function decide(action: Action, decision: "approved" | "rejected", notes = ""): Promise<void> {
  const answer = await fetch(`${GATEHOUSE_URL}/api/v1/proposed-actions/${action.id}/decide`, {
    method: "POST", body: JSON.stringify({ decision, notes, digest: action.digest }),
    headers: { Authorization: `Bearer ${REVIEWER_KEY}`, "X-Edit-Token": REVIEWER_EDIT_TOKEN,
      "Content-Type": "application/json" },
  });
  assert.equal(answer.status, 200, await answer.text());
}

/** Asks as a person. */
export async function ask(action: Action, text: string): Promise<void> {
  await reviewer.call("POST", `/proposed-actions/${action.id}/comments`, { kind: "question", text });
}

/** Awaits a promise from now on, and returns its result or its error. */
export function outcome<T>(promise: Promise<T>): Promise<{ result?: T; error?: unknown }> {
  return promise.then((result) => ({ result }), (error: unknown) => ({ error }));
}
