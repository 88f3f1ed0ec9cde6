/** A client for the API that retries calls safely. */
import { APIError, Unreachable } from "./errors.ts";
import { parse, stringify } from "./json.ts";
import type {
  Action, Comment, LeasedPush, LeaseRequest, LeaseState, Problem, Proposal, PushFailure, PushResult,
} from "./types.ts";

const longestPause = 30; // seconds

export interface ClientOptions {
  /** By default GATEHOUSE_URL of the environment. */
  url?: string;
  /** By default GATEHOUSE_KEY of the environment. */
  key?: string;
  /** How often a call is retried while the gate is busy or unreachable; 5 by default. */
  retries?: number;
}

export interface CallOptions {
  query?: Record<string, string>;
  /** Sent with a POST, so that retries have one effect. With null, none is sent and the call is not retried. */
  idempotencyKey?: string | null;
  /** In seconds, for each attempt; 60 by default. */
  timeout?: number;
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  until?: "decided" | "finished";
  signal?: AbortSignal | undefined;
}

/** Answers a question, or leaves it open with null. */
export type Answerer = (question: Comment) => string | null | Promise<string | null>;

/** Calls the gate. It may be used concurrently. An address or a key that cannot be right is a TypeError. */
export class Client {
  readonly url: string;
  readonly #key: string;
  readonly #retries: number;

  constructor(options: ClientOptions = {}) {
    this.url = given("url", options.url, "GATEHOUSE_URL").replace(/\/+$/, "").replace(/\/api\/v1$/, "");
    if (!/^https?:\/\//i.test(this.url)) {
      throw new TypeError(`the url "${this.url}" must begin with http:// or https://`);
    }
    this.#key = given("key", options.key, "GATEHOUSE_KEY");
    this.#retries = options.retries ?? 5;
  }

  /** Proposes a change. If its idempotency_key is already known, the first call's action is returned. */
  async propose(proposal: Proposal, options: { signal?: AbortSignal | undefined } = {}): Promise<Action> {
    return checked(await this.call("POST", "/proposed-actions", proposal, options));
  }

  /**
   * Returns an action as soon as it is decided or finished, or after wait seconds (at most 60). With
   * questionsAfter, an open question with a higher number ends the wait too.
   */
  async get(
    id: string, options: WaitOptions & { wait?: number; questionsAfter?: number | undefined } = {},
  ): Promise<Action> {
    const { wait = 0, until = "finished", signal, questionsAfter } = options;
    const query: Record<string, string> = wait > 0 ? { wait: seconds(wait), until } : {};
    if (wait > 0 && questionsAfter !== undefined) query["questions_after"] = String(questionsAfter);
    return checked(
      await this.call("GET", path("proposed-actions", id), undefined, { query, timeout: wait + 30, signal }));
  }

  /**
   * Waits until an action is decided or finished, for at most patience seconds (3600 by
   * default), and returns it in its state at that time: check its status. answer gets each question
   * of a reviewer once, and returns the answer, or null to leave it open.
   */
  async wait(id: string, options: WaitOptions & { patience?: number; answer?: Answerer } = {}): Promise<Action> {
    const { patience = 3600, until = "finished", signal, answer } = options;
    let seen = 0;
    const end = now() + patience;
    for (;;) {
      const wait = Math.max(0, Math.min(60, end - now()));
      const action = await this.get(id, { wait, until, signal, questionsAfter: answer ? seen : undefined });
      for (const question of answer ? openQuestions(action) : []) {
        if (question.number <= seen) continue;
        seen = question.number;
        const text = await answer?.(question);
        if (text) await this.answer(id, seen, text);
      }
      const open = action.status === "pending" || (until === "finished" && underWay(action));
      if (!open || end <= now()) return action;
    }
  }

  /** Answers a reviewer's question about an own pending action. It decides nothing. */
  answer(id: string, question: number, text: string): Promise<Action> {
    return this.call("POST", path("proposed-actions", id, "comments"), { kind: "answer", answers: question, text });
  }

  /** Withdraws an action that is not decided yet; afterwards, the error is 409 too_late. */
  async cancel(id: string): Promise<Action> {
    const answer = await this.call<{ action: Action }>("POST", path("proposed-actions", id, "cancel"));
    return answer.action;
  }

  /** Replaces a pending action by a complete new proposal, and returns the new action. */
  revise(id: string, proposal: Proposal): Promise<Action> {
    return this.call("POST", path("proposed-actions", id, "revise"), proposal);
  }

  /**
   * Leases approved changes of connectors of type worker, or waits for some. The call is not
   * retried: leases whose answer was lost expire.
   */
  async leasePushes(request: LeaseRequest, options: { signal?: AbortSignal | undefined } = {}): Promise<LeasedPush[]> {
    const leased = await this.call<LeasedPush[] | null>("POST", "/pushes/lease", request, {
      ...options, idempotencyKey: null, timeout: 90,
    });
    return leased ?? [];
  }

  /** Extends a lease by lease seconds. If the answer has cancel set, the holder should stop. */
  heartbeatPush(id: string, generation: number, lease = 60): Promise<LeaseState> {
    const body = { generation, lease: seconds(lease) };
    return this.call("POST", path("pushes", id, "heartbeat"), body, { idempotencyKey: null });
  }

  /** Reports that a change was applied, with the evidence. */
  completePush(id: string, generation: number, result: PushResult = {}): Promise<unknown> {
    return this.call("POST", path("pushes", id, "complete"), { generation, ...result });
  }

  /** Reports that a call failed. */
  failPush(id: string, generation: number, failure: PushFailure): Promise<unknown> {
    return this.call("POST", path("pushes", id, "fail"), { generation, ...failure });
  }

  /** Makes any API call, such as ("GET", "/runs"), with retries. */
  async call<T>(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown,
    options: CallOptions = {}): Promise<T> {
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

/** The questions about a pending action that have no answer. */
function openQuestions(action: Action): Comment[] {
  const said = action.status === "pending" ? (action.comments ?? []) : [];
  return said.filter((c) => c.kind === "question" && !said.some((d) => d.answers === c.number));
}

/** Reports whether an action is approved and not finished. */
export function underWay(action: Action): boolean {
  return action.status === "approved" || action.status === "pushing";
}

/** The time of a monotonic clock, in seconds. */
export function now(): number {
  return performance.now() / 1000;
}

/** A duration in the API's format. */
export function seconds(value: number): string {
  return `${Math.floor(value * 1000)}ms`;
}

/** Waits. An aborted signal rejects the promise with its reason. */
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

/** Reads a problem document. An answer from a proxy in front of the gate is classified by its status. */
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

/** Escapes each part as one segment. A part that is empty, "." or ".." becomes "-", which names nothing. */
function path(...parts: string[]): string {
  return parts.map((part) => "/" + (/^\.{0,2}$/.test(part) ? "-" : encodeURIComponent(part))).join("");
}

function checked(answer: Partial<Action> | null): Action {
  if (answer?.id && answer.status) return answer as Action;
  throw new Unreachable("the answer is no action of Gatehouse: is the address right?");
}

function given(name: string, option: string | undefined, variable: string): string {
  const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
  const value = (option || process?.env[variable] || "").trim();
  if (!value) throw new TypeError(`pass ${name}, or set ${variable}`);
  if (!/^[ -~]*$/.test(value)) throw new TypeError(`the ${name} has characters that are not printable ASCII`);
  return value;
}
