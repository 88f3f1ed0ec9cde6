/** The errors of this package. */
import type { Action, Problem } from "./types.ts";

/** Any error of this package. */
export class GatehouseError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** The gate gave no whole answer. Whether it acted on the request is not known. */
export class Unreachable extends GatehouseError {}

/** A webhook is not signed right, or is too old. */
export class InvalidSignature extends GatehouseError {}

/** The gate refused a request. Decide by code; the texts may change. */
export class APIError extends GatehouseError {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly retryable: boolean;
  readonly errors: { pointer: string; detail: string }[];
  /** In seconds, when the gate said so. */
  readonly retryAfter: number | undefined;
  readonly problem: Problem;

  constructor(status: number, problem: Problem, retryAfter?: number) {
    const errors = problem.errors ?? [];
    const where = errors.map((e) => `${e.pointer}: ${e.detail}`).join("; ");
    super([problem.code, problem.detail, where].filter(Boolean).join(": "));
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
 * Thrown by a gated function that has changed nothing, and knows it. retry says that
 * another attempt at the same call may succeed. Anything else that a gated function
 * throws leaves the outcome unknown.
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

/** The action came to no effect that is known; action is how it stands. */
export class NotApplied extends GatehouseError {
  readonly action: Action;

  constructor(action: Action, words: string, options?: ErrorOptions) {
    super(words, options);
    this.action = action;
  }
}

/** The policy forbids it; reasons says why. */
export class Denied extends NotApplied {
  readonly reasons: string[];

  constructor(action: Action) {
    const reasons = action.policy.reasons ?? [];
    super(action, `denied: ${reasons.join("; ")}`);
    this.reasons = reasons;
  }
}

/** A person said no; notes holds their words. */
export class Rejected extends NotApplied {
  readonly notes: string[];

  constructor(action: Action) {
    const votes = action.approval?.votes ?? [];
    const notes = votes.flatMap((v) => (v.decision === "rejected" && v.notes ? [v.notes] : []));
    super(action, `rejected: ${notes.join("; ") || "no reason given"}`);
    this.notes = notes;
  }
}

/** Nobody decided in time. */
export class Expired extends NotApplied {}

/** It was taken back. */
export class Canceled extends NotApplied {}

/** It was applied, and undone later. */
export class Reversed extends NotApplied {}

/** It is not finished yet, and goes on: the same call made again joins it. */
export class Waiting extends NotApplied {}

/** It was applied, and what the function returned then was not kept. */
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

/** Approved, and it came to nothing. */
export class Failed extends Settled {}

/** It may have taken effect. A person looks into it; never propose it again by yourself. */
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
      return new Canceled(action, "canceled: it was taken back");
    case "superseded":
      return new Canceled(action, `superseded by ${action.superseded_by ?? "another action"}`);
    case "reversed":
      return new Reversed(action, "reversed: it was applied, and undone later");
    default:
      return new Waiting(action, `${action.status}: ${action.id} is not finished yet`);
  }
}
