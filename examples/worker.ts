// A worker for the steps of a workflow that say `uses: worker.page`.
//
//     GATEHOUSE_URL=http://127.0.0.1:8080 GATEHOUSE_KEY=gth_... node worker.ts
//
// It needs Node 22.18 or later, which runs TypeScript as it stands, and nothing
// else; the key's principal has the role worker. Replace page() with what your
// step does, and keep the rest.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const url = process.env.GATEHOUSE_URL + "/api/v1";
const key = process.env.GATEHOUSE_KEY;
const lease = Number(process.env.WORKER_LEASE ?? "60"); // seconds without a heartbeat

type Order = { who: string; seconds?: number; pager?: string };
type Step = { id: string; key: string; input: Order; attempts: number; idempotency_key: string };
type Leased = { step: Step; lease: { generation: number; expires_at: string } };

/** Throw it when another attempt may succeed. Other errors are final. */
class Retry extends Error {}

/**
 * Pages somebody. A step is executed at least once: step.idempotency_key is the
 * same in every attempt, so hand it to whatever you call. stop is aborted when
 * the gate says that the step is canceled, or is not ours any more; not while the
 * gate cannot be reached.
 */
async function page(step: Step, stop: AbortSignal): Promise<unknown> {
  const order = step.input;
  if (order.pager === "busy" && step.attempts === 1) throw new Retry("the pager is busy");
  await sleep((order.seconds ?? 0) * 1000, undefined, { signal: stop }); // replace it with the call to the pager
  if (order.who === undefined) throw new Error("who is to be paged?");
  return { paged: order.who, key: step.idempotency_key };
}

/** An answer that is an error, by its code. */
class Refused extends Error {
  code: string;
  retryable: boolean;
  constructor(problem: { code: string; detail: string; retryable: boolean }) {
    super(`${problem.code}: ${problem.detail}`);
    this.code = problem.code;
    this.retryable = problem.retryable;
  }
}

/**
 * Posts JSON. The Idempotency-Key makes several tries one request: the effect
 * happens once, and each try gets the first answer.
 */
async function call<T>(path: string, body: object, tries = 1,
  signal: AbortSignal = AbortSignal.timeout(90_000)): Promise<T> {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json",
    "Idempotency-Key": randomUUID() };
  for (;;) {
    try {
      const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body), signal });
      if (answer.ok) return (await answer.json()) as T;
      const ours = answer.headers.get("Content-Type") === "application/problem+json";
      throw new Refused(ours ? await answer.json() : { code: "internal", detail: answer.statusText, retryable: true });
    } catch (error) {
      // Any error other than Refused is a broken connection: the server may or may not have acted
      // on the request.
      if (--tries <= 0 || signal.aborted || (error instanceof Refused && !error.retryable)) throw error;
    }
    await sleep(1000);
  }
}

async function execute({ step, lease: { generation } }: Leased): Promise<void> {
  const path = `/steps/${step.id}`;
  const stop = new AbortController();
  const heart = setInterval(async () => {
    try {
      const state = await call<{ cancel: boolean }>(path + "/heartbeat", { generation, lease: `${lease}s` });
      if (state.cancel) stop.abort();
    } catch (error) {
      // lease_lost ends the loop; after any other error, the next heartbeat may succeed.
      if (error instanceof Refused && !error.retryable) stop.abort();
    }
  }, (lease / 3) * 1000);
  try {
    const [verb, result] = await page(step, stop.signal).then(
      (output) => ["/complete", { output }] as const,
      (error: Error) => ["/fail", { detail: error.message || error.name, code: error.constructor.name,
        retryable: error instanceof Retry }] as const,
    );
    await call(path + verb, { generation, ...result }, 5);
    console.error(`${step.key}: ${verb.slice(1)}`);
  } catch (error) {
    // After lease_lost another worker has the step, and this worker's result is dropped. If a
    // result could not be reported, another attempt follows.
    console.error(`${step.key}: ${error}`);
  } finally {
    clearInterval(heart);
  }
}

const stopping = new AbortController();
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => stopping.abort());

while (!stopping.signal.aborted) {
  try {
    const order = { tools: ["page"], max: 10, wait: "30s", lease: `${lease}s`, worker: "worker.ts" };
    const batch = await call<Leased[]>("/steps/lease", order, 1,
      AbortSignal.any([stopping.signal, AbortSignal.timeout(90_000)]));
    await Promise.all(batch.map(execute)); // concurrently
  } catch (error) {
    if (error instanceof Refused && !error.retryable) throw error; // the key, the role or the request is refused
    await sleep(5000, undefined, { signal: stopping.signal }).catch(() => {});
  }
}
