package gatehouse

import (
	"time"
)

// Status is the state of an action; see the table in transition.go.
type Status string

// The states of an action.
const (
	StatusPending    Status = "pending"
	StatusApproved   Status = "approved"
	StatusRejected   Status = "rejected"
	StatusDenied     Status = "denied"
	StatusExpired    Status = "expired"
	StatusCanceled   Status = "canceled"
	StatusSuperseded Status = "superseded"
	StatusPushing    Status = "pushing"
	StatusApplied    Status = "applied"
	StatusFailed     Status = "failed"
	StatusUnknown    Status = "unknown"
	StatusReversed   Status = "reversed"
)

// Decided reports whether the action is no longer pending.
func (s Status) Decided() bool { return s != StatusPending }

// Finished reports whether the action changes only when somebody replays, resolves or reverses it.
func (s Status) Finished() bool {
	switch s {
	case StatusPending, StatusApproved, StatusPushing:
		return false
	}
	return true
}

// Target names the entity, or entities, that a change is for.
type Target struct {
	// EntityType is the kind of record, such as item or invoice, as the connector names it.
	EntityType string `json:"entity_type"`
	// EntityRef is the record's key at the target, "" for a new record and for a bulk operation.
	EntityRef string `json:"entity_ref,omitempty"`
	// EntityRefs lists the keys of a bulk operation, at most [MaxEntityRefs].
	EntityRefs []string `json:"entity_refs,omitempty"`
	// Version is the target's version that the proposer saw.
	Version string `json:"version,omitempty"`
}

// Magnitude is the size of a change, as the proposer claims it. A policy may use it
// to raise the amount that the policy computes, never to lower it.
type Magnitude struct {
	// Amount is a decimal number, exactly as given.
	Amount Decimal `json:"amount"`
	// Currency is an ISO 4217 code such as EUR, "" for an amount without a unit.
	Currency string `json:"currency,omitempty"`
}

// Evaluation is an evaluator's result for the change, made before people see the change.
type Evaluation struct {
	// Name is the evaluator's name, as the proposer gives it.
	Name       string `json:"name"`
	Kind       string `json:"kind"`                 // deterministic, probabilistic or human
	Result     string `json:"result"`               // pass, warn or fail
	Confidence JSON   `json:"confidence,omitempty"` // a number between 0 and 1, exactly as given
	// Details are the evaluator's words, at most [MaxTextBytes] bytes.
	Details string `json:"details,omitempty"`
}

// ArtifactDiff is a text diff that belongs to the proposal.
type ArtifactDiff struct {
	// Type is the format of Text.
	Type string `json:"type"`
	// Text is the diff itself.
	Text string `json:"text,omitempty"`
	// Summary says in short what the diff changes, at most [MaxTextBytes] bytes.
	Summary string `json:"summary,omitempty"`
	// LinesAdded is the proposer's count, nil for none; the server does not count.
	LinesAdded *int `json:"lines_added,omitempty"`
	// LinesRemoved is the same for removed lines.
	LinesRemoved *int `json:"lines_removed,omitempty"`
}

// Proposal is what an agent sends. It is stored whole and never changed.
type Proposal struct {
	// ActionType is the proposer's word for the kind of change, in lower case.
	ActionType string `json:"action_type"`
	// Connector is the name of a configured connector.
	Connector string `json:"connector"`
	// Operation is one of the connector's operations.
	Operation string `json:"operation"`
	Target    Target `json:"target"`
	// CurrentState is the pre-image, an object: the state on which the proposer based the change. ""
	// for none.
	CurrentState JSON `json:"current_state,omitempty"`
	// ProposedChange is the change itself, an object.
	ProposedChange JSON `json:"proposed_change"`
	// Rationale tells people why the change is proposed, at most [MaxTextBytes] bytes.
	Rationale string `json:"rationale,omitempty"`
	// RiskLevel is the proposer's claim, 0 for none. A claim can only raise the level.
	RiskLevel RiskLevel `json:"risk_level,omitempty"`
	// Magnitude is nil when the proposer claims no size.
	Magnitude *Magnitude `json:"magnitude,omitempty"`
	// OnBehalfOf names the person for whom the agent works; that person cannot decide. "" for none.
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
	// Evaluations lists at most [MaxEvaluations] results.
	Evaluations []Evaluation `json:"evaluations,omitempty"`
	// ArtifactDiff is nil when the proposal has no text diff.
	ArtifactDiff *ArtifactDiff `json:"artifact_diff,omitempty"`
	// Context is an object for the people who decide, "" for none.
	Context JSON `json:"context,omitempty"`
	// ExpiresIn shortens the time to decide, at most [MaxExpiry]; 0 leaves it to the policy.
	ExpiresIn Span `json:"expires_in,omitempty"`
	// Callback describes how the proposer is notified of the action's outcome; nil for no callback.
	Callback *Callback `json:"callback,omitempty"`
	// Metadata is the proposer's own object, which policies can read. "" for none.
	Metadata JSON `json:"metadata,omitempty"`
	// IdempotencyKey is unique in the tenant. The server makes one for a proposal without one.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// Action is a proposal as the gate holds it: judged, decided, carried out.
// The members of Proposal never change. The server sets some of them when the action is proposed, such
// as RiskLevel and IdempotencyKey.
type Action struct {
	ID string `json:"id"`
	// Revision counts from 1. A revision is an action of its own; see Supersedes.
	Revision int    `json:"revision"`
	Tenant   string `json:"tenant"`
	Proposal
	// ClaimedRisk is the level that the proposer claimed, 0 for none.
	ClaimedRisk RiskLevel `json:"claimed_risk_level,omitempty"`
	// RiskName is the name that the tenant's policy gave the level when it judged
	// the action, "" for none.
	RiskName string `json:"risk_name,omitempty"`
	Status   Status `json:"status"`
	// Digest is the hash that people approve; see [Digest].
	Digest Digest `json:"digest"`
	// Fingerprint is the fingerprint of the connector's definition when the action was proposed.
	Fingerprint string `json:"connector_fingerprint"`
	// Declared is what the connector declared about the operation when the action was
	// proposed; nil if it declared nothing.
	Declared *Declared `json:"declared,omitempty"`
	// Policy is the judgement when the action was proposed. It never changes.
	Policy PolicyOutcome `json:"policy"`
	// Approval is nil when the policy decided alone.
	Approval *Approval `json:"approval"`
	// Push is nil until the action is approved.
	Push *PushSummary `json:"push"`
	// Receipt is the latest receipt that is not late, nil while there is none.
	Receipt *Receipt `json:"receipt"`
	// Supersedes is the id of the revision that this one replaces, "" for the first.
	Supersedes string `json:"supersedes,omitempty"`
	// Superseded is the id of the next revision, "" for the latest.
	Superseded string `json:"superseded_by,omitempty"`
	// Reverses is the id of the action that this one undoes, "" for none.
	Reverses string `json:"reverses,omitempty"`
	// ReversedBy is the id of the applied action that has undone this one, "" for none.
	ReversedBy string `json:"reversed_by,omitempty"`
	// ProposedBy is the proposer's name.
	ProposedBy string `json:"proposed_by"`
	// ProposerID is the proposer's principal id.
	ProposerID string    `json:"proposed_by_id"`
	ProposedAt time.Time `json:"proposed_at"`
	// DecidedBy is a principal's name, or the policy's; "" before a decision, and if nobody decided.
	DecidedBy string `json:"decided_by,omitempty"`
	// DecidedAt is when the action was decided, or ended undecided; nil before.
	DecidedAt *time.Time `json:"decided_at,omitempty"`
	// DecidedVia is the channel of the decision, set by the server.
	DecidedVia Channel `json:"decided_via,omitempty"`
	// FinishedAt is nil until the action is in a finished state.
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	// Failure is nil unless the action failed, its outcome is unknown, or it was canceled
	// with [FailureWorkflowGone].
	Failure *Failure `json:"failure"`
	// Ceilings are the claims that an approval reserves.
	Ceilings []CeilingClaim `json:"ceilings,omitempty"`
	// Title is the question that an approval step of a workflow asks, "" for none.
	Title string `json:"title,omitempty"`
	// Repeats is the id of the action with the same change whose push was a dead letter when
	// the present action was proposed; "" for none.
	Repeats string `json:"repeats,omitempty"`
	// RebasedBy is the name of the principal that requested the rebase, "" for an action that is
	// not a rebase.
	RebasedBy string `json:"rebased_by,omitempty"`
	// UndoneBy is the name of the person who undid a decision and so made this
	// revision, "" for none.
	UndoneBy string `json:"undone_by,omitempty"`
	// CanceledBy is the name of the principal that canceled the action, "" for none or if unknown.
	// It is not stored, and lists leave it out.
	CanceledBy string `json:"canceled_by,omitempty"`
	// EditedBy is the name of the reviewer who edited the change, "" for the proposer's
	// own change. Edit has the differences and the reason.
	EditedBy string `json:"edited_by,omitempty"`
	// Edit is nil unless EditedBy is set.
	Edit *Edit `json:"edit,omitempty"`
	// Editors are the principal ids and person ids of all editors of this revision and
	// of earlier ones.
	Editors []string `json:"editors,omitempty"`
	// CanRebase is whether a pending action can be rebased: its connector can read
	// the target. It is not stored.
	CanRebase bool `json:"can_rebase,omitempty"`
	// CanPreview is whether the target of a pending action can give a [Preview]. It is not
	// stored.
	CanPreview bool `json:"can_preview,omitempty"`
	// Exceeds lists the ceilings that a pending action would exceed now. It is not
	// stored.
	Exceeds []CeilingExcess `json:"exceeds,omitempty"`
	// ContentHash is the SHA-256 of the proposal's canonical form, to compare
	// proposals with the same idempotency_key. Answers do not show it.
	ContentHash [32]byte `json:"-"`
	// HoldFor is how long an approved action waits before dispatch, and a held rejection before it takes effect.
	HoldFor Duration `json:"hold,omitempty"`
	// Undoable is whether the connector says how to undo the operation; false if
	// unknown. It is not stored: each read asks the connector as configured now.
	Undoable bool `json:"undoable,omitzero"`
	// Comments are the conversation on the action, in order. Lists leave them out.
	Comments []Comment `json:"comments,omitempty"`
	// ArchivedAt is set once the action is in the archive: see ArchiveReader.
	ArchivedAt *time.Time `json:"archived_at,omitempty"`
}

// PolicyOutcome is the judgement of an action by a version of the policy.
type PolicyOutcome struct {
	// Outcome is allow, deny or needs_approval.
	Outcome Outcome `json:"outcome"`
	// Rules are the ids of the rules that decided.
	Rules []string `json:"rules"`
	// Reasons are the texts of those rules.
	Reasons []string `json:"reasons"`
	// Version is the number of the policy version that judged.
	Version int `json:"version"`
}

// Failure says why an action ended as failed or unknown, or was canceled with
// [FailureWorkflowGone]. A run's failure has neither TargetSays nor Retry.
type Failure struct {
	// Code is for programs, such as target_changed.
	Code string `json:"code"`
	// Detail is for people.
	Detail string `json:"detail"`
	// TargetSays is the target's own answer; see [Push].
	TargetSays string `json:"target_says,omitempty"`
	// Retry says whether a person can send the change again.
	Retry Retry `json:"retry,omitempty"`
}
