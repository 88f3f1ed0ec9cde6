/**
 * The types of requests and answers: the members of the API's objects that agents and
 * workers use. A test compares them with the document at /openapi.json.
 */
import type { Json } from "./json.ts";

/** The target of a change: one entity, or several in entity_refs. */
export interface Target {
  entity_type: string;
  entity_ref?: string;
  entity_refs?: string[];
  /** The version that the agent read. */
  version?: string;
}

/** An agent's proposal. The document at /openapi.json describes each member. */
export interface Proposal {
  action_type: string;
  connector: string;
  operation: string;
  target: Target;
  proposed_change: Json;
  current_state?: Json;
  rationale?: string;
  /** 1 to 5. It can only raise the level that the server sets. */
  risk_level?: number;
  magnitude?: { amount: string; currency?: string };
  on_behalf_of?: string;
  evaluations?: Evaluation[];
  /** A text diff, for the people who decide. */
  artifact_diff?: ArtifactDiff;
  context?: Json;
  /** Such as 4h. It can only shorten the policy's time. */
  expires_in?: string;
  /** Called once the action is decided, and once it is finished. */
  callback?: Callback;
  metadata?: Json;
  /** Derive it from the task: a second proposal with the same key and content is the same action. */
  idempotency_key?: string;
}

export interface Evaluation {
  name: string;
  kind: string;
  result: string;
  confidence?: number | null;
  details?: string;
}

export interface ArtifactDiff {
  /** The format of text, such as unified_diff. */
  type: string;
  text?: string;
  summary?: string;
  lines_added?: number;
  lines_removed?: number;
}

/** Where the gate tells the outcome of an action: url of a webhook, subject of nats, the others of step_functions. */
export interface Callback {
  type: "webhook" | "nats" | "step_functions";
  url?: string;
  subject?: string;
  task_token?: string;
  execution_arn?: string;
  on?: "decided" | "finished";
  /** The HeartbeatSeconds of the state that waits, such as 60s. */
  heartbeat?: string;
}

export type Status =
  | "pending" | "approved" | "rejected" | "denied" | "expired" | "canceled" | "superseded"
  | "pushing" | "applied" | "failed" | "unknown" | "reversed";

/** A stored proposal and its state. */
export interface Action {
  id: string;
  revision: number;
  tenant: string;
  status: Status;
  action_type: string;
  connector: string;
  operation: string;
  target: Target;
  current_state?: unknown;
  proposed_change: unknown;
  rationale?: string;
  /** The level that the server set. */
  risk_level?: number;
  idempotency_key?: string;
  digest: string;
  policy: { outcome: string; rules?: string[] | null; reasons?: string[] | null; version?: number };
  approval: Approval | null;
  push: { id: string; status: string; attempts: number } | null;
  receipt: Receipt | null;
  failure?: Failure | null;
  supersedes?: string;
  superseded_by?: string;
  /** The reviewer who edited the change; absent for the proposer's own change. */
  edited_by?: string;
  edit?: Edit;
  repeats?: string;
  /** The conversation, in order. */
  comments?: Comment[] | null;
  proposed_by: string;
  proposed_at: string;
  decided_by?: string;
  decided_at?: string;
  decided_via?: string;
}

/** A comment on an action; answers is the number of the question that an answer belongs to. */
export interface Comment {
  number: number;
  kind: string;
  answers?: number;
  text: string;
  author: string;
  author_id: string;
  at: string;
}

/** A reviewer's edits of the proposer's change, with the reason. */
export interface Edit {
  by_id: string;
  note: string;
  /** The last action with the proposer's own change. */
  of: string;
  changes: { path: string; before?: unknown; after?: unknown }[];
}

export interface Approval {
  id: string;
  status: string;
  required: number;
  expires_at: string;
  votes: Vote[];
}

export interface Vote {
  name: string;
  decision: "approved" | "rejected";
  notes?: string;
  via: string;
  at: string;
}

/** The record of an attempt and its outcome. */
export interface Receipt {
  id: string;
  attempt: number;
  outcome: string;
  external_id?: string;
  response_metadata: unknown;
  reversible: boolean;
}

export interface Failure {
  code: string;
  detail: string;
  target_says?: string;
  /** never, later or operator. */
  retry?: string;
}

/** The right to carry out a change until a time; generation proves it. */
export interface Lease {
  generation: number;
  expires_at: string;
}

/** An approved change, with a lease to carry it out once. */
export interface LeasedPush {
  push: { id: string; connector: string } | null;
  action_id: string;
  action_type: string;
  operation: string;
  target: Target;
  current_state?: unknown;
  proposed_change: unknown;
  idempotency_key: string;
  digest: string;
  attempt: number;
  lease: Lease;
}

export interface LeaseState extends Lease {
  /** The holder is asked to stop. */
  cancel: boolean;
}

export interface LeaseRequest {
  connectors: string[];
  /** Limits the lease to these operations of the connectors that are named here. */
  operations?: Record<string, string[]>;
  /** Limits the lease to changes that this key's principal proposed. */
  own?: boolean;
  /** Limits the lease to changes that the principal with this name or id proposed. */
  proposed_by?: string;
  max?: number;
  /** Such as 30s; 60s at most. */
  wait?: string;
  lease?: string;
  worker?: string;
}

/** The evidence of an applied change. */
export interface PushResult {
  external_id?: string;
  request_metadata?: Json;
  response_metadata?: Json;
  /** The change that would reverse this one. */
  reversal?: Reversal;
}

/** A change of the same connector, with the target's version and state after the change that it reverses. */
export interface Reversal {
  operation: string;
  target: Target;
  current_state?: Json;
  proposed_change: Json;
}

/** A failed call; kind says what is known about its effect. */
export interface PushFailure {
  kind: "terminal" | "transient" | "not_sent" | "ambiguous";
  code: string;
  detail: string;
  target_says?: string;
  /** The least wait before the next attempt, such as 30s; 24h at most. */
  retry_after?: string;
}

/** A refused request (RFC 9457). Use code to distinguish errors; the texts may change. */
export interface Problem {
  code: string;
  detail?: string;
  retryable?: boolean;
  errors?: { pointer: string; detail: string }[] | null;
}
