package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Undo takes back a decision within its hold, before the approved change is sent or the rejection
// is announced. A new revision with the same content replaces the old action, and people decide
// again: votes do not carry over. The policy judges the revision, and can still deny it.
func (g *Gate) Undo(ctx context.Context, id string) (*gatehouse.UndoAnswer, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := mayVote(c); err != nil {
		return nil, err
	}
	// The answer is stored after the revision: after a crash in between, a retry finds the
	// revision.
	return usecase.PerformParts(ctx, g.Runner, c, func() (*gatehouse.UndoAnswer, error) {
		own := *c
		own.Idempotency = nil
		return g.undoDecision(gatehouse.NewContext(ctx, &own), &own, old)
	})
}

// undoDecision is Undo, but does not store the answer.
func (g *Gate) undoDecision(ctx context.Context, c *gatehouse.Caller, old *gatehouse.Action) (
	_ *gatehouse.UndoAnswer, err error,
) {
	if done, err := g.undone(ctx, old); done != nil || err != nil {
		return done, err
	}
	if !undoable(old) {
		return nil, tooLateToUndo(old)
	}

	p := old.Proposal
	// The stored level is the server's, not the claim; the key belongs to the old revision.
	p.RiskLevel, p.IdempotencyKey = old.ClaimedRisk, ""
	from := lineage{
		revision: old.Revision + 1, supersedes: old, undoing: true, title: old.Title, about: aboutOf(old),
		editedBy: old.EditedBy, edit: old.Edit, editors: old.Editors, own: old.Connector == PolicyConnector,
	}
	if from.required, from.starter, err = g.runRequirements(ctx, old, &p); err != nil {
		return nil, err
	}
	from.required = max(from.required, 1)
	if old.Reverses != "" {
		from.reverses = &gatehouse.Action{ID: old.Reverses}
	}
	if from.author, err = g.enabledProposer(ctx, old, cannotUndo); err != nil {
		return nil, err
	}
	a, _, err := g.propose(ctx, c, &p, from)
	if err != nil {
		// Of two undos at the same time, one makes the revision, and both return it.
		if now, err := g.FindAction(ctx, old.ID); err == nil {
			if done, err := g.undone(ctx, now); done != nil && err == nil {
				return done, nil
			}
		}
		return nil, err
	}
	return &gatehouse.UndoAnswer{Code: gatehouse.Undone, Result: gatehouse.Undone, Action: a}, nil
}

// undone returns the answer for an action whose decision was taken back before; nil for
// every other action.
func (g *Gate) undone(ctx context.Context, old *gatehouse.Action) (*gatehouse.UndoAnswer, error) {
	if old.Status != gatehouse.StatusSuperseded || old.Superseded == "" {
		return nil, nil
	}
	next, err := g.FindAction(ctx, old.Superseded)
	if err != nil || next.UndoneBy == "" {
		return nil, err
	}
	return &gatehouse.UndoAnswer{Code: gatehouse.AlreadyUndone, Result: gatehouse.AlreadyUndone, Action: next}, nil
}

// undoable reports whether an action has a decision that can still be taken back. The
// transaction of the undo checks it again, with the hold's end.
func undoable(a *gatehouse.Action) bool {
	v, _ := a.HeldRejection()
	return v != nil || a.Status == gatehouse.StatusApproved && a.Push != nil
}

// closeHeld closes an action whose decision is in its hold. Of an undo and the end of the
// hold, whichever locks the action first wins.
func closeHeld(tx pushMover, c *gatehouse.Caller, old *gatehouse.Action) error {
	if ap := old.Approval; ap != nil && ap.VoteOf(c.Principal.Person) == nil {
		if err := MayAnswer(ap, c.Principal, tx.Now()); err != nil {
			return err
		}
	}
	if v, at := old.HeldRejection(); v != nil {
		if !tx.Now().Before(at) {
			return tooLateToUndo(old)
		}
		return closePending(tx, old)
	}
	if old.Status != gatehouse.StatusApproved || old.Push == nil {
		return tooLateToUndo(old)
	}
	if err := withdrawPush(tx, old); err != nil {
		if gatehouse.CodeOf(err) == gatehouse.CodeTooLate {
			return tooLateToUndo(old)
		}
		return err
	}
	return tx.MoveAction(gatehouse.ActionMove{
		ID: old.ID, From: gatehouse.StatusApproved, To: gatehouse.StatusSuperseded, Finished: true,
	})
}

// holdRejection stores a rejection that takes effect at a time, and logs its vote. The action
// stays pending.
func (r *ruling) holdRejection(tx gatehouse.Tx, at time.Time) error {
	ap := r.action.Approval
	if err := tx.HoldRejection(ap.ID, at); err != nil {
		return err
	}
	ap.RejectsAt = &at
	r.code = gatehouse.Decided
	return tx.AppendLeaf(r.leaf("hitl.voted", gatehouse.StatusPending))
}

// rejectHeld lets a held rejection take effect.
func rejectHeld(tx gatehouse.Tx, a *gatehouse.Action, v *gatehouse.Vote) error {
	r := &ruling{
		action: a, ballot: *v, held: true, decision: gatehouse.Decision{Decision: v.Decision, Notes: v.Notes},
		caller: &gatehouse.Caller{Principal: &gatehouse.Principal{ID: v.PrincipalID, Name: v.Name}, Via: v.Via},
	}
	if v.For != "" {
		r.from = &gatehouse.Principal{ID: v.For}
	}
	return r.reject(tx)
}

// SweepHeld stores the effect of one batch of held rejections whose hold has ended, and returns their number. Reads
// and decisions treat such a rejection as final even before the sweep; runs and messages depend on the stored status.
func (g *Gate) SweepHeld(ctx context.Context) (int, error) {
	return g.sweepEach(ctx, &g.asideHeld, gatehouse.Queues.HeldRejections,
		func(tx gatehouse.Tx, a *gatehouse.Action) error {
			v, at := a.HeldRejection()
			if v == nil || tx.Now().Before(at) {
				return nil
			}
			return rejectHeld(tx, a, v)
		})
}

// addUndone adds the undone decision and its maker to the log entry of an undo.
func addUndone(data map[string]any, old *gatehouse.Action) {
	data["undone"], data["decided_by"] = gatehouse.Approve, old.DecidedBy
	if v, _ := old.HeldRejection(); v != nil {
		data["undone"], data["decided_by"] = gatehouse.Reject, v.Name
	}
}

// tooLateToUndo is the error when no decision of the action can be taken back any more.
func tooLateToUndo(a *gatehouse.Action) error {
	text, status := "too late to undo: the action is %s", a.Status
	if v, _ := a.HeldRejection(); v != nil {
		status = gatehouse.StatusRejected // its hold has ended
	} else if status == gatehouse.StatusPending {
		text = "there is no decision to undo: the action is %s"
	}
	return gatehouse.E(gatehouse.CodeTooLate, text, status).With("current_status", status)
}

// cannotUndo is the error of an undo that cannot make a revision; reason is for programs.
func cannotUndo(reason, format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeTooLate, format, args...).With("reason", reason)
}
