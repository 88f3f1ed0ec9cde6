package gatehouse

import (
	"context"
	"time"
)

// KeeperService is for operators of a store: it previews the archiver, settles the
// pushes of a restored backup, and finds work that waits too long.
type KeeperService interface {
	// PreviewArchive tells which actions of the caller's tenant the archiver would
	// move now, and changes nothing. A retention of 0 means the configured one. The
	// caller must be an administrator. The preview reads the whole store, for at
	// most [PreviewTime].
	PreviewArchive(ctx context.Context, retention time.Duration) (*ArchivePreview, error)
	// MarkUnknown marks the queued and leased pushes that were created before a
	// time as unknown, with the code [ErrorRestored]: a restored store does not
	// know whether they were sent after the backup. It leaves out the pushes of
	// approval steps, which have no effect. None is sent again before its outcome is
	// resolved. Each is marked in its own transaction, and the call may be repeated.
	// The caller must be an administrator and marks pushes of its own tenant; for
	// another tenant the error has code not_found.
	MarkUnknown(ctx context.Context, r MarkUnknownRequest) (*MarkUnknownAnswer, error)
	// AskTargets reads back the effects of the tenant's unknown pushes from their
	// targets, and settles the pushes whose outcome is proven. It sends nothing.
	// The caller must be an operator.
	AskTargets(ctx context.Context, r AskRequest) (*AskAnswer, error)
	// CheckRoles reports work that has waited too long for the roles sequencer,
	// dispatcher, sweeper and runner of serve in all tenants, and for outside
	// workers in the caller's tenant. The caller must be an operator.
	CheckRoles(ctx context.Context) (*RoleCheck, error)
}

// PreviewTime bounds one preview of the archive.
const PreviewTime = 20 * time.Second

// ErrorRestored is the error code of a push in a restored store that may have been
// sent after the backup.
const ErrorRestored = "restored"

// ArchivePreview describes the actions that the archiver would move now.
type ArchivePreview struct {
	// Retention is the requested one, Configured the server's setting, nil for
	// none. The archiver uses the configured one only.
	Retention  Duration  `json:"retention"`
	Configured *Duration `json:"configured,omitempty"`
	// EndedBefore is the time before which an action must have ended.
	EndedBefore time.Time `json:"ended_before"`
	// Actions counts the actions that would move.
	Actions int `json:"actions"`
	// Bytes is the size of the actions' changes and pre-images: about what the live
	// tables lose.
	Bytes int64 `json:"bytes"`
	// Oldest and Newest are the earliest and the latest end among the actions; nil
	// for none.
	Oldest *time.Time `json:"oldest_ended_at,omitempty"`
	Newest *time.Time `json:"newest_ended_at,omitempty"`
	// Tenants has the caller's tenant, or nothing when no action would move.
	Tenants []TenantArchived `json:"tenants"`
	// Complete is false when the time ran out before the end of the store; there
	// may be more actions then.
	Complete bool `json:"complete"`
}

// TenantArchived counts the actions of one tenant.
type TenantArchived struct {
	Tenant string `json:"tenant"`
	// Actions counts the actions that would move.
	Actions int `json:"actions"`
}

// MaxMarked bounds how many pushes one call marks, and lists.
const MaxMarked = 1000

// MarkUnknownRequest selects the pushes to mark.
type MarkUnknownRequest struct {
	// Before is the moment at which the restored store began to serve, or any
	// moment between the backup and that. Pushes created later were never sent
	// before the restore.
	Before time.Time `json:"before"`
	// Tenant is the caller's own tenant; "" means the same.
	Tenant string `json:"tenant,omitempty"`
	// Connector and Class narrow the pushes down; "" matches all. Class is A, B or
	// C, as the connector is configured now.
	Connector string `json:"connector,omitempty"`
	Class     string `json:"class,omitempty"`
	// DryRun nil means true.
	DryRun *bool `json:"dry_run,omitempty"`
	// Limit is 1 to MaxMarked, which is the default.
	Limit int `json:"limit,omitempty"`
}

// Validate returns an [Error] with code invalid.
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

// MarkUnknownAnswer lists the pushes that were marked or, in a dry run, would be.
type MarkUnknownAnswer struct {
	// DryRun is true when nothing was marked.
	DryRun bool `json:"dry_run"`
	// Items lists the pushes, at most the request's Limit.
	Items []MarkedPush `json:"items"`
	// Marked counts the pushes whose outcome is now unknown.
	Marked int `json:"marked"`
	// More is true when pushes to mark are left: call again.
	More bool `json:"more"`
}

// MarkedPush is one of the pushes. Was is its status before.
type MarkedPush struct {
	Tenant    string `json:"tenant"`
	PushID    string `json:"push_id"`
	ActionID  string `json:"action_id"`
	Connector string `json:"connector"`
	Operation string `json:"operation"`
	Target    Target `json:"target"`
	// Change is the approved change.
	Change JSON `json:"proposed_change"`
	// Class is the connector operation's class now: A, B or C.
	Class string     `json:"class"`
	Was   PushStatus `json:"was"`
	// Attempts counts the recorded intents that the store knows of.
	Attempts  int       `json:"attempts"`
	CreatedAt time.Time `json:"created_at"`
}

// AskRequest names unknown pushes. Without IDs it selects a page of them, newest
// first, starting at Cursor.
type AskRequest struct {
	// IDs are ids of pushes, at most [MaxAsked].
	IDs []string `json:"ids,omitempty"`
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string `json:"cursor,omitempty"`
	// Limit is 1 to MaxAsked, which is the default. Each push is one question to a
	// target.
	Limit int `json:"limit,omitempty"`
}

// Validate returns an [Error] with code invalid.
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

// MaxAsked bounds the questions to targets of one call.
const MaxAsked = 50

// AskAnswer has a result for each selected push.
type AskAnswer struct {
	// Results are in the order of the request.
	Results []AskResult `json:"results"`
	// Settled counts the pushes whose outcome is now known.
	Settled int `json:"settled"`
	// NextCursor is "" when there are no more.
	NextCursor string `json:"next_cursor,omitempty"`
}

// AskResult is the target's answer about one push. Outcome is applied; failed, if it is
// proven that there was no effect and that there will be none; or unknown, with the reason
// in Detail.
type AskResult struct {
	// PushID is the push that was asked about.
	PushID string `json:"push_id"`
	// Outcome is "" for a push that is not unknown.
	Outcome PushStatus `json:"outcome"`
	// Detail says why the outcome is not known, "" when it is.
	Detail string `json:"detail,omitempty"`
}
