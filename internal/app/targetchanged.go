package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.TargetService = (*Gate)(nil)

// TargetChanged marks the open actions on a target that were proposed on another
// version. It makes nobody decide otherwise: who approves is told once, and where the
// connector asks the target itself, what that says counts instead.
func (g *Gate) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := require(c, gatehouse.RoleProposer, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	var out *gatehouse.TargetChanges
	var hints []string
	err = g.update(ctx, nil, func(tx gatehouse.Tx) error {
		out, hints = &gatehouse.TargetChanges{ActionIDs: []string{}}, nil
		if err := answered(tx, c); err != nil {
			return err
		}
		ids, err := tx.OpenOnTarget(c.Principal.Tenant, t, gatehouse.MaxTargetMarks+1)
		if err != nil {
			return err
		}
		if out.More = len(ids) > gatehouse.MaxTargetMarks; out.More {
			ids = ids[:gatehouse.MaxTargetMarks]
		}
		for _, id := range ids {
			marked, err := markTarget(tx, c, id, t)
			if err != nil {
				return err
			}
			if marked {
				hints = append(hints, id)
			}
		}
		if out.Marked = len(hints); out.Marked > 0 && g.readsAs(c.Principal) == "" {
			out.ActionIDs = hints
		}
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range hints {
		g.hints.Notify(id)
	}
	if len(hints) > 0 {
		g.hints.Notify(TopicAudit)
	}
	return out, nil
}

// markTarget marks one action, unless it was decided meanwhile.
func markTarget(tx gatehouse.Tx, c *gatehouse.Caller, id string, t gatehouse.TargetChange) (bool, error) {
	a, err := tx.LockAction(c.Principal.Tenant, id)
	if err != nil {
		return false, err
	}
	ap := a.Approval
	if a.Status != gatehouse.StatusPending || ap == nil || ap.Status != gatehouse.ApprovalRequested || !tx.Now().Before(ap.End()) {
		return false, nil
	}
	m := gatehouse.TargetMark{At: tx.Now(), Version: t.Version, By: c.Principal.Name}
	if err := tx.MarkTarget(a.Tenant, ap.ID, m); err != nil {
		return false, err
	}
	return true, record(tx, a, "hitl.target_changed", c.Principal.ID, gatehouse.StatusPending, gatehouse.StatusPending,
		map[string]any{"approval": ap.ID, "expected": a.Target.Version, "actual": t.Version})
}

// movedSince is the refusal to approve what somebody has marked, where the target was
// not asked and found as it was proposed on; nil for none.
func (r *ruling) movedSince() error {
	a := r.action
	m := a.Approval.TargetChanged
	if m == nil || r.decision.AcknowledgeStale || r.asIs {
		return nil
	}
	version := func(s string) gatehouse.JSON {
		if s == "" {
			return "null"
		}
		return gatehouse.StringJSON(s)
	}
	return gatehouse.E(gatehouse.CodeTargetChanged, "the target has changed since the proposal, says %s", m.By).
		With("expected", version(a.Target.Version)).With("actual", version(m.Version)).
		With("can_acknowledge", !r.gate.conditional(a)).With("can_rebase", r.gate.rebases(a))
}
