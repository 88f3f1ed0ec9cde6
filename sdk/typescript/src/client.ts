/** A client of the API. Its calls are retried safely. */
import { APIError, Unreachable } from "./errors.ts";
import { parse, stringify } from "./json.ts";
import type {
  Action, LeasedPush, LeaseRequest, LeaseState, Problem, Proposal, PushFailure, PushResult,
} from "./types.ts";

const longestPause = 30; // seconds

export interface ClientOptions {
  /** By default GATEHOUSE_URL of the environment. */
  url?: string;
  /** By default GATEHOUSE_KEY of the environment. */
  key?: string;
  /** How often a call is made again while the gate is busy or out of reach; 5 by default. */
  retries?: number;
}

export interface CallOptions {
  query?: Record<string, string>;
  /** Sent with a POST, so that retries are one request; null sends none, and does not repeat it. */
  idempotencyKey?: string | null;
  /** In seconds, for each attempt; 60 by default. */
  timeout?: number;
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  until?: "decided" | "finished";
  signal?: AbortSignal | undefined;
}

/** Calls the gate. Calls may be made at the same time. */
export class Client {
  readonly url: string;
  readonly #key: string;
  readonly #retries: number;

  constructor(options: ClientOptions = {}) {
    this.url = (options.url ?? environment("GATEHOUSE_URL")).replace(/\/+$/, "").replace(/\/api\/v1$/, "");
    this.#key = options.key ?? environment("GATEHOUSE_KEY");
    this.#retries = options.retries ?? 5;
  }

  /** Proposes a change. Known by its idempotency_key, it is the action of the first time. */
  propose(proposal: Proposal, options: { signal?: AbortSignal | undefined } = {}): Promise<Action> {
    return this.call("POST", "/proposed-actions", proposal, options);
  }

  /** Returns an action, as soon as it is decided or finished, or after wait seconds (60 at most). */
  get(id: string, options: WaitOptions & { wait?: number } = {}): Promise<Action> {
    const { wait = 0, until = "finished", signal } = options;
    const query: Record<string, string> = wait > 0 ? { wait: seconds(wait), until } : {};
    return this.call("GET", path("proposed-actions", id), undefined, { query, timeout: wait + 30, signal });
  }

  /**
   * Waits until an action is decided or finished, for patience seconds at most (3600 by
   * default), and returns it as it stands then: look at its status.
   */
  async wait(id: string, options: WaitOptions & { patience?: number } = {}): Promise<Action> {
    const { patience = 3600, until = "finished", signal } = options;
    const end = now() + patience;
    for (;;) {
      const action = await this.get(id, { wait: Math.max(0, Math.min(60, end - now())), until, signal });
      const open = action.status === "pending" || (until === "finished" && underWay(action));
      if (!open || end <= now()) return action;
    }
  }

  /** Takes an action back that is not decided yet. 409 too_late afterwards. */
  async cancel(id: string): Promise<Action> {
    const answer = await this.call<{ action: Action }>("POST", path("proposed-actions", id, "cancel"));
    return answer.action;
  }

  /** Replaces a pending action by a new proposal, a whole one, and returns the new action. */
  revise(id: string, proposal: Proposal): Promise<Action> {
    return this.call("POST", path("proposed-actions", id, "revise"), proposal);
  }

  /**
   * Leases approved changes of connectors of type worker, and waits for some. It is not
   * repeated: a lease whose answer was lost runs out.
   */
  async leasePushes(request: LeaseRequest, options: { signal?: AbortSignal | undefined } = {}): Promise<LeasedPush[]> {
    const leased = await this.call<LeasedPush[] | null>("POST", "/pushes/lease", request, {
      ...options, idempotencyKey: null, timeout: 90,
    });
    return leased ?? [];
  }

  /** Keeps a lease for another while (seconds). cancel in the answer asks the holder to stop. */
  heartbeatPush(id: string, generation: number, lease = 60): Promise<LeaseState> {
    const body = { generation, lease: seconds(lease) };
    return this.call("POST", path("pushes", id, "heartbeat"), body, { idempotencyKey: null });
  }

  /** Reports that a change was applied, with what proves it. */
  completePush(id: string, generation: number, result: PushResult = {}): Promise<unknown> {
    return this.call("POST", path("pushes", id, "complete"), { generation, ...result });
  }

  /** Reports that a call failed. */
  failPush(id: string, generation: number, failure: PushFailure): Promise<unknown> {
    return this.call("POST", path("pushes", id, "fail"), { generation, ...failure });
  }

  /** Makes any call of the API, such as ("GET", "/runs"), with its retries. */
  async call<T>(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown, options: CallOptions = {}): Promise<T> {
    const { query = {}, timeout = 60, signal } = options;
    const search = new URLSearchParams(query).toString();
    const url = `${this.url}/api/v1${path}${search && "?" + search}`;
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.#key}`, Accept: "application/json, application/problem+json",
    };
    const once = options.idempotencyKey === undefined ? crypto.randomUUID() : options.idempotencyKey;
    const init: RequestInit = { method, headers, redirect: "manual" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = stringify(body);
    }
    if (method === "POST" && once !== null) headers["Idempotency-Key"] = once;
    const repeatable = method === "GET" || (method === "POST" && once !== null);
    for (let attempt = 0; ; attempt++) {
      const last = attempt >= this.#retries || !repeatable;
      let pause = Math.min(0.25 * 2 ** attempt, longestPause) * (0.5 + Math.random() / 2);
      const limits = AbortSignal.timeout(Math.ceil(timeout * 1000));
      init.signal = signal ? AbortSignal.any([signal, limits]) : limits;
      try {
        const answer = await fetch(url, init);
        const text = await answer.text();
        if (answer.ok) return parse(text) as T;
        throw refusal(answer, text);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof APIError) {
          if (last || !error.retryable || (error.retryAfter ?? 0) > longestPause) throw error;
          pause = Math.max(pause, error.retryAfter ?? 0);
        } else if (last) {
          throw new Unreachable(`${method} ${path}: ${reason(error)}`, { cause: error });
        }
      }
      await sleep(pause, signal);
    }
  }
}

/** Tells whether an action is neither settled nor waiting for people. */
export function underWay(action: Action): boolean {
  return action.status === "approved" || action.status === "pushing";
}

/** Seconds of a clock that only moves forward. */
export function now(): number {
  return performance.now() / 1000;
}

/** A duration as the API takes it. */
export function seconds(value: number): string {
  return `${Math.floor(value * 1000)}ms`;
}

/** Waits. It rejects with the reason of the signal. */
export function sleep(duration: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, duration * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Reads a problem. An answer of something before the gate is judged by its status. */
function refusal(answer: Response, text: string): APIError {
  let problem: Problem | undefined;
  if (answer.headers.get("Content-Type")?.startsWith("application/problem+json")) {
    try {
      problem = parse(text) as Problem;
    } catch {
      problem = undefined;
    }
  }
  if (!problem?.code) {
    problem = {
      code: [502, 503, 504].includes(answer.status) ? "busy" : "internal",
      detail: `answered ${answer.status}, and not by Gatehouse: is the address right?`,
      retryable: [429, 502, 503, 504].includes(answer.status),
    };
  }
  const after = answer.headers.get("Retry-After") ?? "";
  return new APIError(answer.status, problem, /^\d+$/.test(after) ? Number(after) : undefined);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

/** Each part is one segment: what would be none, or lead up the path, becomes one that names nothing. */
function path(...parts: string[]): string {
  return parts.map((part) => "/" + (/^\.{0,2}$/.test(part) ? "-" : encodeURIComponent(part))).join("");
}

function environment(name: string): string {
  const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
  const value = process?.env[name];
  if (!value) throw new TypeError(`give it, or set ${name}`);
  return value;
}
