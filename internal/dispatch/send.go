package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// intentTries is how often the intent's transaction is tried before the push is put
// back. A change of the policy, for instance, makes another try necessary.
const intentTries = 5

// intend makes the last checks and records the intent. It returns the call to
// make, built from the very rows that were checked; nil when the push has
// another outcome.
func (j *job) intend(ctx context.Context) (call *connector.Call, outcome string, err error) {
	together := gatehouse.WithCompanions(ctx, j.companions)
	for range intentTries {
		call, outcome, err = j.tryIntend(together)
		together = ctx
		if err == nil || errors.Is(err, errLost) {
			return call, outcome, err
		}
		if ahead := usecase.NeedsWork(nil); errors.As(err, &ahead) {
			if err = ahead.Do(ctx); err != nil {
				break
			}
		}
	}
	outcome, err = j.release(ctx, "store_error", "the intent could not be recorded", err)
	return nil, outcome, err
}

func (j *job) tryIntend(ctx context.Context) (call *connector.Call, outcome string, err error) {
	var sent *gatehouse.Push
	var action *gatehouse.Action
	var waited time.Duration
	err = j.update(ctx, gatehouse.PushPicking, func(s *step) {
		call, outcome, sent = nil, "", nil
		if outcome = j.lastChecks(s); outcome != "" || s.err != nil {
			return
		}
		p, now := s.push, s.tx.Now()
		p.Attempts++
		p.SentAt = &now
		s.movePush(gatehouse.PushSent)
		s.moveAction(gatehouse.StatusPushing, nil)
		s.leaf("push.sent")
		c := callOf(s.action, p.Attempts)
		call, sent, action, waited = &c, p, s.action, now.Sub(dueAt(p, j.push.NextAttempt))
		j.failpoint(PointIntentCommit)
	})
	if err != nil {
		return nil, "", err
	}
	j.proof = nil // stored
	if sent != nil {
		j.push, j.action = sent, action
		j.metrics.PushSent(sent.Connector, waited)
	}
	return call, outcome, nil
}

// lastChecks returns "" when the call may be made. Otherwise it ends the push, or
// puts it back, and returns the outcome.
func (j *job) lastChecks(s *step) (outcome string) {
	p, now := s.push, s.tx.Now()
	if p.LeaseUntil == nil || !now.Before(*p.LeaseUntil) {
		s.err = errLost
		return ""
	}
	if p.NotBefore.After(now) {
		s.movePush(gatehouse.PushQueued)
		return outcomeReleased
	}
	if s.prior != nil {
		s.applied(j.receiptFrom(s.prior))
		return string(gatehouse.PushApplied)
	}
	switch s.action.Status {
	case gatehouse.StatusApproved, gatehouse.StatusPushing:
	default:
		return j.stop(s, reason{code: "not_approved", detail: "the action is " + string(s.action.Status)})
	}
	if r := j.admit(p, s.action); j.outdated(r) {
		s.err = outdated{j}
		return ""
	} else if r != nil && r.connector && j.outdatedReason != nil {
		p.PutBack++
		s.retry(now.Add(j.outdatedWait), codeOutdated, clip(j.outdatedReason.Error()))
		return outcomeReleased
	} else if r != nil {
		return j.stop(s, *r)
	}
	s.do(func() error {
		err := j.authority.Recheck(s.tx, s.action, &s.rights)
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code.Retryable() {
			return err
		}
		outcome = j.stop(s, reason{code: string(e.Code), detail: e.Detail})
		return s.err
	})
	return outcome
}

// dueAt returns the earliest time at which a push could be claimed.
func dueAt(p *gatehouse.Push, next *time.Time) time.Time {
	due := later(p.CreatedAt, p.NotBefore)
	if next != nil {
		due = later(due, *next)
	}
	return due
}

// call makes the call of a recorded intent and records the outcome.
func (j *job) call(ctx context.Context, c *connector.Call) (outcome string, took time.Duration, err error) {
	var res connector.Result
	var failure *connector.Error
	start := j.now()
	switch gone := j.targets.unready(j.push.Tenant, j.push.Connector); {
	case gone != nil: // the target has become unready since the checks
		failure = gone
	case start.Before(j.until):
		callCtx, cancel := context.WithDeadline(ctx, j.until)
		callCtx, traced := j.trace(callCtx, "call", j.push)
		res, failure = j.targets.execute(callCtx, j.conn, *c)
		cancel()
		traced(callOutcome(failure), nil)
	default:
		// This process was suspended meanwhile: another worker may have the push.
		failure = &connector.Error{Kind: connector.NotSent, Code: "lease_short", Detail: "the lease ended before the call"}
	}
	took = j.now().Sub(start)
	j.failpoint(PointCalled)
	j.reportToBreaker(signOf(failure), failure)

	if failure == nil {
		r := j.receipt(sourceCall, gatehouse.ReceiptApplied, res)
		if j.recordApplied(ctx, r) {
			return string(gatehouse.PushApplied), took, nil
		}
		outcome, err = j.record(ctx, r, func(s *step) string {
			s.applied(r)
			return string(gatehouse.PushApplied)
		})
		return outcome, took, err
	}
	j.log.WarnContext(ctx, "call failed", "attempt", j.push.Attempts, "kind", failure.Kind, "code", failure.Code,
		"detail", failure.Detail, "cause", failure.Err)
	r := j.receipt(sourceCall, receiptOutcome(failure.Kind), res)
	r.ErrorCode, r.Error = failure.Code, clip(failure.Detail)
	v := judge(j.class, failure.Kind, j.clean, j.spent())
	var found *gatehouse.Receipt
	if v == verdictUnknown {
		found, v = j.finalReadBack(ctx, failure.Kind)
	}
	wait := j.wait(failure)
	outcome, err = j.record(ctx, r, func(s *step) string {
		s.push.AttemptBase = j.push.AttemptBase
		s.receipt(r)
		if found != nil {
			s.applied(found)
			return string(gatehouse.PushApplied)
		}
		return applyVerdict(s, v, wait, r, failure.Says)
	})
	return outcome, took, err
}

// callOutcome names the outcome of a call.
func callOutcome(failure *connector.Error) string {
	if failure == nil {
		return string(gatehouse.ReceiptApplied)
	}
	return string(receiptOutcome(failure.Kind))
}

// finalReadBack asks the target for the effect before a push becomes unknown. It
// returns the receipt of the effect; without an effect, it returns nil and the
// verdict. For class C, the verdict is unknown even if the target rules the effect
// out: a replay would be a second call, so a person decides about it.
func (j *job) finalReadBack(ctx context.Context, kind connector.Kind) (*gatehouse.Receipt, verdict) {
	j.clean = j.clean && kind != connector.Ambiguous
	if found := j.readBack(ctx, j.until); found != nil {
		return found, verdictFailed
	}
	if j.clean && !callsOnce(j.class) {
		return nil, verdictFailed
	}
	j.proof = nil
	return nil, verdictUnknown
}

// freeSlot frees the slot of a job whose call is done, so that another push can use it while the store
// records the outcome. At most Workers outcomes are recorded that way; further jobs keep their slots
// until they are done.
func (j *job) freeSlot() {
	if j.recorded {
		return
	}
	select {
	case j.recording <- struct{}{}:
		j.recorded = true
		<-j.slots
	default:
	}
}

// recordApplied writes a success without locks, on the state that the intent
// stored. It returns false after an error; then record reads the current state.
func (j *job) recordApplied(ctx context.Context, r *gatehouse.Receipt) bool {
	j.freeSlot()
	j.failpoint(PointOutcome)
	err := j.store.Update(gatehouse.WithCompanions(ctx, j.companions), j.push.Tenant, func(tx gatehouse.Tx) error {
		s := resume(tx, j.push, j.action, j.owner)
		s.applied(r)
		j.failpoint(PointOutcomeCommit)
		return s.err
	})
	if err != nil {
		return false
	}
	j.failpoint(PointSettled)
	return true
}

// record writes the outcome of a call and retries until ctx ends: without the
// record, the outcome would stay ambiguous. If the lease is lost, r is kept as
// evidence and no state changes.
func (j *job) record(ctx context.Context, r *gatehouse.Receipt, fn func(*step) string) (outcome string, err error) {
	j.freeSlot()
	j.failpoint(PointOutcome)
	together := gatehouse.WithCompanions(ctx, j.companions)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err = j.update(together, gatehouse.PushSent, func(s *step) {
			outcome = fn(s)
			j.failpoint(PointOutcomeCommit)
		})
		together = ctx
		if errors.Is(err, errLost) {
			outcome, err = outcomeLate, j.recordLate(ctx, r)
		}
		if err == nil {
			j.failpoint(PointSettled)
			return outcome, nil
		}
		j.log.ErrorContext(ctx, "outcome not recorded yet", "error", err)
		select {
		case <-ctx.Done():
			return "", errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// recordLate stores the receipt as late, after this worker has lost the lease.
func (j *job) recordLate(ctx context.Context, r *gatehouse.Receipt) error {
	return j.store.Update(ctx, j.push.Tenant, func(tx gatehouse.Tx) error {
		s, err := begin(tx, queryOf(j.push), j.owner)
		if err != nil {
			return err
		}
		late := *r
		late.Late = true
		s.receipt(&late)
		s.leaf("push.late", text("receipt", r.ID), text("outcome", string(r.Outcome)),
			number("late_attempt", r.Attempt), number("late_generation", r.Generation))
		return s.err
	})
}
