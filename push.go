package gatehouse

import "time"

// PushStatus is the state of the work of carrying an action out.
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
	ID             string     `json:"id"`
	Tenant         string     `json:"tenant"`
	ActionID       string     `json:"action_id"`
	Connector      string     `json:"connector"`
	IdempotencyKey string     `json:"idempotency_key"`
	Digest         Digest     `json:"digest"`
	Status         PushStatus `json:"status"`
	// Attempts counts the recorded intents; it is raised before each call.
	Attempts int `json:"attempts"`
	// AttemptBase is Attempts at the last replay: the retry budget counts from here.
	AttemptBase int        `json:"-"`
	LastError   string     `json:"last_error"`
	ErrorCode   string     `json:"error_code,omitempty"`
	NotBefore   time.Time  `json:"not_before"`
	CreatedAt   time.Time  `json:"created_at"`
	NextAttempt *time.Time `json:"next_attempt_at"`
	PickedAt    *time.Time `json:"picked_at"`
	SentAt      *time.Time `json:"sent_at"`
	AppliedAt   *time.Time `json:"applied_at"`
	FinishedAt  *time.Time `json:"finished_at"`
	// Generation fences stale holders: each claim raises it by one.
	Generation int        `json:"generation"`
	LeaseOwner string     `json:"lease_owner,omitempty"`
	LeaseUntil *time.Time `json:"lease_expires_at"`
	Replays    int        `json:"replays"`
	// PutBack counts the claims that ended without an attempt since the breaker of
	// the connector was open.
	PutBack int `json:"put_back,omitempty"`
	// Lane is "" for what the dispatcher carries out, else the connector whose
	// workers outside do.
	Lane string `json:"lane,omitempty"`
	// TargetSays is what the target answered to the call that made the push a
	// dead letter: at most [MaxTargetSays] bytes, without secrets, "" for nothing.
	TargetSays string `json:"target_says,omitempty"`
	// ClosedAt is set when a failed push is discarded: it is never replayed.
	ClosedAt     *time.Time `json:"closed_at,omitempty"`
	ClosedBy     string     `json:"closed_by,omitempty"`
	ClosedReason string     `json:"closed_reason,omitempty"`
}

// MaxTargetSays bounds the target's own words that a push keeps, in bytes.
const MaxTargetSays = 2 << 10

// DeadLetter reports whether the push needs a person: its outcome is unknown,
// or it failed and nobody has closed it.
func (p *Push) DeadLetter() bool {
	return p.Status == PushUnknown || p.Status == PushFailed && p.ClosedAt == nil
}

// PushSummary is the push as an action shows it.
type PushSummary struct {
	ID          string     `json:"id"`
	Status      PushStatus `json:"status"`
	Attempts    int        `json:"attempts"`
	LastError   string     `json:"last_error"`
	NextAttempt *time.Time `json:"next_attempt_at"`
	PickedAt    *time.Time `json:"picked_at"`
	SentAt      *time.Time `json:"sent_at"`
	AppliedAt   *time.Time `json:"applied_at"`
}

// SetPush attaches to an action what it shows of its push, and completes the
// action's failure with it.
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

// Summary returns what an action shows of its push.
func (p *Push) Summary() *PushSummary {
	return &PushSummary{
		ID: p.ID, Status: p.Status, Attempts: p.Attempts, LastError: p.LastError,
		NextAttempt: p.NextAttempt, PickedAt: p.PickedAt, SentAt: p.SentAt, AppliedAt: p.AppliedAt,
	}
}

// ReceiptOutcome is what came of one call.
type ReceiptOutcome string

// The outcomes of a call.
const (
	ReceiptApplied   ReceiptOutcome = "applied"
	ReceiptTerminal  ReceiptOutcome = "terminal"
	ReceiptNotSent   ReceiptOutcome = "not_sent"
	ReceiptTransient ReceiptOutcome = "transient"
	ReceiptAmbiguous ReceiptOutcome = "ambiguous"
)

// Receipt records one call: what was attempted, what happened, and whether and
// how it can be reversed.
type Receipt struct {
	ID               string         `json:"id"`
	Tenant           string         `json:"tenant"`
	ActionID         string         `json:"action_id"`
	PushID           string         `json:"push_id"`
	IdempotencyKey   string         `json:"idempotency_key"`
	Attempt          int            `json:"attempt"`
	Generation       int            `json:"generation"`
	Outcome          ReceiptOutcome `json:"outcome"`
	ErrorCode        string         `json:"error_code,omitempty"`
	Error            string         `json:"error,omitempty"`
	ExternalID       string         `json:"external_id,omitempty"`
	RequestMetadata  JSON           `json:"request_metadata"`
	ResponseMetadata JSON           `json:"response_metadata"`
	Reversible       bool           `json:"reversible"`
	// Reversal describes the change that undoes this one; nil when there is none.
	Reversal *Reversal `json:"reversal,omitempty"`
	// Late marks evidence of a holder that had lost its lease: it changed no state.
	Late bool `json:"late,omitempty"`
	// Source is "call" for an answer to our call, "receipt", "read_back" or
	// "operator" for an outcome learned otherwise.
	Source string    `json:"source"`
	At     time.Time `json:"at"`
}

// Reversal is the change that undoes an applied one. It is proposed as an
// action of its own and goes through the gate like any other.
type Reversal struct {
	Operation      string `json:"operation"`
	Target         Target `json:"target"`
	CurrentState   JSON   `json:"current_state,omitempty"`
	ProposedChange JSON   `json:"proposed_change"`
}

// FirstDue is the earliest time at which the push can have been sent.
func (p *Push) FirstDue() time.Time {
	if p.NotBefore.After(p.CreatedAt) {
		return p.NotBefore
	}
	return p.CreatedAt
}

// WithoutEffect reports whether the receipts prove that none of the first n
// attempts had an effect. A receipt of a call or check speaks for its own
// attempt, even a late one; one of a read-back or an operator for all up to its
// attempt. An attempt without a receipt may have had its effect.
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
