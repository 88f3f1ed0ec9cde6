package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// SweepMoments logs the stages, reminders and extensions that have begun, for one batch of
// approvals, and returns the number of approvals. The right to answer follows from the clock and
// does not depend on these entries.
func (g *Gate) SweepMoments(ctx context.Context) (int, error) {
	return g.sweepEach(ctx, &g.asideMoments, gatehouse.Queues.ActionsWithDueMoments, recordMoments)
}

// recordMoments appends the leaves of the stages, reminders and extensions that have begun. Of
// several reminders that are due at once it records only the last, since they say the same.
func recordMoments(tx gatehouse.Tx, a *gatehouse.Action) error {
	ap := a.Approval
	if a.Status != gatehouse.StatusPending || ap == nil || ap.Status != gatehouse.ApprovalRequested {
		return nil
	}
	moments, logged, last := ap.Moments(), ap.MomentsDone, -1
	for logged < len(moments) && !moments[logged].At.After(tx.Now()) {
		if moments[logged].Kind == gatehouse.MomentReminded {
			last = logged
		}
		logged++
	}
	if logged == ap.MomentsDone {
		return nil
	}
	if err := tx.SetMomentsDone(ap.ID, ap.MomentsDone, logged, ap.NextMoment(logged)); err != nil {
		return err
	}
	if !tx.Now().Before(ap.End()) {
		return nil // the question is over, and its end is recorded instead
	}
	for i := ap.MomentsDone; i < logged; i++ {
		if m := moments[i]; m.Kind != gatehouse.MomentReminded || i == last {
			if err := recordMoment(tx, a, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func recordMoment(tx gatehouse.LogWriter, a *gatehouse.Action, m gatehouse.Moment) error {
	ap := a.Approval
	data := map[string]any{"approval": ap.ID, "at": m.At}
	switch m.Kind {
	case gatehouse.MomentEscalated:
		s := ap.Stages[m.Number-1]
		data["stage"], data["asked"] = m.Number, s.Who.Words()
		if len(s.Notify) > 0 {
			data["notify"] = s.Notify
		}
	case gatehouse.MomentReminded:
		data["reminder"] = m.Number
	case gatehouse.MomentExtended:
		data["outcome"], data["expires_at"] = "extended", ap.End()
	}
	return record(tx, a, string(m.Kind), "system", gatehouse.StatusPending, gatehouse.StatusPending, data)
}

// rejectByTimeout rejects an action whose question was not settled in time, in the policy's name.
func rejectByTimeout(tx actionMover, a *gatehouse.Action) error {
	if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalExpired); err != nil {
		return err
	}
	err := tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected,
		DecidedBy: a.PolicyName(), DecidedVia: gatehouse.ViaPolicy, Decided: true, Finished: true,
	})
	if err != nil {
		return err
	}
	return record(tx, a, string(gatehouse.MomentExtended), "system", gatehouse.StatusPending, gatehouse.StatusRejected,
		map[string]any{"approval": a.Approval.ID, "outcome": "rejected", "expires_at": a.Approval.End()})
}
