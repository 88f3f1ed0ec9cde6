package gatehouse

import (
	"context"
	"time"
)

// TargetChange reports that an entity in a target system has changed: changes proposed on its
// earlier state may no longer fit.
type TargetChange struct {
	// Connector, EntityType and EntityRef name the entity as proposals do.
	Connector  string `json:"connector"`
	EntityType string `json:"entity_type"`
	EntityRef  string `json:"entity_ref"`
	// Version is the target's present version; "" when unknown. A proposal that was
	// made on this version is not stale.
	Version string `json:"version,omitempty"`
}

// Validate returns an [Error] with code invalid.
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

// maxTargetText bounds each field of a TargetChange, in bytes.
const maxTargetText = 1024

// TargetMark says that the target of an open action has changed.
type TargetMark struct {
	// At is when the change was reported.
	At time.Time `json:"at"`
	// Version is the target's version at that time; "" when unknown.
	Version string `json:"version,omitempty"`
	// By is the name of the principal that reported the change.
	By string `json:"by"`
}

// TargetChanges is the answer to a [TargetChange].
type TargetChanges struct {
	// Marked is the number of open actions on the target that were marked, at most
	// [MaxTargetMarks]. ActionIDs are their ids, for a caller that may read the
	// whole tenant.
	Marked    int      `json:"marked"`
	ActionIDs []string `json:"action_ids"`
	// More is true when open actions remain unmarked: a repeated call marks them.
	More bool `json:"more"`
}

// MaxTargetMarks bounds the actions that one call marks.
const MaxTargetMarks = 200

// TargetService reads targets, and takes reports of changes in them.
type TargetService interface {
	// ReadTarget reads the target of a pending action, or what the reversal of an
	// applied action would change. It changes nothing.
	ReadTarget(ctx context.Context, actionID string) (*TargetState, error)
	// Preview asks the target of a pending action for the effect that the action would
	// have. It changes nothing. The caller must be a person with the role approver, operator, admin or
	// auditor. When the target does not answer, the error has code busy.
	Preview(ctx context.Context, actionID string) (*Preview, error)
	// TargetChanged marks the pending actions on a target that were proposed on another version, at
	// most [MaxTargetMarks] per call. A repeated call marks only actions that lack the mark.
	TargetChanged(ctx context.Context, t TargetChange) (*TargetChanges, error)
}
