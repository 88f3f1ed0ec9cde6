package gate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.TargetService = (*Gate)(nil)

// TargetChanged marks the open actions on a target that are based on another version
// of it. The mark decides nothing: it is shown to approvers, who must acknowledge
// it. When the connector itself can read the target, that reading counts instead.
func (g *Gate) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleProposer, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}

	return g.markOpen(ctx, c, t)
}

// TargetReport is a signed report, already verified, that a target has changed.
type TargetReport struct {
	// Tenant is the tenant whose actions are marked; Source is the name of the source.
	Tenant, Source string
	// Delivery identifies the report: a repeated one changes nothing. Body is the hash
	// of the request's body.
	Delivery string
	Body     gatehouse.Hash
	Change   gatehouse.TargetChange
}

// TargetReported marks all open actions on the target of a signed report. A repeated
// delivery gets the first one's answer, and replayed true.
func (g *Gate) TargetReported(
	ctx context.Context, r *TargetReport,
) (out *gatehouse.TargetChanges, replayed bool, err error) {
	if err := r.Change.Validate(); err != nil {
		return nil, false, err
	}
	system := &gatehouse.Principal{Tenant: r.Tenant, ID: "system", Name: "webhook " + r.Source}
	once := &gatehouse.Caller{Principal: system, Idempotency: &gatehouse.IdempotencyRequest{
		Route: "POST /hooks/targets/" + r.Source, Key: r.Delivery, BodyHash: r.Body,
		Encode: func(v any) ([]byte, error) { return json.Marshal(v) },
	}}
	out, err = usecase.PerformParts(ctx, g.Runner, once, func() (*gatehouse.TargetChanges, error) {
		all := &gatehouse.TargetChanges{ActionIDs: []string{}}
		for {
			part, err := g.markOpen(ctx, &gatehouse.Caller{Principal: system}, r.Change)
			if err != nil {
				return nil, err
			}
			all.Marked += part.Marked
			// The loop terminates, even if one call marks nothing: the next call no longer lists the actions that were
			// marked, decided or expired in the meantime.
			if !part.More {
				return all, nil
			}
		}
	})
	if replay := (*gatehouse.Replay)(nil); errors.As(err, &replay) {
		out = new(gatehouse.TargetChanges)
		return out, true, json.Unmarshal(replay.Body, out)
	}
	return out, false, err
}

// markOpen marks at most [gatehouse.MaxTargetMarks] open actions on a target.
func (g *Gate) markOpen(
	ctx context.Context, c *gatehouse.Caller, t gatehouse.TargetChange,
) (*gatehouse.TargetChanges, error) {
	var hints []string
	by := usecase.Case{By: c}
	out, err := usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.TargetChanges, error) {
		out := &gatehouse.TargetChanges{ActionIDs: []string{}}
		hints = nil
		ids, err := tx.OpenOnTarget(t, gatehouse.MaxTargetMarks+1)
		if err != nil {
			return nil, err
		}
		if out.More = len(ids) > gatehouse.MaxTargetMarks; out.More {
			ids = ids[:gatehouse.MaxTargetMarks]
		}
		for _, id := range ids {
			marked, err := markTarget(tx, c, id, t)
			if err != nil {
				return nil, err
			}
			if marked {
				hints = append(hints, id)
			}
		}
		if out.Marked = len(hints); out.Marked > 0 && g.ReadsAs(c.Principal) == "" {
			out.ActionIDs = hints
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}

	for _, id := range hints {
		g.Hints.Notify(id)
	}
	return out, nil
}

// markTarget marks one action, unless it was decided meanwhile.
func markTarget(tx actionMover, c *gatehouse.Caller, id string, t gatehouse.TargetChange) (bool, error) {
	a, err := tx.LockAction(id)
	if err != nil {
		return false, err
	}
	ap := a.Approval
	if a.Status != gatehouse.StatusPending || ap == nil || ap.Status != gatehouse.ApprovalRequested ||
		!tx.Now().Before(ap.End()) {
		return false, nil
	}
	if m := ap.TargetChanged; m != nil && m.Version == t.Version {
		// A concurrent report of the same version has marked it, while this call waited for the lock.
		return false, nil
	}
	m := gatehouse.TargetMark{At: tx.Now(), Version: t.Version, By: c.Principal.Name}
	if err := tx.MarkTarget(ap.ID, m); err != nil {
		return false, err
	}
	_, target := a.AskedTarget()
	return true, record(tx, a, "hitl.target_changed", c.Principal.ID, gatehouse.StatusPending, gatehouse.StatusPending,
		map[string]any{"approval": ap.ID, "expected": target.Version, "actual": t.Version})
}

// checkTargetMark refuses an approval of a marked action; nil when the action is not
// marked, when the approver acknowledges the change, and when the target was read
// and found unchanged.
func (r *ruling) checkTargetMark() error {
	a := r.action
	m := a.Approval.TargetChanged
	if m == nil || r.decision.AcknowledgeStale || r.targetUnchanged {
		return nil
	}
	version := func(s string) gatehouse.JSON {
		if s == "" {
			return "null"
		}
		return gatehouse.StringJSON(s)
	}
	_, target := a.AskedTarget()
	return gatehouse.E(gatehouse.CodeTargetChanged, "the target has changed since the proposal, says %s", m.By).
		With("expected", version(target.Version)).With("actual", version(m.Version)).
		With("can_acknowledge", !r.gate.conditional(a)).With("can_rebase", r.gate.canRebase(a))
}
