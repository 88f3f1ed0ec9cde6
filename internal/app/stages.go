package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// SweepTimely writes into the log that a stage was reached, that people are
// reminded, or that the last stage has ended and the question goes on: one batch. It
// reports how many questions it wrote of. Who may answer follows from the clock and
// waits for none of it.
func (g *Gate) SweepTimely(ctx context.Context) (int, error) {
	var told []string
	err := g.store.Update(ctx, func(tx gatehouse.Tx) error {
		told = told[:0]
		due, err := tx.TimelyActions(sweepBatch)
		if err != nil {
			return err
		}
		for _, ref := range due {
			a, err := tx.LockAction(ref.Tenant, ref.ID)
			if err != nil {
				return err
			}
			if err := tellMoments(tx, a); err != nil {
				return err
			}
			told = append(told, ref.ID)
		}
		return nil
	})
	if err != nil || len(told) == 0 {
		return 0, err
	}
	for _, id := range told {
		g.hints.Notify(id)
	}
	g.hints.Notify(TopicAudit)
	return len(told), nil
}

// tellMoments appends the leaves of the moments that have come. Of several reminders
// that are due at once, the last one is written: the others would say the same.
func tellMoments(tx gatehouse.Tx, a *gatehouse.Action) error {
	ap := a.Approval
	if a.Status != gatehouse.StatusPending || ap == nil || ap.Status != gatehouse.ApprovalRequested {
		return nil
	}
	moments, told, last := ap.Moments(), ap.Told, -1
	for told < len(moments) && !moments[told].At.After(tx.Now()) {
		if moments[told].Kind == gatehouse.MomentReminded {
			last = told
		}
		told++
	}
	if told == ap.Told {
		return nil
	}
	if err := tx.TellApproval(a.Tenant, ap.ID, ap.Told, told, ap.NextMoment(told)); err != nil {
		return err
	}
	if !tx.Now().Before(ap.End()) {
		return nil // it is over: that is what is told
	}
	for i := ap.Told; i < told; i++ {
		if m := moments[i]; m.Kind != gatehouse.MomentReminded || i == last {
			if err := tellMoment(tx, a, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func tellMoment(tx gatehouse.Tx, a *gatehouse.Action, m gatehouse.Moment) error {
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

// rejectByTimeout ends a question that nobody answered: the policy rejects.
func rejectByTimeout(tx gatehouse.Tx, a *gatehouse.Action) error {
	if err := tx.MoveApproval(a.Tenant, a.Approval.ID, gatehouse.ApprovalExpired); err != nil {
		return err
	}
	err := tx.MoveAction(gatehouse.ActionMove{
		Tenant: a.Tenant, ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected,
		DecidedBy: a.PolicyName(), DecidedVia: gatehouse.ViaPolicy, Decided: true, Finished: true,
	})
	if err != nil {
		return err
	}
	return record(tx, a, string(gatehouse.MomentExtended), "system", gatehouse.StatusPending, gatehouse.StatusRejected,
		map[string]any{"approval": a.Approval.ID, "outcome": "rejected", "expires_at": a.Approval.End()})
}
