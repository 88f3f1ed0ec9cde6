package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// wakeBatch bounds each kind of work in one round of Wake.
const wakeBatch = 100

// maxReported bounds the failures of one round that are reported one by one.
const maxReported = 10

// Wake moves the steps whose action or child run has ended, whose lease has expired,
// or that are due, and stops runs past their deadline: up to wakeBatch of each. It
// returns the number of steps and runs that it tried to move.
//
// A step that cannot be moved does not block others: it is set aside, and retried
// with a growing backoff.
func (r *Runs) Wake(ctx context.Context) (n int, err error) {
	var refs []gatehouse.StepRef
	var now time.Time
	began := time.Now()
	err = r.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		refs, now = refs[:0], q.Now()
		overdue := func(limit int) (late []gatehouse.StepRef, err error) {
			runs, err := q.OverdueRuns(limit)
			for _, run := range runs {
				late = append(late, gatehouse.StepRef{Tenant: run.Tenant, RunID: run.ID})
			}
			return late, err
		}
		for _, find := range []func(int) ([]gatehouse.StepRef, error){q.SettledSteps, q.ExpiredSteps, q.DueSteps, overdue} {
			more, err := find(wakeBatch + r.asideSteps.Size())
			if err != nil {
				return err
			}
			refs = append(refs, aside.Due(&r.asideSteps, more, itself, wakeBatch, now)...)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}

	failed := 0
	for i, ref := range refs {
		e := r.wakeOrStop(ctx, ref)
		if isNotFound(e) {
			e = nil
		}
		if ctx.Err() != nil {
			return i + 1, errors.Join(err, e)
		}
		tries := r.asideSteps.Note(ref, e, now.Add(time.Since(began)))
		if e == nil {
			continue
		}
		if failed++; failed <= maxReported {
			what := "the run " + ref.RunID
			if ref.StepID != "" {
				what = "the step " + ref.StepID + " of " + what
			}
			err = errors.Join(err, fmt.Errorf("%s, failed %d times: %w", what, tries, e))
		}
	}

	if failed > maxReported {
		err = errors.Join(err, fmt.Errorf("and %d more", failed-maxReported))
	}
	return len(refs), err
}

// BackedOff returns the number of steps and runs that could not be woken, and of schedules that could not start
// their run, and that wait for a retry.
func (r *Runs) BackedOff() int { return r.asideSteps.Size() + r.asideSchedules.Size() }

// itself is the key of a step that is set aside.
func itself(ref gatehouse.StepRef) gatehouse.StepRef { return ref }

// wakeOrStop wakes one step, or stops a run past its deadline.
func (r *Runs) wakeOrStop(ctx context.Context, ref gatehouse.StepRef) error {
	if ref.StepID != "" {
		return r.wake(ctx, ref)
	}
	return r.stopRun(ctx, ref.Tenant, ref.RunID, gatehouse.RunFailed,
		&gatehouse.Failure{Code: "deadline_exceeded", Detail: "the run has not ended by its deadline"})
}

// wake makes the move that a step is due for in its present state, if any.
func (r *Runs) wake(ctx context.Context, ref gatehouse.StepRef) error {
	var cancel *gatehouse.Step
	var timedOut bool
	err := r.move(ctx, ref.Tenant, ref.RunID, ref.StepID, "system", func(m *runTx) error {
		cancel = nil
		s := m.run.StepByID(ref.StepID)
		if s == nil {
			return nil
		}
		now := m.tx.Now()
		due := s.DueAt != nil && !now.Before(*s.DueAt)
		switch s.Status {
		case gatehouse.StepWaitingApproval:
			settled, err := m.settleAction(s)
			if err != nil || settled {
				return err
			}
			if due {
				cancel = s
			}
			return m.waitAgain(s)
		case gatehouse.StepWaiting:
			if s.ChildRun != "" {
				settled, err := m.settleChild(s)
				if err != nil || settled {
					return err
				}
				if due {
					cancel = s
				}
				timedOut = m.run.Stop == ""
				return m.waitAgain(s)
			}
			if due {
				return m.waitOver(s)
			}
		case gatehouse.StepRetrying:
			if due {
				return m.ready(s)
			}
		case gatehouse.StepRunning:
			if s.LeaseUntil != nil && !now.Before(*s.LeaseUntil) {
				return m.abandoned(s)
			}
		}
		return nil
	})
	if err != nil || cancel == nil {
		return err
	}

	why := &gatehouse.Failure{Code: "parent_stopped", Detail: "the run that started this one has stopped"}
	if timedOut {
		why = &gatehouse.Failure{Code: codeTimeout, Detail: "the step that started this run no longer waits"}
	}
	return r.cancelFor(ctx, cancel, why)
}

// codeTimeout is the failure code of a wait, or of an awaited child run, that took
// too long.
const codeTimeout = "timeout"

// waitAgain writes a step that still waits for its action or child run. The write removes the step from
// SettledSteps, because an action that had ended may have continued, such as a replayed dead letter.
func (m *runTx) waitAgain(s *gatehouse.Step) error { return m.tx.UpdateStep(s, s.Status, s.Generation) }

// settleAction moves a step whose action has ended or was superseded. An action with the
// status unknown has not ended.
func (m *runTx) settleAction(s *gatehouse.Step) (settled bool, err error) {
	a, err := m.tx.FindAction(s.ActionID)
	if err != nil {
		return false, err
	}
	failpoint.Here("step/settling")
	switch a.Status {
	case gatehouse.StatusApplied, gatehouse.StatusReversed:
		if err := m.addContributorsOfAction(a); err != nil {
			return false, err
		}
		s.Output = workflow.AppliedOutput(a)
		return true, m.end(s, gatehouse.StepSucceeded, nil, member("action", a.ID))
	case gatehouse.StatusSuperseded:
		if a.Superseded == "" {
			return false, nil
		}
		next, err := m.tx.FindAction(a.Superseded)
		if err != nil {
			return false, err
		}
		if err := m.addContributor(next.ProposerID); err != nil {
			return false, err
		}
		s.ActionID = a.Superseded
		if m.run.Stop != "" { // it was revised during its cancellation: cancel the revision too
			s.DueAt = new(m.tx.Now())
		}
		if err := m.tx.UpdateStep(s, s.Status, s.Generation); err != nil {
			return false, err
		}
		return true, m.leaf("step.superseded", s, string(s.Status), string(s.Status), member("action", a.Superseded))
	case gatehouse.StatusFailed, gatehouse.StatusRejected, gatehouse.StatusDenied, gatehouse.StatusExpired,
		gatehouse.StatusCanceled:
		if m.run.Stop != "" && a.Status == gatehouse.StatusCanceled {
			return true, m.end(s, gatehouse.StepCanceled, nil, member("action", a.ID))
		}
		why := refusal(a)
		if wentOn, err := m.continueRejected(s, a, why); wentOn || err != nil {
			return true, err
		}
		return true, m.end(s, gatehouse.StepFailed, why, member("action", a.ID))
	}
	return false, nil
}

// refusal says why an action had no effect.
func refusal(a *gatehouse.Action) *gatehouse.Failure {
	f := &gatehouse.Failure{Code: string(a.Status), Detail: "the action " + a.ID + " is " + string(a.Status)}
	switch {
	case a.Failure != nil:
		f.Code, f.Detail = a.Failure.Code, f.Detail+": "+a.Failure.Detail
	case a.Status == gatehouse.StatusDenied && len(a.Policy.Reasons) > 0:
		f.Detail += ": " + a.Policy.Reasons[0]
	case a.Status == gatehouse.StatusRejected:
		f.Detail += " by " + a.DecidedBy
		if notes := notesOfRejection(a); notes != "" {
			f.Detail += ": " + notes
		}
	}
	f.Detail = clip(f.Detail)
	return f
}

// settleChild closes a step whose child run has ended.
func (m *runTx) settleChild(s *gatehouse.Step) (settled bool, err error) {
	child, err := m.tx.FindRunHead(s.ChildRun)
	if err != nil || !child.Status.Final() {
		return false, err
	}
	if child.Status == gatehouse.RunSucceeded {
		_, output, err := m.tx.FindRunBodies(s.ChildRun)
		if err != nil {
			return false, err
		}
		if err := m.inheritContributors(child); err != nil {
			return false, err
		}
		s.Output = orNull(output)
		return true, m.end(s, gatehouse.StepSucceeded, nil, member("child_run", child.ID))
	}
	if m.run.Stop != "" && child.Status == gatehouse.RunCanceled {
		return true, m.end(s, gatehouse.StepCanceled, nil, member("child_run", child.ID))
	}
	if child.Status == gatehouse.RunCanceled && child.Failure != nil && child.Failure.Code == codeTimeout {
		return true, m.end(s, gatehouse.StepFailed, mistake(codeTimeout, "the run %s has not ended in time", child.ID),
			member("child_run", child.ID))
	}
	f := &gatehouse.Failure{Code: "child_" + eventOf(string(child.Status)),
		Detail: "the run " + child.ID + " is " + string(child.Status)}
	if child.Failure != nil {
		f.Detail = clip(f.Detail + ": " + child.Failure.Code + ": " + child.Failure.Detail)
	}
	return true, m.end(s, gatehouse.StepFailed, f, member("child_run", child.ID))
}

// waitOver closes a step whose waiting time is over; a step whose event did not
// arrive fails.
func (m *runTx) waitOver(s *gatehouse.Step) error {
	if s.Event != "" {
		return m.end(s, gatehouse.StepFailed,
			mistake(codeTimeout, "the event %s did not arrive in time", gatehouse.Quote(s.Event)))
	}
	s.Output = gatehouse.ObjectJSON(gatehouse.Member{Name: "at", Value: usecase.Encode(m.tx.Now())})
	return m.end(s, gatehouse.StepSucceeded, nil)
}

// abandoned fails an attempt whose lease has expired. The attempt may have done
// everything or nothing, so the next attempt uses the same key.
func (m *runTx) abandoned(s *gatehouse.Step) error {
	return m.failed(s, s.LeaseOwner, gatehouse.StepFailure{
		Code: "lease_expired", Retryable: true,
		Detail: "the lease expired: no heartbeat came in time, or the attempt reached its timeout",
	})
}

// maxLost bounds the leases that a step without outside effects may lose, so that a step that
// always crashes its server fails in the end. For pushes, MaxClaims of package dispatch has the same
// default.
const maxLost = 10

// insideRun reports whether a step has no effect outside its run, so that an attempt whose lease
// was lost left nothing behind. Such a step is retried only after a lost lease: a workflow cannot
// configure retries for it.
func insideRun(spec *workflow.Step) bool {
	return spec.Kind == workflow.KindTransform || spec.Kind == workflow.KindWait
}

// afterLost returns how long a step inside its run waits after attempt, which counts
// from 1: not at all after the first, then longer each time. Because of the jitter, a
// step that crashes its server is not always leased with the same other steps.
func afterLost(attempt int, random float64) time.Duration {
	return time.Duration(float64(attempt-1) * (0.5 + random) * float64(time.Second))
}

// cancelFor cancels the action or child run that a step waits for, when the step's run stops or
// its wait times out. If the action or child run can no longer be canceled, the step waits until
// it settles, so that no retry overtakes an effect that was already sent.
func (r *Runs) cancelFor(ctx context.Context, was *gatehouse.Step, why *gatehouse.Failure) error {
	var err error
	if was.ChildRun != "" {
		err = r.stopRun(ctx, was.Tenant, was.ChildRun, gatehouse.RunCanceled, why)
	} else {
		err = r.gate.CancelForRun(ctx, was.Tenant, was.ActionID)
	}
	if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
		return err
	}
	return r.move(ctx, was.Tenant, was.RunID, was.ID, "system", func(m *runTx) error {
		s := m.run.StepByID(was.ID)
		// If the step now waits for another action or run, such as a revision, its due time is for that wait.
		if s == nil || !s.Status.Parked() || s.ActionID != was.ActionID || s.ChildRun != was.ChildRun {
			return nil
		}
		s.DueAt = nil
		return m.tx.UpdateStep(s, s.Status, s.Generation)
	})
}
