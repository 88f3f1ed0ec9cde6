/**
 * Compiles only while the types of this package agree with the API's document: the gate's
 * answers fit the declared types, the declared requests fit the gate's, and the document
 * knows every declared member.
 */
import type { components } from "./openapi.gen.ts";
import type * as ours from "@gatehouse-dev/gatehouse";

type Theirs = components["schemas"];
type Fits<Given extends Wanted, Wanted> = Given;
type Known<A, B> = Exclude<keyof A, keyof B> extends never ? true : { unknown: Exclude<keyof A, keyof B> };
/** In the document, a JSON value of a request has the type any. */
type Sent<T> = { [K in keyof T]: T[K] };

export type Received = [
  Fits<Theirs["Action"], ours.Action>, Fits<Theirs["LeasedPush"], ours.LeasedPush>,
  Fits<Theirs["LeaseState"], ours.LeaseState>, Fits<Theirs["Problem"], ours.Problem>,
];

export type Given = [
  Fits<Sent<ours.Proposal>, Theirs["Proposal"]>, Fits<Sent<ours.LeaseRequest>, Theirs["PushLeaseRequest"]>,
  Fits<Sent<ours.PushResult> & { generation: number }, Theirs["PushResult"]>,
  Fits<Sent<ours.PushFailure> & { generation: number }, Theirs["PushFailure"]>,
];

export const known: [
  Known<ours.Action, Theirs["Action"]>, Known<ours.Proposal, Theirs["Proposal"]>, Known<ours.Target, Theirs["Target"]>,
  Known<ours.Evaluation, Theirs["Evaluation"]>, Known<ours.Approval, Theirs["Approval"]>, Known<ours.Vote,
    Theirs["Vote"]>,
  Known<ours.Receipt, Theirs["Receipt"]>, Known<ours.Failure, Theirs["Failure"]>,
  Known<ours.LeasedPush, Theirs["LeasedPush"]>, Known<ours.LeaseState, Theirs["LeaseState"]>,
  Known<ours.LeaseRequest, Theirs["PushLeaseRequest"]>, Known<ours.PushResult, Theirs["PushResult"]>,
  Known<ours.PushFailure, Theirs["PushFailure"]>, Known<ours.Problem, Theirs["Problem"]>,
  Known<ours.ArtifactDiff, Theirs["ArtifactDiff"]>, Known<ours.Callback, Theirs["Callback"]>,
  Known<ours.Reversal, Theirs["Reversal"]>,
] = [true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true];

/** The types have every member of a request, except the one that the server sets and the one that the client sets. */
export const declared: [
  Known<Theirs["Proposal"], ours.Proposal>, Known<Omit<Theirs["Callback"], "task_token_hash">, ours.Callback>,
  Known<Theirs["ArtifactDiff"], ours.ArtifactDiff>, Known<Theirs["Reversal"], ours.Reversal>,
  Known<Theirs["PushLeaseRequest"], ours.LeaseRequest>,
  Known<Omit<Theirs["PushResult"], "generation">, ours.PushResult>,
  Known<Omit<Theirs["PushFailure"], "generation">, ours.PushFailure>,
] = [true, true, true, true, true, true, true];
