/** A client for the API that retries calls safely. */
import { APIError, Unreachable } from "./errors.ts";
import { parse, stringify } from "./json.ts";
import type {
  Action, Comment, LeasedPush, LeaseRequest, LeaseState, Problem, Proposal, PushFailure, PushResult,
} from "./types.ts";

const longestPause = 30; // seconds
const longestWaitPause = 10; // seconds, while a wait outlasts an outage

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
  /**
   * Sent with a POST, so that retries have one effect. With null, none is sent and the call is not retried.
   * Pass null for a route that ignores the key: /openapi.json has the header Idempotency-Key for the others.
   */
  idempotencyKey?: string | null;
  /** The time of a long poll, in seconds; 0 by default. */
  wait?: number;
  /** In seconds, for each attempt after its wait; 60 by default. */
  timeout?: number;
  /** Retries the call for that many seconds, instead of the client's retries. The last attempt does not wait. */
  patience?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  until?: "decided" | "finished";
  patience?: number | undefined;
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

  /**
   * Proposes a change. A known idempotency_key with the same content returns the first call's action; with
   * other content, such as another rationale, the error is 409 duplicate_key.
   */
  async propose(proposal: Proposal, options: { signal?: AbortSignal | undefined } = {}): Promise<Action> {
    return checked(await this.call("POST", "/proposed-actions", proposal, options));
  }

  /**
   * Returns an action as soon as it is decided or finished, or after wait seconds (at most 60). With
   * questionsAfter, an open question with a higher number ends the wait too. With patience, the call
   * is retried for that many seconds, instead of the client's retries.
   */
  async get(
    id: string, options: WaitOptions & { wait?: number; questionsAfter?: number | undefined } = {},
  ): Promise<Action> {
    const { wait = 0, until = "finished", patience, signal, questionsAfter } = options;
    const query: Record<string, string> = wait > 0 ? { until } : {};
    if (wait > 0 && questionsAfter !== undefined) query["questions_after"] = String(questionsAfter);
    const call = { query, wait, timeout: 30, patience, signal };
    return checked(await this.call("GET", path("proposed-actions", id), undefined, call));
  }

  /**
   * Waits until an action is decided or finished, for at most patience seconds (3600 by
   * default), and returns it in its state at that time: check its status. answer gets each question
   * of a reviewer once, and returns the answer, or null to leave it open.
   *
   * The wait outlasts restarts and outages of the gate. If it still does not answer after patience
   * seconds, the error is Unreachable, or the APIError of its last answer.
   */
  async wait(id: string, options: WaitOptions & { answer?: Answerer } = {}): Promise<Action> {
    const { patience = 3600, until = "finished", signal, answer } = options;
    let seen = 0;
    const end = now() + patience;
    for (;;) {
      const wait = Math.max(0, Math.min(60, end - now()));
      const questionsAfter = answer ? seen : undefined;
      const action = await this.get(id, { wait, until, signal, questionsAfter, patience: leftUntil(end) });
      for (const question of answer ? openQuestions(action) : []) {
        if (question.number <= seen) continue;
        seen = question.number;
        const text = await answer?.(question);
        if (text) await this.answer(id, seen, text, { patience: leftUntil(end), signal }).catch(unlessDecided);
      }
      const open = action.status === "pending" || (until === "finished" && underWay(action));
      if (!open || end <= now()) return action;
    }
  }

  /** Answers a reviewer's question about a pending action of the caller's. It decides nothing. */
  answer(
    id: string, question: number, text: string, options: Pick<CallOptions, "patience" | "signal"> = {},
  ): Promise<Action> {
    const body = { kind: "answer", answers: question, text };
    return this.call("POST", path("proposed-actions", id, "comments"), body, options);
  }

  /**
   * Withdraws a pending action. Once it is decided, the error is 409 too_late; during the hold of a
   * rejection, 409 already_decided.
   */
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

  /** Extends a lease by lease seconds. If cancel is true in the answer, the holder should stop. */
  heartbeatPush(id: string, generation: number, lease = 60): Promise<LeaseState> {
    const body = { generation, lease: seconds(lease) };
    return this.call("POST", path("pushes", id, "heartbeat"), body, { idempotencyKey: null });
  }

  /** Reports that a change was applied, with the evidence. patience is that of get. */
  completePush(
    id: string, generation: number, result: PushResult = {}, options: Pick<CallOptions, "patience" | "signal"> = {},
  ): Promise<unknown> {
    return this.call("POST", path("pushes", id, "complete"), { generation, ...result }, options);
  }

  /** Reports that a call failed. patience is that of get. */
  failPush(
    id: string, generation: number, failure: PushFailure, options: Pick<CallOptions, "patience" | "signal"> = {},
  ): Promise<unknown> {
    return this.call("POST", path("pushes", id, "fail"), { generation, ...failure }, options);
  }

  /**
   * Makes a call with JSON in both directions and without an edit token, such as ("GET", "/runs"). GET and
   * POST are retried, PUT and DELETE are not.
   */
  async call<T>(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown,
    options: CallOptions = {}): Promise<T> {
    const { query = {}, wait = 0, timeout = 60, patience, signal } = options;
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
    const patient = patience !== undefined;
    const end = patient ? now() + patience : Infinity;
    for (let attempt = 0; ; attempt++) {
      const left = Math.max(0, end - now());
      const poll = Math.min(wait, left);
      const search = new URLSearchParams(poll > 0 ? { ...query, wait: seconds(poll) } : query).toString();
      const url = `${this.url}/api/v1${path}${search && "?" + search}`;
      const last = (patient ? left < 0.001 : attempt >= this.#retries) || !repeatable;
      const longest = patient ? longestWaitPause : longestPause;
      let pause = Math.min(0.25 * 2 ** attempt, longest) * (0.5 + Math.random() / 2);
      const limits = AbortSignal.timeout(Math.ceil((poll + timeout) * 1000));
      init.signal = signal ? AbortSignal.any([signal, limits]) : limits;
      try {
        const answer = await fetch(url, init);
        const text = await answer.text();
        if (answer.ok) return parse(text) as T;
        throw refusal(answer, text);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof APIError) {
          if (last || !error.retryable || (!patient && (error.retryAfter ?? 0) > longestPause)) throw error;
          pause = Math.max(pause, Math.min(error.retryAfter ?? 0, longestPause));
        } else if (last) {
          const over = patient ? "patience is over: " : "";
          throw new Unreachable(`${over}${method} ${path}: ${reason(error)}`, { cause: error });
        }
      }
      await sleep(Math.min(pause, Math.max(0, end - now())), signal);
    }
  }
}

/** Ignores the refusal of an answer to a question about an action that was decided or has expired meanwhile. */
function unlessDecided(error: unknown): void {
  if (!(error instanceof APIError && ["already_decided", "expired"].includes(error.code))) throw error;
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

/** The patience until a time; undefined, which means ordinary retries, once it has passed. */
export function leftUntil(end: number): number | undefined {
  const left = end - now();
  return left > 0 ? left : undefined;
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
    }, Math.ceil(duration * 1000));
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
      detail: `the answer ${answer.status} is not from Gatehouse: is the address right?`,
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
