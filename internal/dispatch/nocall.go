package dispatch

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// settle ends the push as applied without a call under this claim: an earlier attempt had the effect.
func (j *job) settle(ctx context.Context, r *gatehouse.Receipt) (string, error) {
	err := j.update(ctx, gatehouse.PushPicking, func(s *step) { s.applied(r) })
	return string(gatehouse.PushApplied), err
}

// quarantine ends the push without a call under this claim.
func (j *job) quarantine(ctx context.Context, r reason) (outcome string, err error) {
	err = j.update(ctx, gatehouse.PushPicking, func(s *step) { outcome = j.stop(s, r) })
	return outcome, err
}

// stop is quarantine within a transaction. If an earlier attempt may have had
// its effect, the push ends as unknown.
func (j *job) stop(s *step, r reason) (outcome string) {
	receipts, err := s.tx.ListReceipts(s.push.ActionID)
	s.do(func() error { return err })
	var more []gatehouse.Member
	if r.found != "" {
		more = append(more, gatehouse.Member{Name: "found", Value: r.found})
	}
	s.end(gatehouse.WithoutEffect(receipts, s.push.Attempts), r.code, r.detail, "", more...)
	if s.push.Status == gatehouse.PushFailed {
		return outcomeQuarantined
	}
	return string(s.push.Status)
}

// release puts the push back without an attempt after a failure on this side. The wait grows up to the last
// Backoff, so that minutes of trouble neither use up the push's claims nor load the machine. cause is for the log.
func (j *job) release(ctx context.Context, code, detail string, cause error) (string, error) {
	j.log.WarnContext(ctx, "push put back", "code", code, "error", cause)
	claims := claimsWithoutAttempt(j.push)
	if since := claims - j.config.MaxClaims*j.push.Replays - 1; j.push.Replays > 0 && since > 0 {
		claims = since // those that poisoned the push before a replay do not count
	}
	wait := backoff(j.config.Backoff, claims, 0, j.random())
	err := j.update(ctx, gatehouse.PushPicking, func(s *step) {
		s.retry(s.tx.Now().Add(wait), code, detail)
	})
	return outcomeReleased, err
}

// putBack puts the push back without an attempt. The claim does not count either: see poison. The waits vary, so
// that waiting pushes return one after another.
func (j *job) putBack(ctx context.Context, wait time.Duration, code, detail string) (string, error) {
	wait += time.Duration(float64(wait) * j.random() / 5)
	err := j.update(ctx, gatehouse.PushPicking, func(s *step) {
		s.push.PutBack++
		s.retry(s.tx.Now().Add(wait), code, clip(detail))
	})
	return outcomeReleased, err
}

// checkFailed counts an attempt whose target could not be checked. The attempt
// has no effect: no call was made.
func (j *job) checkFailed(ctx context.Context, failure *connector.Error) (outcome string, err error) {
	j.push.Attempts++
	j.reportToBreaker(signOf(failure), failure)
	r := j.receipt(sourceCheck, gatehouse.ReceiptNotSent, connector.Result{})
	r.ErrorCode, r.Error = failure.Code, clip(failure.Detail)
	kind := connector.NotSent
	if failure.Kind == connector.Terminal {
		kind = connector.Terminal
	}
	v, wait := judge(j.class, kind, j.clean, j.spent()), j.wait(failure)
	err = j.update(ctx, gatehouse.PushPicking, func(s *step) {
		s.push.Attempts, s.push.AttemptBase = r.Attempt, j.push.AttemptBase
		s.receipt(r)
		outcome = applyVerdict(s, v, wait, r, failure.Says)
	})
	return outcome, err
}
