package gatehouse

import "time"

// Page is one page of a list. NextCursor is "" on the last one.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// The bounds of a page.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Sort is the order of a list of actions.
type Sort string

// The orders.
const (
	// SortNewest is by time of proposal, newest first; the default.
	SortNewest Sort = "newest"
	// SortUrgency is by due bucket, then risk (highest first), then age
	// (oldest first). Only pending actions are listed.
	SortUrgency Sort = "urgency"
)

// DecidedHow is how the question whether to do it was answered, whatever has
// become of the action since. What was denied, expired, canceled or superseded
// is none of these.
type DecidedHow string

// The ways in which actions are decided.
const (
	DecidedApproved DecidedHow = "approved" // by people
	DecidedByPeople DecidedHow = "people"   // approved or rejected by people
	DecidedAllowed  DecidedHow = "allowed"  // by the policy alone
)

// DecidedHows lists them.
func DecidedHows() []DecidedHow {
	return []DecidedHow{DecidedApproved, DecidedByPeople, DecidedAllowed}
}

// ActionFilter selects actions of one tenant. Zero members select all.
type ActionFilter struct {
	Status     Status
	ActionType string
	RiskLevel  RiskLevel
	ProposedBy string // principal id or name
	// Query is matched, without regard to case, within the action type, the
	// target's entity_ref and the rationale; or it is an id.
	Query string
	// Archived lists the archive instead, newest first: there Query is an id
	// only.
	Archived bool
	// Decided selects by who answered, and how; not in the archive.
	Decided DecidedHow
	// ReadBy selects what the principal with this id proposed, and what Inherit
	// lets it read besides.
	ReadBy string
	Sort   Sort
	Limit  int
	Cursor string
}

// PushFilter selects pushes of one tenant.
type PushFilter struct {
	Status PushStatus
	// ReadBy selects the pushes of actions as in ActionFilter.
	ReadBy string
	// DeadLetters selects those that need a person; see [Push.DeadLetter].
	DeadLetters bool
	Connector   string
	// Code is the error code of the last attempt.
	Code string
	// Since selects those that ended at that time or later.
	Since  time.Time
	Limit  int
	Cursor string
}
