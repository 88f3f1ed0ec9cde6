package gatehouse

import (
	"context"
	"time"
)

// KeeperService is for who keeps a store: it tells what is about to be archived,
// and settles what an old backup brought back.
type KeeperService interface {
	// PreviewArchive tells what the archiver would take of the caller's tenant at
	// this moment, and changes nothing. A retention of 0 is the configured one.
	// The caller must be an administrator. It reads the whole store, for as long
	// as [PreviewTime] at most.
	PreviewArchive(ctx context.Context, retention time.Duration) (*ArchivePreview, error)
	// MarkUnknown marks the queued and leased pushes that were made before a
	// time as unknown, with the code [ErrorRestored]: a store that was restored
	// does not know whether they went out since. Nothing is sent again
	// before its outcome is resolved. Each is marked in a transaction of its own,
	// and the call may be repeated. The caller must be an administrator, and
	// marks the pushes of its own tenant: another one has code not_found.
	MarkUnknown(ctx context.Context, r MarkUnknownRequest) (*MarkUnknownAnswer, error)
	// AskTargets asks the targets of the tenant's unknown pushes for their
	// effects, by read-back, and settles those that are proven. Nothing is sent.
	// The caller must be an operator.
	AskTargets(ctx context.Context, r AskRequest) (*AskAnswer, error)
	// CheckRoles tells what has waited too long for the roles sequencer, dispatcher,
	// sweeper and runner of serve, over all tenants, and for outside workers in
	// the caller's. The caller must be an operator.
	CheckRoles(ctx context.Context) (*RoleCheck, error)
}

// PreviewTime bounds one preview of the archive.
const PreviewTime = 20 * time.Second

// ErrorRestored is the error code of a push of which a restored store does not
// know whether it was sent.
const ErrorRestored = "restored"

// ArchivePreview is what the archiver would move at this moment.
type ArchivePreview struct {
	// Retention is what was asked for, Configured what the server has; nil for
	// none. The archiver works by what is configured only.
	Retention  Duration  `json:"retention"`
	Configured *Duration `json:"configured,omitempty"`
	// EndedBefore is when an action must have ended.
	EndedBefore time.Time `json:"ended_before"`
	Actions     int       `json:"actions"`
	// Bytes is what was proposed, and what stood before, of these actions: about
	// what the living tables lose.
	Bytes int64 `json:"bytes"`
	// Oldest and Newest are the earliest and the latest end among them.
	Oldest  *time.Time       `json:"oldest_ended_at,omitempty"`
	Newest  *time.Time       `json:"newest_ended_at,omitempty"`
	Tenants []TenantArchived `json:"tenants"`
	// Complete is false when the time was over before the end of the store:
	// then there may be more.
	Complete bool `json:"complete"`
}

// TenantArchived counts the actions of one tenant.
type TenantArchived struct {
	Tenant  string `json:"tenant"`
	Actions int    `json:"actions"`
}

// MaxMarked bounds how many pushes one call marks, and lists.
const MaxMarked = 1000

// MarkUnknownRequest says which pushes are to be marked. DryRun nil means true.
type MarkUnknownRequest struct {
	// Before is the moment at which the restored store began to be served, or
	// any between that and the backup: what was made later never went out.
	Before time.Time `json:"before"`
	// Tenant is the caller's own, or "" for the same.
	Tenant string `json:"tenant,omitempty"`
	// Connector and Class narrow the pushes down; "" is all of them. Class is
	// A, B or C, as the connector's configuration says now.
	Connector string `json:"connector,omitempty"`
	Class     string `json:"class,omitempty"`
	DryRun    *bool  `json:"dry_run,omitempty"`
	// Limit is 1 to MaxMarked, which is the default.
	Limit int `json:"limit,omitempty"`
}

// Validate finds what is missing or outside its range, as code invalid.
func (r *MarkUnknownRequest) Validate() error {
	var v Violations
	if r.Before.IsZero() {
		v.Add("/before", "is required")
	}
	if r.Limit < 0 || r.Limit > MaxMarked {
		v.Add("/limit", "must be an integer from 1 to %d", MaxMarked)
	}
	if r.Class != "" && r.Class != "A" && r.Class != "B" && r.Class != "C" {
		v.Add("/class", "must be A, B or C")
	}
	return v.Err()
}

// MarkUnknownAnswer lists what would be, or was, marked.
type MarkUnknownAnswer struct {
	DryRun bool         `json:"dry_run"`
	Items  []MarkedPush `json:"items"`
	// Marked counts those whose outcome is unknown now.
	Marked int `json:"marked"`
	// More is true when the limit was met: call again.
	More bool `json:"more"`
}

// MarkedPush is one of them. Was is the push's status before.
type MarkedPush struct {
	Tenant    string     `json:"tenant"`
	PushID    string     `json:"push_id"`
	ActionID  string     `json:"action_id"`
	Connector string     `json:"connector"`
	Operation string     `json:"operation"`
	Target    Target     `json:"target"`
	Change    JSON       `json:"proposed_change"`
	Class     string     `json:"class"`
	Was       PushStatus `json:"was"`
	Attempts  int        `json:"attempts"`
	CreatedAt time.Time  `json:"created_at"`
}

// AskRequest names unknown pushes. Without names it is a page of them, newest
// first, behind Cursor.
type AskRequest struct {
	IDs    []string `json:"ids,omitempty"`
	Cursor string   `json:"cursor,omitempty"`
	// Limit is 1 to MaxAsked, which is the default: each is a question to a target.
	Limit int `json:"limit,omitempty"`
}

// Validate finds what is outside its range, as code invalid.
func (r *AskRequest) Validate() error {
	var v Violations
	if r.Limit < 0 || r.Limit > MaxAsked {
		v.Add("/limit", "must be an integer from 1 to %d", MaxAsked)
	}
	if len(r.IDs) > MaxAsked {
		v.Add("/ids", "has more than %d items", MaxAsked)
	}
	return v.Err()
}

// MaxAsked bounds how many targets one call asks.
const MaxAsked = 50

// AskAnswer has a result for each push that was asked for.
type AskAnswer struct {
	Results []AskResult `json:"results"`
	Settled int         `json:"settled"`
	// NextCursor is "" when there are no more.
	NextCursor string `json:"next_cursor,omitempty"`
}

// AskResult is what the target told: Outcome is applied, failed (it is proven
// that there was no effect and can be none), or unknown, with the reason.
type AskResult struct {
	PushID  string     `json:"push_id"`
	Outcome PushStatus `json:"outcome"`
	Detail  string     `json:"detail,omitempty"`
}
