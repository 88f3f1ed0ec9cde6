package gatehouse

import (
	"context"
	"time"
)

// TargetChange says that something in a target system is another now: what was
// proposed on its earlier state may no longer fit.
type TargetChange struct {
	Connector  string `json:"connector"`
	EntityType string `json:"entity_type"`
	EntityRef  string `json:"entity_ref"`
	// Version is what the target has now; "" where nobody knows. A proposal that was
	// made on this version is as fresh as the target.
	Version string `json:"version,omitempty"`
}

// Validate checks the members.
func (t *TargetChange) Validate() error {
	var v Violations
	for _, m := range []struct {
		pointer, value string
		needed         bool
	}{
		{"/connector", t.Connector, true}, {"/entity_type", t.EntityType, true}, {"/entity_ref", t.EntityRef, true},
		{"/version", t.Version, false},
	} {
		if m.needed && m.value == "" {
			v.Add(m.pointer, "is required")
		}
		v.CheckText(m.pointer, m.value, maxTargetText)
	}
	return v.Err()
}

// maxTargetText bounds each member of a target that changed, in bytes.
const maxTargetText = 1024

// TargetMark is what an open question says of its target: since At it is another.
type TargetMark struct {
	At time.Time `json:"at"`
	// Version is what the target had then; "" where nobody knew.
	Version string `json:"version,omitempty"`
	// By is the name of who said so.
	By string `json:"by"`
}

// TargetChanges is the answer to a [TargetChange].
type TargetChanges struct {
	// Marked is how many open actions on the target were marked, at most
	// [MaxTargetMarks]. ActionIDs are theirs, for a caller that reads all of the tenant.
	Marked    int      `json:"marked"`
	ActionIDs []string `json:"action_ids"`
	// More is whether there are further ones: the same call marks them.
	More bool `json:"more"`
}

// MaxTargetMarks bounds the actions that one call marks.
const MaxTargetMarks = 200

// TargetService is told of changes in the target systems.
type TargetService interface {
	// TargetChanged marks the open actions on a target. Repeated, it changes nothing.
	TargetChanged(ctx context.Context, t TargetChange) (*TargetChanges, error)
}
