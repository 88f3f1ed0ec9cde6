package runs

import (
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// A run that goes back from a rejected step to an earlier one undoes nothing: the steps of the
// iteration keep their results, and the rejected step has the rejection as its output. The
// repeated steps are new rows, inserted in the transaction that settles the rejection. A
// rejection therefore sends the run back only once, even if that transaction is repeated after a
// crash: the rejected step is final, and the keys of the next iteration exist.

// continueRejected continues a run whose step's action was rejected or has expired, if the
// workflow says so. A stopping run does not continue.
func (m *runTx) continueRejected(
	s *gatehouse.Step, a *gatehouse.Action, why *gatehouse.Failure,
) (wentOn bool, err error) {
	spec := m.spec(s)
	if spec == nil || m.run.Stop != "" {
		return false, nil
	}
	r := spec.Refusal(a.Status)
	again, back := m.def.Next(m.run, s, r)
	if back {
		known, err := m.tx.CountSteps(s.RunID)
		if err != nil {
			return false, err
		}
		back = known+len(again) <= workflow.MaxRunSteps
	}

	if !r.Continue && !back {
		if r.Repeat != "" {
			why.Detail = clip(why.Detail + "; the run does not go back to " + r.Repeat + " again")
		}
		return false, nil
	}

	s.Output = workflow.RefusedOutput(a, s, notesOfRejection(a))
	// No other step may adopt a rejection as its output.
	s.IdempotencyKey = ""
	data := []gatehouse.Member{member("action", a.ID), member("refused", string(a.Status))}
	if back {
		data = append(data, member("repeats", r.Repeat))
	}
	if err := m.end(s, gatehouse.StepSucceeded, nil, data...); err != nil {
		return false, err
	}

	rows := make([]*gatehouse.Step, len(again))
	for i, next := range again {
		_, n := m.run.Latest(next.ID).Iteration()
		rows[i] = newStep(m.run, next)
		rows[i].Key, rows[i].CreatedAt = gatehouse.StepKey(next.ID, n+1), m.tx.Now()
	}
	if len(rows) == 0 {
		return true, nil
	}
	m.run.Steps = append(m.run.Steps, rows...)
	return true, m.tx.InsertSteps(rows...)
}

// notesOfRejection returns the notes of the people who rejected an action.
func notesOfRejection(a *gatehouse.Action) (notes string) {
	if a.Approval == nil {
		return ""
	}
	for _, v := range a.Approval.Votes {
		if v.Decision != gatehouse.Reject || v.Notes == "" {
			continue
		}
		if notes != "" {
			notes += "\n"
		}
		notes += v.Notes
	}
	return notes
}

// findPrevious finds the action that the previous iteration proposed, so that approvers
// see what has changed since.
func (w *work) findPrevious(tx gatehouse.StepReader) error {
	id, n := w.step.Iteration()
	if n < 2 || w.step.Parent != "" || !w.spec.Kind.Proposes() {
		return nil
	}
	old, err := tx.FindStepOf(w.step.RunID, gatehouse.StepKey(id, n-1))
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if action, ok := old.Output.Get("action_id"); ok {
		w.previousAction, _ = action.Text()
	}
	return nil
}
