package gatehouse

import (
	"context"
	"time"
)

// Notice tells the administrators of a tenant that somebody changed rights or
// rules: credentials, roles, groups, set-up links, the policy. The audit log
// has an entry of the same kind; a notice is what a person is shown until they
// dismiss it.
type Notice struct {
	ID     string    `json:"id"`
	Tenant string    `json:"tenant"`
	At     time.Time `json:"at"`
	// Kind is the type of the log entry, such as principal.created.
	Kind string `json:"kind"`
	// Subject is the id of what was changed, SubjectName what people call it.
	Subject     string `json:"subject"`
	SubjectName string `json:"subject_name,omitempty"`
	// Actor is the id of who did it, or "init", "reset" and the like.
	Actor     string  `json:"actor"`
	ActorName string  `json:"actor_name,omitempty"`
	Via       Channel `json:"via,omitempty"`
	// FromTenant is the actor's tenant, where that is another.
	FromTenant string `json:"from_tenant,omitempty"`
	// Detail says what changed, such as "roles: approver".
	Detail string `json:"detail,omitempty"`
	// Dismissed is whether the asking administrator has dismissed it.
	Dismissed bool `json:"dismissed"`
}

// NoticeFilter selects notices of one tenant, the newest first.
type NoticeFilter struct {
	// All includes those that the caller has dismissed.
	All    bool
	Limit  int
	Cursor string
}

// NoticeService shows administrators what was changed of rights and rules.
type NoticeService interface {
	// ListNotices returns a page of those that the caller, an administrator, has
	// not dismissed.
	ListNotices(ctx context.Context, f NoticeFilter) (Page[*Notice], error)
	// DismissNotices hides notices from the caller, and from nobody else, and
	// returns how many those were. Unknown ids are left out.
	DismissNotices(ctx context.Context, ids []string) (int, error)
}
