package dispatch

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Outcomes for the metrics, besides the names of statuses.
const (
	outcomeRetry       = "retry"
	outcomeQuarantined = "quarantined"
	outcomeReleased    = "released"
	outcomeLate        = "late"
	outcomeRescued     = "rescued"
)

// update runs fn in a transaction if the push still belongs to this worker and
// is in from; otherwise it fails with errLost. It also stores the read-back's
// proof.
func (j *job) update(ctx context.Context, from gatehouse.PushStatus, fn func(*step)) error {
	return j.store.Update(ctx, j.push.Tenant, func(tx gatehouse.Tx) error {
		s, err := begin(tx, j.query(from), j.owner)
		if err != nil {
			return err
		}
		if s.push.Status != from || s.push.Generation != j.push.Generation {
			return errLost
		}
		if j.proof != nil {
			s.receipt(j.proof)
		}
		fn(s)
		return s.err
	})
}

// query returns the query that opens a transaction on the push. Before the call, it
// includes the rights, and the receipt if none was read yet or a stopped worker may
// have reported meanwhile.
func (j *job) query(from gatehouse.PushStatus) gatehouse.PushQuery {
	q := queryOf(j.push)
	q.Rights = from == gatehouse.PushPicking
	if q.Rights && (j.push.Attempts > 0 || j.action == nil) {
		q.ReceiptKey = j.push.IdempotencyKey
	}
	return q
}

// settle records an effect that exists without a call under this claim.
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

// release puts the push back without an attempt after a failure on this side.
// The wait grows each time, so that minutes of trouble neither use up the
// push's claims nor load the machine. cause is for the log.
func (j *job) release(ctx context.Context, code, detail string, cause error) (string, error) {
	j.log.WarnContext(ctx, "push put back", "code", code, "error", cause)
	claims := j.push.Generation - j.push.Attempts - j.push.PutBack - j.config.MaxClaims*j.push.Replays
	wait := backoff(j.config.Backoff, claims, 0, j.random())
	err := j.update(ctx, gatehouse.PushPicking, func(s *step) {
		s.retry(s.tx.Now().Add(wait), code, detail)
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

// spent reports whether no attempt is left after this one.
func (j *job) spent() bool { return j.config.spent(j.push, j.class, j.retention) }

// spent reports whether a push has no attempt left. Patience is measured on the
// store's clock, up to the last claim.
func (c *Config) spent(p *gatehouse.Push, class connector.Class, retention time.Duration) bool {
	if p.Attempts-p.AttemptBase <= c.Retries {
		return false
	}
	if class != connector.ClassA || p.PickedAt == nil {
		return true
	}
	patience := c.Patience
	if retention > 0 {
		patience = min(patience, retention)
	}
	return p.PickedAt.Sub(p.FirstDue()) >= patience
}

func (j *job) wait(failure *connector.Error) time.Duration {
	return backoff(j.config.Backoff, j.push.Attempts-j.push.AttemptBase, failure.RetryAfter, j.random())
}

// applyVerdict writes the consequence of a failed attempt.
func applyVerdict(s *step, v verdict, wait time.Duration, r *gatehouse.Receipt, says string) (outcome string) {
	if v != verdictRetry {
		s.end(v == verdictFailed, r.ErrorCode, r.Error, says, text("receipt", r.ID))
		return string(s.push.Status)
	}
	next := s.tx.Now().Add(wait)
	s.retry(next, r.ErrorCode, r.Error)
	s.leaf("push.retry", text("receipt", r.ID), text("code", r.ErrorCode),
		text("next_attempt_at", next.Format(time.RFC3339Nano)))
	return outcomeRetry
}
