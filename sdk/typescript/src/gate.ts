/**
 * Puts functions behind the gate. A call becomes a proposal. The option run says what
 * carries it out:
 *
 * - "function": the connector is of type worker, and the function itself runs under a
 *   lease, with the approved arguments from the gate, not with those of the call.
 * - "connector": the function has no effect of its own. It returns the proposed change,
 *   and the connector carries it out.
 *
 * Equal calls have the same idempotency key, so they become one action. Their rationale and
 * current_state must be equal too: the gate refuses a known key with other content (409
 * duplicate_key).
 */
import { Client, leftUntil, now, seconds, sleep, underWay } from "./client.ts";
import { APIError, GatehouseError, NoEffect, NoResult, outcomeOf, Unreachable } from "./errors.ts";
import { canonical, parse, stringify, survives, type Json } from "./json.ts";
import type { Action, LeasedPush, Proposal, PushFailure, Target } from "./types.ts";

const longestResult = 12 << 10; // bytes; a receipt holds 16 KiB
const longestDetail = 1000; // characters
const longestCode = 64; // bytes

export interface GateOptions {
  client?: Client;
  /** How long a call waits, in seconds; 3600 by default. */
  patience?: number;
  /** How long a lease lasts without a heartbeat, in seconds; 60 by default. */
  lease?: number;
}

export interface ToolOptions<A> {
  action_type: string;
  /** entity_type/{argument}, or a function of the arguments. */
  target: string | ((args: A) => Target);
  connector: string;
  /** The function's name by default. */
  operation?: string;
  run?: "function" | "connector";
  /** Identifies the effect; by default it is derived from connector, operation, target and change. */
  key?: (args: A) => string;
  rationale?: string | ((args: A) => string);
  current_state?: (args: A) => Json;
}

/** The call that a gated function carries out. */
export interface Call {
  actionId: string;
  /** The same in all attempts: pass it to whatever the function calls. */
  idempotencyKey: string;
  attempt: number;
  /** Aborted when the lease is lost or was not extended in time, or when the holder is asked to stop. */
  signal: AbortSignal;
}

export interface ToolCallOptions {
  /** Identifies this call's effect, such as run and tool call; it replaces the tool's own key. */
  key?: string;
  /** Ends the wait, but does not withdraw the action. */
  signal?: AbortSignal;
}

/** A function behind the gate. */
export interface Gated<A, R> {
  /** Proposes, waits, and returns the result. It throws a NotApplied if the action has no effect. */
  (args: A, options?: ToolCallOptions): Promise<R>;
  /** Proposes without waiting. The same call, made later, joins the action. */
  propose(args: A, options?: ToolCallOptions): Promise<Action>;
  /**
   * Proposes and waits for the decision only, for a framework that asks before it calls.
   * It throws Waiting when nobody has decided in time, which is not a rejection.
   */
  ask(args: A, options?: ToolCallOptions): Promise<Answer>;
}

/** A decision. reason is a text for the model. */
export interface Answer {
  approved: boolean;
  reason: string;
  action: Action;
}

/** Wraps functions. */
export class Gate {
  readonly client: Client;
  readonly #patience: number;
  readonly #lease: number;
  readonly #tools = new Map<string, Map<string, Tool>>(); // by connector and operation

  constructor(options: GateOptions = {}) {
    this.client = options.client ?? new Client();
    this.#patience = options.patience ?? 3600;
    this.#lease = options.lease ?? 60;
  }

  /** Wraps a function, which may be async. Its argument is an object of JSON values. */
  tool<A extends object>(options: ToolOptions<A> & { run: "connector" },
    fn: (args: A) => Json | Promise<Json>): Gated<A, Action>;
  tool<A extends object, R>(options: ToolOptions<A> & { run?: "function" },
    fn: (args: A, call: Call) => R | Promise<R>): Gated<A, R>;
  tool<A extends object>(options: ToolOptions<A>, fn: (args: A, call: Call) => unknown): Gated<A, unknown> {
    const tool = new Tool(options as ToolOptions<object>, fn as Tool["fn"]);
    if (!tool.byConnector) {
      const tools = this.#tools.get(tool.connector) ?? new Map<string, Tool>();
      if (tools.has(tool.operation)) {
        throw new TypeError(`${tool.connector} has a function for ${tool.operation} already`);
      }
      this.#tools.set(tool.connector, tools.set(tool.operation, tool));
    }
    const propose = async (args: A, { key, signal }: ToolCallOptions = {}): Promise<Action> =>
      this.client.propose(await tool.proposal(args, key), { signal });
    const gated = async (args: A, options: ToolCallOptions = {}): Promise<unknown> => {
      const end = now() + this.#patience;
      return this.#go(tool, await propose(args, options), end, options.signal);
    };
    const ask = async (args: A, options: ToolCallOptions = {}): Promise<Answer> => {
      const end = now() + this.#patience;
      let action = await propose(args, options);
      for (;;) {
        action = await this.client.wait(action.id, { until: "decided", patience: end - now(), signal: options.signal });
        if (action.status !== "superseded" || !action.superseded_by) break;
        action = await this.client.get(action.superseded_by, { patience: leftUntil(end), signal: options.signal });
      }
      const failed = outcomeOf(action);
      if (action.status === "pending") throw failed;
      const approved = underWay(action) || failed === undefined;
      return { approved, reason: approved ? "approved" : String(failed?.message), action };
    };
    return Object.assign(gated, { propose, ask });
  }

  /**
   * Carries out approved actions of this gate's functions until signal is aborted. Use it in
   * a worker process. own limits it to actions that its own principal proposed. It throws
   * APIError when the gate refuses the worker itself, or its report of a result.
   */
  async work(signal: AbortSignal, options: { own?: boolean } = {}): Promise<void> {
    while (!signal.aborted) {
      try {
        const pushes = await this.#leased([...this.#tools.keys()], options.own ?? false, "5s", signal);
        for (const push of pushes) await this.#carryOut(push, new Map());
      } catch (error) {
        if (signal.aborted) return;
        await sleep(pauseAfter(error, 2), signal).catch(() => undefined);
      }
    }
  }

  /** Waits, carries out, and returns the result or throws. */
  async #go(tool: Tool, action: Action, end: number, signal: AbortSignal | undefined): Promise<unknown> {
    const mine = new Map<string, Ran>();
    let works = !tool.byConnector;
    for (;;) {
      while (action.status === "superseded" && action.superseded_by) {
        action = await this.client.get(action.superseded_by, { patience: leftUntil(end), signal });
      }
      const patience = end - now();
      if (patience <= 0 || !(action.status === "pending" || underWay(action))) break;
      const waiting = { wait: Math.min(60, patience), patience, signal };
      if (action.status === "pending") action = await this.client.get(action.id, { ...waiting, until: "decided" });
      else if (!works) action = await this.client.get(action.id, waiting);
      else {
        works = await this.#workOnce(tool.connector, end, mine, signal);
        action = await this.client.get(action.id, { patience: leftUntil(end), signal });
      }
    }
    const ran = mine.get(action.id);
    const failed = outcomeOf(action, ran?.error);
    if (failed) throw failed;
    if (tool.byConnector) return action;
    return ran && !("error" in ran) ? ran.result : kept(action);
  }

  /** Carries out any push that can be leased, also of other calls; false: the gate leaves it to other workers. */
  async #workOnce(connector: string, end: number, mine: Map<string, Ran>,
    signal: AbortSignal | undefined): Promise<boolean> {
    let pushes: LeasedPush[] = [];
    try {
      pushes = await this.#leased([connector], true, "1s", signal);
      for (const push of pushes) await this.#carryOut(push, mine);
    } catch (error) {
      signal?.throwIfAborted();
      if (pushes.length === 0 && error instanceof APIError &&
        ["role_required", "worker_not_allowed"].includes(error.code)) return false;
      await sleep(Math.min(pauseAfter(error, 1), Math.max(0, end - now())), signal);
    }
    return true;
  }

  /**
   * Leases pushes of the operations that have a function: other programs carry out the rest. A connector with more
   * functions than a request may name is left out of operations.
   */
  async #leased(connectors: string[], own: boolean, wait: string, signal: AbortSignal | undefined):
    Promise<LeasedPush[]> {
    const operations: Record<string, string[]> = {};
    for (const connector of connectors) {
      const names = [...this.#tools.get(connector)?.keys() ?? []];
      if (names.length > 0 && names.length <= 50) operations[connector] = names;
    }
    const request = { connectors, own, wait, lease: seconds(this.#lease) };
    try {
      return await this.client.leasePushes({ ...request, operations }, { signal });
    } catch (error) {
      if (!(error instanceof APIError && error.code === "malformed")) throw error; // by a server of 0.1.0
      return this.client.leasePushes(request, { signal });
    }
  }

  /** Runs a push's function under its lease, and reports the result. */
  async #carryOut(leased: LeasedPush, mine: Map<string, Ran>): Promise<void> {
    const { push, lease: { generation } } = leased;
    if (!push) return;
    const tool = this.#tools.get(push.connector)?.get(leased.operation);
    const stop = new AbortController();
    const lease = { until: now() + this.#lease };
    const heart = setInterval(() => void this.#beat(push.id, generation, lease, stop), (this.#lease / 3) * 1000);
    let expiry = setTimeout(function check() {
      const left = lease.until - now();
      if (left > 0) expiry = setTimeout(check, left * 1000);
      else stop.abort(new Unreachable("the lease ended: the gate could not be reached to extend it"));
    }, this.#lease * 1000);
    try {
      const ran: Ran = tool
        ? await tool.execute(leased, stop.signal)
        : { error: new NoEffect(`no function for ${leased.operation} here`, { code: "no_function", retry: true }) };
      mine.set(leased.action_id, ran);
      await this.#report(push.id, generation, ran, lease);
    } catch (error) {
      // After a lost lease, the action has the outcome.
      if (!(error instanceof APIError && error.code === "lease_lost")) throw error;
    } finally {
      clearInterval(heart);
      clearTimeout(expiry);
    }
  }

  /** Reports the result until the gate answers or the lease has ended. */
  async #report(push: string, generation: number, ran: Ran, lease: { until: number }): Promise<void> {
    for (;;) {
      const options = { patience: Math.max(0, lease.until - now()) };
      try {
        if ("error" in ran) await this.client.failPush(push, generation, failure(ran.error), options);
        else await this.client.completePush(push, generation, { response_metadata: receipt(ran.result) }, options);
        return;
      } catch (error) {
        pauseAfter(error, 0); // throws a refusal
        if (lease.until <= now()) throw error;
      }
    }
  }

  /** Extends a lease. A lost lease is also noticed when the outcome is reported. */
  async #beat(push: string, generation: number, lease: { until: number }, stop: AbortController): Promise<void> {
    try {
      const start = now(); // the duration of the request counts against the lease that it asks for
      const state = await this.client.heartbeatPush(push, generation, this.#lease);
      lease.until = Math.max(lease.until, start + this.#lease);
      if (state.cancel) stop.abort(new GatehouseError("the gate asks to stop"));
    } catch (error) {
      if (error instanceof APIError && error.code === "lease_lost") stop.abort(error);
    }
  }
}

/** The result or the error of a function. */
type Ran = { result: unknown; error?: never } | { error: unknown; result?: never };

/** A function, with the rules by which a call becomes a proposal. */
class Tool {
  readonly connector: string;
  readonly operation: string;
  readonly byConnector: boolean;
  readonly fn: (args: object, call?: Call) => unknown;
  readonly #options: ToolOptions<object>;

  constructor(options: ToolOptions<object>, fn: Tool["fn"]) {
    this.connector = options.connector;
    this.operation = options.operation ?? fn.name;
    if (!this.operation) throw new TypeError("a function without a name needs an operation");
    if (/Generator/.test(Object.prototype.toString.call(fn))) {
      throw new TypeError("a gated function cannot be a generator: a call would not run its body");
    }
    if (!["function", "connector", undefined].includes(options.run)) {
      throw new TypeError('run must be "function" or "connector"');
    }
    this.byConnector = options.run === "connector";
    this.fn = fn;
    this.#options = options;
  }

  async proposal(args: object, key?: string): Promise<Proposal> {
    const own = checked("the arguments", args);
    const change = this.byConnector ? checked("the proposed change", await this.fn(own)) : own;
    const { action_type, rationale, current_state } = this.#options;
    const out: Proposal = {
      action_type, connector: this.connector, operation: this.operation, target: this.#target(own),
      proposed_change: change as Json,
    };
    const why = typeof rationale === "function" ? rationale(own) : rationale;
    if (why) out.rationale = why;
    if (current_state) out.current_state = current_state(own);
    out.idempotency_key = key ?? this.#options.key?.(own) ?? (await digest(out));
    return out;
  }

  /** Runs the function with the approved arguments, which must name the approved target. */
  async execute(push: LeasedPush, signal: AbortSignal): Promise<Ran> {
    let args: object;
    try {
      args = checked("the approved arguments", push.proposed_change);
      if (names(this.#target(args)) !== names(push.target)) {
        return { error: new NoEffect("the approved arguments name another target", { code: "other_target" }) };
      }
    } catch (error) { // the function has not run yet
      return { error: new NoEffect(`the approved arguments do not fit: ${text(error)}`, { code: "wrong_arguments" }) };
    }
    const call = { actionId: push.action_id, idempotencyKey: push.idempotency_key, attempt: push.attempt, signal };
    try {
      return { result: await this.fn(args, call) };
    } catch (error) {
      return { error };
    }
  }

  #target(args: object): Target {
    const { target } = this.#options;
    if (typeof target === "function") return target(args);
    const [entity_type = "", ...ref] = target.split("/");
    const entity_ref = ref.join("/").replace(/\{([^{}]*)\}/g, (_, name: string) => {
      const value = (args as Record<string, unknown>)[name];
      if (!["string", "number",
        "bigint"].includes(typeof value)) throw new TypeError(`no text for {${name}} of the target`);
      return String(value);
    });
    return { entity_type, entity_ref };
  }
}

/** Refuses values that JSON does not preserve, and returns a copy of the others. */
function checked(what: string, value: unknown): object {
  if (!survives(value) || typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${what} must be an object of JSON values: strings, numbers, booleans, null, arrays, plain objects`);
  }
  return parse(stringify(value)) as object;
}

async function digest(p: Proposal): Promise<string> {
  const effect = canonical([p.connector, p.operation, { ...p.target }, p.proposed_change]);
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(effect));
  return "sdk-" + Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}

function names({ entity_type, entity_ref = "", entity_refs = [] }: Target): string {
  return JSON.stringify([entity_type, entity_ref, entity_refs]);
}

function failure(error: unknown): PushFailure {
  const detail = text(error).slice(0, longestDetail).toWellFormed().replaceAll("\0", "\uFFFD");
  if (error instanceof NoEffect) {
    return { kind: error.retry ? "not_sent" : "terminal", code: clipped(error.code) || "refused", detail };
  }
  return { kind: "ambiguous", code: clipped(error instanceof Error ? error.name : "thrown") || "failed", detail };
}

/** The beginning of a code, as long as the gate accepts it. */
function clipped(code: string): string {
  const bytes = new Uint8Array(longestCode);
  const whole = String(code).replaceAll("\0", "\uFFFD");
  const { written } = new TextEncoder().encodeInto(whole, bytes); // it does not divide a character
  return new TextDecoder().decode(bytes.subarray(0, written));
}

/** What an error says; never empty. */
function text(error: unknown): string {
  return (error instanceof Error ? error.message || error.name : String(error)) || "the function failed";
}

/** The part of a result that the receipt keeps. */
function receipt(result: unknown): Json {
  if (result === undefined) return { result: null };
  // The request that reports the result nests it two levels deeper.
  if (!survives(result, 2)) return { not_kept: "the result is not JSON, or is nested too deep" };
  const bytes = new TextEncoder().encode(stringify(result)).length;
  return bytes <= longestResult ? { result } : { not_kept: "the result is too long" };
}

/** The result of an action that another call or process carried out. */
function kept(action: Action): unknown {
  const metadata = action.receipt?.response_metadata;
  if (typeof metadata !== "object" || metadata === null || !("result" in metadata)) {
    throw new NoResult(action, `${action.id} is applied, but the function's result was not stored`);
  }
  return metadata.result;
}

/** The pause in seconds after an error that another attempt may overcome; it throws any other error. */
function pauseAfter(error: unknown, otherwise: number): number {
  if (error instanceof Unreachable) return otherwise;
  if (error instanceof APIError && error.retryable) return error.retryAfter ?? otherwise;
  throw error;
}
