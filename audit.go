package gatehouse

import "time"

// Leaf is one transition as the audit log records it. It is written, without
// a number, in the transaction of what it records; the sequencer numbers it.
type Leaf struct {
	ID     string    `json:"id"`
	Tenant string    `json:"tenant"`
	At     time.Time `json:"at"`
	// Type is the event's name, such as hitl.proposed or push.applied.
	Type string `json:"type"`
	// Subject is the id of what moved: an action, approval, push, key, ….
	Subject  string `json:"subject"`
	ActionID string `json:"action_id,omitempty"`
	// Actor is the principal's id, or "policy", "system" and the like.
	Actor string `json:"actor"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	// Digest is that of the action, where there is one.
	Digest Digest `json:"digest,omitempty"`
	// Data is what else belongs to the record, in canonical form; "" for none.
	Data JSON `json:"data,omitempty"`
}

// Entry is a numbered leaf. Body holds the leaf's canonical bytes, and Hash
// what commits to it: see internal/audit.
type Entry struct {
	// Index counts from 0 within the tenant's log, without gaps.
	Index int64 `json:"index"`
	// Body is the canonical JSON of the leaf, the bytes that are hashed.
	Body JSON `json:"leaf"`
	// LeafHash is SHA-256(0x00 || body), as in RFC 6962.
	LeafHash Hash `json:"leaf_hash"`
}

// CorpusEntry is what a decision teaches.
type CorpusEntry struct {
	ID         string       `json:"id"`
	Tenant     string       `json:"tenant"`
	ActionID   string       `json:"action_id"`
	ActionType string       `json:"action_type"`
	Features   JSON         `json:"features"`
	Outcome    DecisionKind `json:"outcome"`
	DecidedBy  string       `json:"decided_by"`
	Notes      string       `json:"notes,omitempty"`
	At         time.Time    `json:"at"`
}

// AppliedMirror is the audit mirror of one applied action.
type AppliedMirror struct {
	Tenant     string    `json:"tenant"`
	ActionID   string    `json:"action_id"`
	ActionType string    `json:"action_type"`
	Connector  string    `json:"connector"`
	Operation  string    `json:"operation"`
	Target     Target    `json:"target"`
	Before     JSON      `json:"before,omitempty"`
	After      JSON      `json:"after"`
	Digest     Digest    `json:"digest"`
	ExternalID string    `json:"external_id,omitempty"`
	ReceiptID  string    `json:"receipt_id"`
	AppliedAt  time.Time `json:"applied_at"`
}
