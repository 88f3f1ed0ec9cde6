package gatehouse

import "time"

// Page is one page of a list.
type Page[T any] struct {
	// Items is at most as long as the filter's Limit.
	Items []T `json:"items"`
	// NextCursor is the Cursor of the next page, "" on the last page. It is opaque.
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
	// SortNewest sorts by time of proposal, newest first; the default.
	SortNewest Sort = "newest"
	// SortUrgency sorts by due bucket, then risk (highest first), then age (oldest
	// first). It lists pending actions only.
	SortUrgency Sort = "urgency"
)

// DecidedHow selects actions by their decision: by people, or by the policy alone. Actions
// that are pending, denied, expired, canceled or superseded match none of the values, even if
// they were approved before.
type DecidedHow string

// The ways in which an action is decided.
const (
	DecidedApproved DecidedHow = "approved" // by people
	DecidedByPeople DecidedHow = "people"   // approved or rejected by people
	DecidedAllowed  DecidedHow = "allowed"  // by the policy alone
)

// DecidedHows lists the ways.
func DecidedHows() []DecidedHow {
	return []DecidedHow{DecidedApproved, DecidedByPeople, DecidedAllowed}
}

// ActionFilter selects actions of one tenant. Zero fields select all.
type ActionFilter struct {
	// Status selects by the state; "" selects all.
	Status Status
	// ActionType selects by the type; "" selects all.
	ActionType string
	// RiskLevel selects by the level; 0 selects all.
	RiskLevel  RiskLevel
	ProposedBy string // principal id or name
	// Query is the id of an action, approval or push, or a text to search for: each part of it,
	// separated by spaces, must be the beginning of a word. Case does not matter. The words are
	// those of the action's type, id, key and title, its target, proposer, on_behalf_of, magnitude
	// and rationale, and the values of the proposed change; at most the first 8,192 characters of
	// each.
	Query string
	// Archived lists the archive instead of the live actions, newest first. There
	// Query can only be an id.
	Archived bool
	// Decided selects by the decision; not available in the archive.
	Decided DecidedHow
	// AskedGroup selects the actions whose approval asks the group with this name; not
	// available in the archive.
	AskedGroup string
	// Assignee selects the actions that are assigned to this person, by id or name; not
	// available in the archive.
	Assignee string
	// ReadBy selects the actions that the principal with this id proposed, and
	// those that the principal may read because of Inherit.
	ReadBy string
	// Sort is the order; "" is [SortNewest].
	Sort Sort
	// Limit is at most [MaxLimit]: a greater limit means MaxLimit. 0 means [DefaultLimit].
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string
}

// PushFilter selects pushes of one tenant.
type PushFilter struct {
	// Status selects by the state; "" selects all.
	Status PushStatus
	// ReadBy selects by the pushes' actions, as in ActionFilter.
	ReadBy string
	// DeadLetters selects pushes that need a person; see [Push.DeadLetter].
	DeadLetters bool
	// Connector selects by name; "" selects all.
	Connector string
	// Code is the error code of the last attempt.
	Code string
	// Since selects pushes that ended at that time or later.
	Since time.Time
	// Limit is at most [MaxLimit]: a greater limit means MaxLimit. 0 means [DefaultLimit].
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string
}
