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

// Push is the outbox row of an approved action. A failed push is a dead letter.
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
	// Lane is "" for what the dispatcher carries out, else the connector whose
	// workers outside do.
	Lane string `json:"lane,omitempty"`
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

// DeadLetter is a failed push as an operator triages it. Its id is the push's.
type DeadLetter struct {
	ID         string    `json:"id"`
	ActionID   string    `json:"action_id"`
	ActionType string    `json:"action_type"`
	Connector  string    `json:"connector"`
	Payload    JSON      `json:"payload"`
	Error      string    `json:"error"`
	ErrorCode  string    `json:"error_code"`
	Attempts   int       `json:"attempts"`
	LastAt     time.Time `json:"last_at"`
	// Advice says in one sentence what an operator can do about it.
	Advice string `json:"advice"`
}
