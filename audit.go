package gatehouse

import "time"

// Leaf is one transition as the audit log records it. The transaction that makes
// the transition writes the leaf without a number; the sequencer numbers it later.
type Leaf struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// At is the time of the transaction, set by the store.
	At time.Time `json:"at"`
	// Type is the event's name, such as hitl.proposed or push.applied.
	Type string `json:"type"`
	// Subject is the id of what changed: an action, approval, push, key, ….
	Subject string `json:"subject"`
	// ActionID is "" where no action is concerned.
	ActionID string `json:"action_id,omitempty"`
	// Actor is the principal's id, or a word such as "policy" or "system".
	Actor string `json:"actor"`
	// From and To are the states before and after; "" where the event has none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Digest is the digest of the action, "" without one.
	Digest Digest `json:"digest,omitempty"`
	// Data is further data of the event, in canonical form; "" for none.
	Data JSON `json:"data,omitempty"`
}

// Entry is a numbered leaf.
type Entry struct {
	// Index counts from 0 within the tenant's log, without gaps.
	Index int64 `json:"index"`
	// Body is the canonical JSON of the leaf: the exact bytes that are hashed.
	Body JSON `json:"leaf"`
	// LeafHash is SHA-256(0x00 || body), as in RFC 6962.
	LeafHash Hash `json:"leaf_hash"`
}

// CorpusEntry is the lesson of one decision: the action's features and the outcome.
type CorpusEntry struct {
	ID         string `json:"id"`
	Tenant     string `json:"tenant"`
	ActionID   string `json:"action_id"`
	ActionType string `json:"action_type"`
	// Features describe the action for comparison with others: its connector,
	// fields, rules.
	Features JSON `json:"features"`
	// Outcome is the people's decision.
	Outcome DecisionKind `json:"outcome"`
	// DecidedBy is the name of the decider.
	DecidedBy string `json:"decided_by"`
	// Notes are the decider's words.
	Notes string `json:"notes,omitempty"`
	// At is the time of the decision.
	At time.Time `json:"at"`
}

// AppliedMirror records the effect of one applied action, for audits.
type AppliedMirror struct {
	Tenant     string `json:"tenant"`
	ActionID   string `json:"action_id"`
	ActionType string `json:"action_type"`
	Connector  string `json:"connector"`
	Operation  string `json:"operation"`
	Target     Target `json:"target"`
	// Before is the approved pre-image, "" for none. After is the approved change.
	Before JSON `json:"before,omitempty"`
	After  JSON `json:"after"`
	// Digest is the approved digest.
	Digest Digest `json:"digest"`
	// ExternalID is the target's id for the effect, "" when it gave none.
	ExternalID string `json:"external_id,omitempty"`
	// ReceiptID is the receipt that records the effect: of a call, a read-back, or an operator.
	ReceiptID string `json:"receipt_id"`
	// AppliedAt is when the outcome was recorded.
	AppliedAt time.Time `json:"applied_at"`
}
