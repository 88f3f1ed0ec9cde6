package gatehouse

import (
	"context"
	"time"
)

// Notice tells the administrators of a tenant that somebody changed rights or
// rules: credentials, roles, groups, set-up links, the policy. The audit log has an
// entry of the same kind; for an act in another tenant, the log of the actor's own tenant
// has tenant.acted. A notice is shown to each administrator who existed at the change,
// until that administrator dismisses it.
type Notice struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// At is the time of the change.
	At time.Time `json:"at"`
	// Kind says what happened, such as principal.created.
	Kind string `json:"kind"`
	// Subject identifies what was changed: an id, or a text such as "policy:3". SubjectName is a name for
	// it: that of the agent for a grant or a mandate.
	Subject     string `json:"subject"`
	SubjectName string `json:"subject_name,omitempty"`
	// Actor is the id of the principal that made the change; without a principal, it says how
	// the change was made, such as "sign_in:okta".
	Actor string `json:"actor"`
	// ActorName is the principal's name, or words for another actor; "" if Gatehouse itself
	// made the change.
	ActorName string `json:"actor_name,omitempty"`
	// Via is the channel of the change, "" for none.
	Via Channel `json:"via,omitempty"`
	// FromTenant is the actor's tenant when that is another one, else "".
	FromTenant string `json:"from_tenant,omitempty"`
	// Detail says what changed, such as "roles: approver".
	Detail string `json:"detail,omitempty"`
	// Dismissed is true if the caller has dismissed the notice.
	Dismissed bool `json:"dismissed"`
}

// NoticeFilter selects notices of one tenant, newest first.
type NoticeFilter struct {
	// All includes the notices that the caller has dismissed.
	All bool
	// Limit is at most [MaxLimit]: a greater limit means MaxLimit. 0 means [DefaultLimit].
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string
}

// NoticeService shows administrators the changes of rights and rules.
type NoticeService interface {
	// ListNotices returns a page of the notices for the caller, an administrator. It leaves
	// out those that the caller has dismissed, unless f.All is set.
	ListNotices(ctx context.Context, f NoticeFilter) (Page[*Notice], error)
	// DismissNotices hides notices from the caller only, and returns how many it
	// hid. It takes 1 to 200 ids, and ignores unknown ones.
	DismissNotices(ctx context.Context, ids []string) (int, error)
}
