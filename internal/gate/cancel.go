package gate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Cancel withdraws an action: its proposer can cancel while it is pending, an
// approver while an approved action is in its hold.
func (g *Gate) Cancel(ctx context.Context, id string) (*gatehouse.CancelAnswer, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	a, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}

	own := a.ProposerID == c.Principal.ID
	if !own {
		if err := mayVote(c); err != nil {
			return nil, err
		}
	}

	by := usecase.Case{By: c}
	out, err := usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.CancelAnswer, error) {
		a, err := tx.LockAction(a.ID)
		if err != nil {
			return nil, err
		}
		code := "canceled"
		rejected, _ := a.HeldRejection()
		switch {
		case a.Status == gatehouse.StatusCanceled:
			code = "already_canceled"
		case rejected != nil:
			err = alreadyDecided(a)
		case a.Status == gatehouse.StatusPending && tx.Now().Before(a.Approval.End()):
			if !own {
				return nil, gatehouse.E(
					gatehouse.CodeRoleRequired,
					"a pending action is canceled by its proposer; reject it instead",
				)
			}
			err = cancelPending(tx, c.Principal, a, nil)
		case a.Status == gatehouse.StatusApproved && c.Principal.Has(gatehouse.RoleApprover) && c.StepUp:
			err = cancelHeld(tx, c.Principal, a)
		default:
			a.See(tx.Now())
			err = tooLate(a)
		}
		if err != nil {
			return nil, err
		}
		failpoint.Here("cancel/recorded")
		return &gatehouse.CancelAnswer{Code: code, Result: code, Action: a}, nil
	})
	if err != nil {
		return nil, err
	}
	failpoint.Here("cancel/committed")
	g.Hints.Notify(out.Action.ID)
	return out, nil
}

// CancelForRun withdraws an action that is pending or in its hold, in the name of
// its proposer: the run that proposed it does not wait for it any more. A held rejection takes
// effect at once.
func (g *Gate) CancelForRun(ctx context.Context, tenant, id string) error {
	err := g.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(id)
		if err != nil {
			return err
		}
		p, err := tx.FindPrincipal(a.ProposerID)
		if err != nil {
			return err
		}
		rejected, _ := a.HeldRejection()
		switch {
		case rejected != nil:
			return rejectHeld(tx, a, rejected)
		case a.Status == gatehouse.StatusPending && tx.Now().Before(a.Approval.End()):
			return cancelPending(tx, p, a, nil)
		case a.Status == gatehouse.StatusApproved && a.Push != nil:
			return cancelHeld(tx, p, a)
		case a.Status.Finished():
			return nil
		}
		return tooLate(a)
	})
	if err == nil {
		g.Hints.Notify(id)
	}
	return err
}

func tooLate(a *gatehouse.Action) error {
	return gatehouse.E(gatehouse.CodeTooLate, "the action is %s", a.Status).With("current_status", a.Status)
}

// cancelPending cancels a pending action, because of the failure if it is not nil.
func cancelPending(
	tx actionMover, by *gatehouse.Principal, a *gatehouse.Action, failure *gatehouse.Failure,
) error {
	if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalCanceled); err != nil {
		return err
	}
	a.Approval.Status = gatehouse.ApprovalCanceled
	return moveCanceled(tx, by, a, failure)
}

// cancelHeld withdraws an approved action whose push cannot be claimed yet.
func cancelHeld(tx pushMover, by *gatehouse.Principal, a *gatehouse.Action) error {
	if err := withdrawPush(tx, a); err != nil {
		return err
	}
	return moveCanceled(tx, by, a, nil)
}

// withdrawPush cancels the push of an approved action within its hold, and releases the
// action's ceilings.
func withdrawPush(tx pushMover, a *gatehouse.Action) error {
	p, err := tx.LockPush(a.Push.ID)
	if err != nil {
		return err
	}
	if p.Status != gatehouse.PushQueued || !tx.Now().Before(p.NotBefore) || p.Attempts > 0 {
		return tooLate(a)
	}
	p.Status, p.FinishedAt, p.NextAttempt = gatehouse.PushCanceled, new(tx.Now()), nil
	if err := tx.UpdatePush(p, gatehouse.PushQueued, p.Generation); err != nil {
		if errors.Is(err, gatehouse.ErrConflict) {
			return tooLate(a)
		}
		return err
	}
	if err := tx.ReleaseCeilings(a.ID); err != nil {
		return err
	}
	a.Push = p.Summary()
	return nil
}

// canceledBy returns the name of the principal that canceled an action: the proposer if it was
// undecided, else the actor in the log. It returns "" if the server canceled it: see WithdrawGone.
func canceledBy(tx gatehouse.ReadTx, a *gatehouse.Action, entries []*gatehouse.Entry) (name string, err error) {
	switch {
	case a.Status != gatehouse.StatusCanceled:
		return "", nil
	case a.DecidedBy == "" && a.Failure == nil:
		return a.ProposedBy, nil
	}
	for _, e := range entries {
		var leaf gatehouse.Leaf
		if err := json.Unmarshal([]byte(e.Body), &leaf); err != nil {
			return "", err
		}
		if leaf.Type != "hitl.canceled" {
			continue
		}
		switch p, err := tx.FindPrincipal(leaf.Actor); {
		case err == nil:
			name = p.Name
		case !errors.Is(err, gatehouse.ErrNotFound): // system cancels, too
			return "", err
		}
	}
	return name, nil
}

func moveCanceled(
	tx actionMover, by *gatehouse.Principal, a *gatehouse.Action, failure *gatehouse.Failure,
) error {
	from := a.Status
	err := tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: from, To: gatehouse.StatusCanceled, Finished: true,
		DecidedBy: a.DecidedBy, DecidedVia: a.DecidedVia, Decided: a.DecidedAt == nil, Failure: failure,
	})
	if err != nil {
		return err
	}
	a.Status, a.FinishedAt, a.CanceledBy = gatehouse.StatusCanceled, new(tx.Now()), by.Name
	var data map[string]any
	if failure != nil {
		data = map[string]any{"code": failure.Code, "reason": failure.Detail}
	}
	return record(tx, a, "hitl.canceled", by.ID, from, gatehouse.StatusCanceled, data)
}
