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

// Finished reports whether the action will not change by itself any more.
func (s Status) Finished() bool {
	switch s {
	case StatusPending, StatusApproved, StatusPushing:
		return false
	}
	return true
}

// Target names the entity, or entities, that a change is for.
type Target struct {
	EntityType string `json:"entity_type"`
	EntityRef  string `json:"entity_ref,omitempty"`
	// EntityRefs lists the keys of a bulk operation, at most [MaxEntityRefs].
	EntityRefs []string `json:"entity_refs,omitempty"`
	// Version is the target's version that the proposer saw.
	Version string `json:"version,omitempty"`
}

// Magnitude is the proposer's own claim of the size of a change. A policy may
// take it to raise, never to lower, the amount that it computes.
type Magnitude struct {
	Amount   Decimal `json:"amount"`
	Currency string  `json:"currency,omitempty"`
}

// Evaluation is an evaluator's result for the change, made before people see the change.
type Evaluation struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`                 // deterministic, probabilistic or human
	Result     string `json:"result"`               // pass, warn or fail
	Confidence JSON   `json:"confidence,omitempty"` // a number between 0 and 1, exactly as given
	Details    string `json:"details,omitempty"`
}

// ArtifactDiff is a text diff that belongs to the proposal.
type ArtifactDiff struct {
	Type         string `json:"type"`
	Text         string `json:"text,omitempty"`
	Summary      string `json:"summary,omitempty"`
	LinesAdded   *int   `json:"lines_added,omitempty"`
	LinesRemoved *int   `json:"lines_removed,omitempty"`
}

// Proposal is what an agent sends. It is stored whole and never changed.
type Proposal struct {
	ActionType     string        `json:"action_type"`
	Connector      string        `json:"connector"`
	Operation      string        `json:"operation"`
	Target         Target        `json:"target"`
	CurrentState   JSON          `json:"current_state,omitempty"`
	ProposedChange JSON          `json:"proposed_change"`
	Rationale      string        `json:"rationale,omitempty"`
	RiskLevel      RiskLevel     `json:"risk_level,omitempty"`
	Magnitude      *Magnitude    `json:"magnitude,omitempty"`
	OnBehalfOf     string        `json:"on_behalf_of,omitempty"`
	Evaluations    []Evaluation  `json:"evaluations,omitempty"`
	ArtifactDiff   *ArtifactDiff `json:"artifact_diff,omitempty"`
	Context        JSON          `json:"context,omitempty"`
	ExpiresIn      Span          `json:"expires_in,omitempty"`
	Callback       *Callback     `json:"callback,omitempty"`
	Metadata       JSON          `json:"metadata,omitempty"`
	IdempotencyKey string        `json:"idempotency_key,omitempty"`
}

// Action is a proposal as the gate holds it: judged, decided, carried out.
// The members of Proposal never change; RiskLevel is the server's.
type Action struct {
	ID       string `json:"id"`
	Revision int    `json:"revision"`
	Tenant   string `json:"tenant"`
	Proposal
	ClaimedRisk RiskLevel `json:"claimed_risk_level,omitempty"`
	// RiskName is the name that the tenant's policy gave the level when it judged
	// the action, "" for none.
	RiskName string `json:"risk_name,omitempty"`
	Status   Status `json:"status"`
	Digest   Digest `json:"digest"`
	// Fingerprint is the fingerprint of the connector's definition at the proposal.
	Fingerprint string `json:"connector_fingerprint"`
	// Declared is what the connector declared about the operation at the proposal; nil for
	// nothing.
	Declared   *Declared      `json:"declared,omitempty"`
	Policy     PolicyOutcome  `json:"policy"`
	Approval   *Approval      `json:"approval"`
	Push       *PushSummary   `json:"push"`
	Receipt    *Receipt       `json:"receipt"`
	Supersedes string         `json:"supersedes,omitempty"`
	Superseded string         `json:"superseded_by,omitempty"`
	Reverses   string         `json:"reverses,omitempty"`
	ReversedBy string         `json:"reversed_by,omitempty"`
	ProposedBy string         `json:"proposed_by"`
	ProposerID string         `json:"proposed_by_id"`
	ProposedAt time.Time      `json:"proposed_at"`
	DecidedBy  string         `json:"decided_by,omitempty"`
	DecidedAt  *time.Time     `json:"decided_at,omitempty"`
	DecidedVia Channel        `json:"decided_via,omitempty"`
	FinishedAt *time.Time     `json:"finished_at,omitempty"`
	Failure    *Failure       `json:"failure"`
	Ceilings   []CeilingClaim `json:"ceilings,omitempty"`
	// Title is the question that an approval step of a workflow asks, "" for none.
	Title string `json:"title,omitempty"`
	// Repeats is the action with the same change whose push was a dead letter when
	// this one was proposed; "" for none.
	Repeats string `json:"repeats,omitempty"`
	// RebasedBy is the name of the principal that requested the rebase, "" for an action that is
	// not a rebase.
	RebasedBy string `json:"rebased_by,omitempty"`
	// UndoneBy is the name of the person whose undo of a decision made this revision, ""
	// for none.
	UndoneBy string `json:"undone_by,omitempty"`
	// EditedBy is the name of the reviewer who edited the change, "" for the proposer's
	// own change. Edit has the differences and the reason.
	EditedBy string `json:"edited_by,omitempty"`
	Edit     *Edit  `json:"edit,omitempty"`
	// Editors are the principal ids and person ids of all editors of this revision and
	// of earlier ones.
	Editors []string `json:"editors,omitempty"`
	// CanRebase is whether a pending action can be rebased: its connector can read
	// the target. It is not stored.
	CanRebase bool `json:"can_rebase,omitempty"`
	// CanPreview is whether the target of a pending action can be asked for a
	// [Preview].
	CanPreview bool `json:"can_preview,omitempty"`
	// Exceeds lists the ceilings that a pending action would exceed now. It is not
	// stored.
	Exceeds []CeilingExcess `json:"exceeds,omitempty"`
	// ContentHash is the SHA-256 of the proposal's canonical form, to compare
	// proposals with the same idempotency_key. Answers do not show it.
	ContentHash [32]byte `json:"-"`
	// HoldFor is how long an approval rests before dispatch.
	HoldFor Duration `json:"hold,omitempty"`
	// Undoable is whether the connector says how to undo the operation; false if
	// unknown. It is not stored: each read asks the connector as configured now.
	Undoable bool `json:"undoable,omitzero"`
	// Comments are the conversation on the action, in order. Lists leave it out.
	Comments []Comment `json:"comments,omitempty"`
	// ArchivedAt is set once the action is in the archive: see ArchiveReader.
	ArchivedAt *time.Time `json:"archived_at,omitempty"`
}

// PolicyOutcome tells how the policy judged an action, and which version.
type PolicyOutcome struct {
	Outcome Outcome  `json:"outcome"`
	Rules   []string `json:"rules"`
	Reasons []string `json:"reasons"`
	Version int      `json:"version"`
}

// Failure says why an action ended as failed, or as unknown. A run's failure
// has neither TargetSays nor Retry.
type Failure struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// TargetSays is the target's own answer; see [Push].
	TargetSays string `json:"target_says,omitempty"`
	Retry      Retry  `json:"retry,omitempty"`
}
