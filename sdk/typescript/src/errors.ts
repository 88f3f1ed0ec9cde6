/** The errors of this package. */
import type { Action, Problem } from "./types.ts";

/** Any error of this package. */
export class GatehouseError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** The gate gave no complete answer. It may or may not have acted on the request. */
export class Unreachable extends GatehouseError {}

/** A webhook has no valid signature, or is too old. */
export class InvalidSignature extends GatehouseError {}

/** The gate refused a request. Use code to distinguish errors; the texts may change. */
export class APIError extends GatehouseError {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly retryable: boolean;
  readonly errors: { pointer: string; detail: string }[];
  /** In seconds, if the gate sent a Retry-After header. */
  readonly retryAfter: number | undefined;
  readonly problem: Problem;

  constructor(status: number, problem: Problem, retryAfter?: number) {
    const errors = problem.errors ?? [];
    const said = new Set([problem.detail, ...errors.map((e) => `${e.pointer} ${e.detail}`.trim())]);
    super([problem.code, [...said].filter(Boolean).join("; ")].filter(Boolean).join(": "));
    this.status = status;
    this.code = problem.code;
    this.detail = problem.detail ?? "";
    this.retryable = problem.retryable ?? false;
    this.errors = errors;
    this.retryAfter = retryAfter;
    this.problem = problem;
  }
}

/**
 * Thrown by a gated function that has certainly changed nothing. retry says that another
 * attempt at the same call may succeed. Any other error of a gated function leaves the
 * outcome unknown.
 */
export class NoEffect extends GatehouseError {
  readonly code: string;
  readonly retry: boolean;

  constructor(detail: string, { code = "refused", retry = false }: { code?: string; retry?: boolean } = {}) {
    super(detail);
    this.code = code;
    this.retry = retry;
  }
}

/** The call has no result; action is its present state. Except for NoResult, it has no known, lasting effect. */
export class NotApplied extends GatehouseError {
  readonly action: Action;

  constructor(action: Action, words: string, options?: ErrorOptions) {
    super(words, options);
    this.action = action;
  }
}

/** The policy forbids the action; reasons says why. */
export class Denied extends NotApplied {
  readonly reasons: string[];

  constructor(action: Action) {
    const reasons = action.policy.reasons ?? [];
    super(action, `denied: ${reasons.join("; ")}`);
    this.reasons = reasons;
  }
}

/** A person rejected the action; notes holds their notes. */
export class Rejected extends NotApplied {
  readonly notes: string[];

  constructor(action: Action) {
    const votes = action.approval?.votes ?? [];
    const notes = votes.flatMap((v) => (v.decision === "rejected" && v.notes ? [v.notes] : []));
    super(action, `rejected: ${notes.join("; ") || "no reason given"}`);
    this.notes = notes;
  }
}

/** Nobody decided the action in time. */
export class Expired extends NotApplied {}

/** The action was withdrawn. */
export class Canceled extends NotApplied {}

/** The action was applied, and later reversed. */
export class Reversed extends NotApplied {}

/** The action is not finished yet, and continues. The same call, made again, joins it. */
export class Waiting extends NotApplied {}

/** The action was applied, but the function's result was not stored. */
export class NoResult extends NotApplied {}

class Settled extends NotApplied {
  readonly code: string;
  readonly detail: string;
  readonly targetSays: string;
  /** never, later or operator. */
  readonly retry: string;

  constructor(action: Action, options?: ErrorOptions) {
    const { code = "", detail = "", target_says = "", retry = "" } = action.failure ?? {};
    super(action, `${action.status}: ${[code, detail, target_says].filter(Boolean).join(": ")}`, options);
    this.code = code;
    this.detail = detail;
    this.targetSays = target_says;
    this.retry = retry;
  }
}

/** The action was approved but had no effect. */
export class Failed extends Settled {}

/** The action may have taken effect. A person investigates; never propose it again automatically. */
export class Unknown extends Settled {}

/** Returns the error for an action that is not applied, and undefined for one that is. */
export function outcomeOf(action: Action, cause?: unknown): NotApplied | undefined {
  const options = cause === undefined ? undefined : { cause };
  switch (action.status) {
    case "applied":
      return undefined;
    case "denied":
      return new Denied(action);
    case "rejected":
      return new Rejected(action);
    case "failed":
      return new Failed(action, options);
    case "unknown":
      return new Unknown(action, options);
    case "expired":
      return new Expired(action, "expired: nobody decided in time");
    case "canceled":
      return new Canceled(action, "canceled: the action was withdrawn");
    case "superseded":
      return new Canceled(action, `superseded by ${action.superseded_by ?? "another action"}`);
    case "reversed":
      return new Reversed(action, "reversed: the action was applied, and later reversed");
    default:
      return new Waiting(action, `${action.status}: ${action.id} is not finished yet`);
  }
}
