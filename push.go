package gatehouse

import "time"

// PushStatus is the state of a push.
type PushStatus string

// The states of a push.
const (
	PushQueued   PushStatus = "queued"
	PushPicking  PushStatus = "picking"
	PushSent     PushStatus = "sent"
	PushApplied  PushStatus = "applied"
	PushFailed   PushStatus = "failed"
	PushUnknown  PushStatus = "unknown"
	PushCanceled PushStatus = "canceled"
)

// Push is the outbox row of an approved action.
type Push struct {
	ID       string `json:"id"`
	Tenant   string `json:"tenant"`
	ActionID string `json:"action_id"`
	// Connector is the connector that carries the change out.
	Connector string `json:"connector"`
	// IdempotencyKey goes to the connector with each call, so that the target can give
	// several calls of the push a single effect.
	IdempotencyKey string `json:"idempotency_key"`
	// Digest is the approved digest, which is checked again before each call.
	Digest Digest     `json:"digest"`
	Status PushStatus `json:"status"`
	// Attempts counts the recorded intents, each recorded before its call; the attempts that ended without a call
	// because the target could not be checked; and one if a push that was not sent was marked unknown after a
	// restore. It is at least 1 for a push that is applied or unknown, even if none of these happened.
	Attempts int `json:"attempts"`
	// AttemptBase is how many of Attempts do not count against the retries: those before the last
	// replay, and failed trials of a breaker.
	AttemptBase int `json:"-"`
	// LastError and ErrorCode describe the last failure; "" before one, and after a success.
	LastError string `json:"last_error"`
	ErrorCode string `json:"error_code,omitempty"`
	// NotBefore is the end of the hold: nobody claims the push before it.
	NotBefore time.Time `json:"not_before"`
	CreatedAt time.Time `json:"created_at"`
	// NextAttempt is when a queued push is due, nil for none.
	NextAttempt *time.Time `json:"next_attempt_at"`
	// PickedAt is the time of the last claim, SentAt of the last recorded intent.
	PickedAt *time.Time `json:"picked_at"`
	SentAt   *time.Time `json:"sent_at"`
	// AppliedAt is when the success was recorded, nil before.
	AppliedAt *time.Time `json:"applied_at"`
	// FinishedAt is nil while the push is queued or in flight.
	FinishedAt *time.Time `json:"finished_at"`
	// Generation fences stale holders: each claim raises it by one.
	Generation int `json:"generation"`
	// LeaseOwner is who holds the push until LeaseUntil; "" and nil for no lease.
	LeaseOwner string     `json:"lease_owner,omitempty"`
	LeaseUntil *time.Time `json:"lease_expires_at"`
	// Replays counts the replays.
	Replays int `json:"replays"`
	// PutBack counts the claims that ended without an attempt because the connector's
	// breaker was open, its limit of concurrent calls was reached, or the process did not
	// have the newest connectors.
	PutBack int `json:"put_back,omitempty"`
	// Lane is "" for pushes of the dispatcher, else the connector whose outside
	// workers lease the push.
	Lane string `json:"lane,omitempty"`
	// TargetSays is the target's answer to the call that made the push a dead
	// letter: at most [MaxTargetSays] bytes, without secrets, "" for nothing.
	TargetSays string `json:"target_says,omitempty"`
	// ClosedAt is set when a failed push is discarded or corrected, or when another action has
	// applied the same change; then the push can never be replayed.
	ClosedAt *time.Time `json:"closed_at,omitempty"`
	// ClosedBy is the name of the principal who closed it, or "gatehouse".
	ClosedBy string `json:"closed_by,omitempty"`
	// ClosedReason says why.
	ClosedReason string `json:"closed_reason,omitempty"`
}

// MaxTargetSays bounds TargetSays of a push, in bytes.
const MaxTargetSays = 2 << 10

// DeadLetter reports whether the push needs a person: its outcome is unknown,
// or it failed and nobody has closed it.
func (p *Push) DeadLetter() bool {
	return p.Status == PushUnknown || p.Status == PushFailed && p.ClosedAt == nil
}

// PushSummary is the push as an action shows it.
type PushSummary struct {
	ID       string     `json:"id"`
	Status   PushStatus `json:"status"`
	Attempts int        `json:"attempts"`
	// LastError describes the last failure; "" before one, and after a success.
	LastError string `json:"last_error"`
	// NextAttempt is when a queued push is due, nil for none.
	NextAttempt *time.Time `json:"next_attempt_at"`
	// PickedAt is the time of the last claim.
	PickedAt *time.Time `json:"picked_at"`
	// SentAt is the time of the last recorded intent.
	SentAt *time.Time `json:"sent_at"`
	// AppliedAt is when the success was recorded, nil before.
	AppliedAt *time.Time `json:"applied_at"`
}

// SetPush attaches the summary of a push to its action, and completes the action's failure from
// the push.
func (a *Action) SetPush(p *Push) {
	a.Push = p.Summary()
	if a.Status != StatusFailed && a.Status != StatusUnknown {
		return
	}
	f := Failure{Code: p.ErrorCode, Detail: p.LastError}
	if a.Failure != nil {
		f = *a.Failure
	}
	f.TargetSays, f.Retry = p.TargetSays, retryOf(a.Status, p, f.Code)
	a.Failure = &f
}

// Summary returns the part of the push that an action shows.
func (p *Push) Summary() *PushSummary {
	return &PushSummary{
		ID: p.ID, Status: p.Status, Attempts: p.Attempts, LastError: p.LastError,
		NextAttempt: p.NextAttempt, PickedAt: p.PickedAt, SentAt: p.SentAt, AppliedAt: p.AppliedAt,
	}
}

// ReceiptOutcome is the outcome of one call.
type ReceiptOutcome string

// The outcomes of a call.
const (
	ReceiptApplied   ReceiptOutcome = "applied"
	ReceiptTerminal  ReceiptOutcome = "terminal"
	ReceiptNotSent   ReceiptOutcome = "not_sent"
	ReceiptTransient ReceiptOutcome = "transient"
	ReceiptAmbiguous ReceiptOutcome = "ambiguous"
)

// Receipt records the outcome of one call, or what else proved an outcome (see Source), and
// whether and how the change can be reversed.
type Receipt struct {
	ID       string `json:"id"`
	Tenant   string `json:"tenant"`
	ActionID string `json:"action_id"`
	PushID   string `json:"push_id"`
	// IdempotencyKey is the key that was sent with the call.
	IdempotencyKey string `json:"idempotency_key"`
	// Attempt is the push's Attempts, Generation its Generation, at the call.
	Attempt    int `json:"attempt"`
	Generation int `json:"generation"`
	// Outcome is the outcome that Source established.
	Outcome ReceiptOutcome `json:"outcome"`
	// ErrorCode and Error describe a failed call, "" for a success.
	ErrorCode string `json:"error_code,omitempty"`
	Error     string `json:"error,omitempty"`
	// ExternalID is the target's id for the effect, "" when it gave none.
	ExternalID string `json:"external_id,omitempty"`
	// RequestMetadata and ResponseMetadata are evidence, without secrets.
	RequestMetadata  JSON `json:"request_metadata"`
	ResponseMetadata JSON `json:"response_metadata"`
	// Reversible is true when Reversal can be proposed.
	Reversible bool `json:"reversible"`
	// Reversal describes the change that undoes this one; nil when there is none.
	Reversal *Reversal `json:"reversal,omitempty"`
	// Late marks evidence from a holder that had lost its lease. It changed no
	// state.
	Late bool `json:"late,omitempty"`
	// Source is "call" for an answer to the gate's own call; "check" for an attempt
	// that ended before its call, because the target could not be checked; and
	// "receipt", "read_back" or "operator" for an outcome from that source.
	Source string `json:"source"`
	// At is when the outcome was recorded.
	At time.Time `json:"at"`
}

// Reversal is the change that undoes an applied one. It is proposed as an
// action of its own and goes through the gate like any other.
type Reversal struct {
	// Operation is an operation of the same connector.
	Operation string `json:"operation"`
	// Target has the version after the change, which the reversal expects.
	Target Target `json:"target"`
	// CurrentState is the expected state before the reversal, "" for none.
	CurrentState JSON `json:"current_state,omitempty"`
	// ProposedChange restores the earlier state.
	ProposedChange JSON `json:"proposed_change"`
}

// FirstDue returns the earliest time at which the push could be sent.
func (p *Push) FirstDue() time.Time {
	if p.NotBefore.After(p.CreatedAt) {
		return p.NotBefore
	}
	return p.CreatedAt
}

// WithoutEffect reports whether the receipts prove that none of the first n attempts had
// an effect. Only receipts with the outcome not_sent, transient or terminal are proof. One
// of a call or check, even a late one, proves its own attempt; one of a read-back or an
// operator proves all attempts up to its own. Any other attempt may have had its effect.
func WithoutEffect(receipts []*Receipt, n int) bool {
	proven := make(map[int]bool, n)
	upTo := 0
	for _, r := range receipts {
		switch r.Outcome {
		case ReceiptNotSent, ReceiptTransient, ReceiptTerminal:
		default:
			continue
		}
		switch r.Source {
		case "call", "check":
			proven[r.Attempt] = true
		case "read_back", "operator":
			upTo = max(upTo, r.Attempt)
		}
	}
	for attempt := upTo + 1; attempt <= n; attempt++ {
		if !proven[attempt] {
			return false
		}
	}
	return true
}
