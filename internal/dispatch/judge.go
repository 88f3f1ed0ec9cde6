package dispatch

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// verdict is what follows a failed call.
type verdict string

const (
	verdictRetry   verdict = "retry"
	verdictFailed  verdict = "failed"
	verdictUnknown verdict = "unknown"
)

// judge returns the verdict about a failed call of an operation. clean says that all earlier attempts are
// proven to be without effect; spent says that no attempt is left.
//
//	kind        class A or B    class C
//	not_sent    retry           retry if clean, else unknown
//	transient   retry           failed if clean, else unknown
//	ambiguous   retry           unknown
//	terminal    failed if clean, else unknown
//
// If no attempt is left, a retry after an ambiguous call becomes unknown; a retry after a not_sent or transient
// call becomes failed if clean, else unknown.
func judge(class connector.Class, kind connector.Kind, clean, spent bool) verdict {
	end := verdictUnknown
	switch kind {
	case connector.Terminal:
		if clean {
			end = verdictFailed
		}
		return end
	case connector.NotSent, connector.Transient:
		if clean {
			end = verdictFailed
		}
		if spent || callsOnce(class) && (kind == connector.Transient || !clean) {
			return end
		}
		return verdictRetry
	default:
		if callsOnce(class) || spent {
			return end
		}
		return verdictRetry
	}
}

// callsOnce reports whether a class allows only one automatic call; true for an unknown class.
func callsOnce(c connector.Class) bool { return c != connector.ClassA && c != connector.ClassB }

// The sources of receipts; see [gatehouse.Receipt]. sourceCheck is the source of an attempt that made no
// call because the check of the target failed.
const (
	sourceCall     = "call"
	sourceCheck    = "check"
	sourceReceipt  = "receipt"
	sourceReadBack = "read_back"
)

// receiptOutcome returns the receipt outcome of a failed call.
func receiptOutcome(k connector.Kind) gatehouse.ReceiptOutcome {
	switch k {
	case connector.NotSent:
		return gatehouse.ReceiptNotSent
	case connector.Transient:
		return gatehouse.ReceiptTransient
	case connector.Terminal:
		return gatehouse.ReceiptTerminal
	}
	return gatehouse.ReceiptAmbiguous
}

// applyVerdict moves the push after a failed attempt with the receipt r. targetSays is the text of the target's
// answer.
func applyVerdict(s *step, v verdict, wait time.Duration, r *gatehouse.Receipt, targetSays string) (outcome string) {
	if v != verdictRetry {
		s.end(v == verdictFailed, r.ErrorCode, r.Error, targetSays, text("receipt", r.ID))
		return string(s.push.Status)
	}
	next := s.tx.Now().Add(wait)
	s.retry(next, r.ErrorCode, r.Error)
	s.leaf("push.retry", text("receipt", r.ID), text("code", r.ErrorCode),
		text("next_attempt_at", next.Format(time.RFC3339Nano)))
	return outcomeRetry
}

// spent reports whether no attempt is left after this one.
func (j *job) spent() bool { return j.config.spent(j.push, j.class, j.retention) }

// spent reports whether a push has no attempt left: all Retries are used, and for class A Patience, or the key
// retention if that is shorter, has passed since the push was first due. That time is measured up to the last
// claim, by the store's clock.
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

// wait returns the time until the next attempt.
func (j *job) wait(failure *connector.Error) time.Duration {
	return backoff(j.config.Backoff, j.push.Attempts-j.push.AttemptBase, failure.RetryAfter, j.random())
}

// maxRetryAfter bounds the wait that a target can request, as connectors do.
const maxRetryAfter = 24 * time.Hour

// backoff returns the wait after attempt n, where 1 is the first: the nth of waits, or the last one, varied by up
// to a fifth. If the target requests a longer wait (retryAfter), backoff returns that, up to maxRetryAfter. random
// is in [0, 1).
func backoff(waits []time.Duration, n int, retryAfter time.Duration, random float64) time.Duration {
	wait := waits[min(max(n, 1), len(waits))-1]
	wait += time.Duration(float64(wait) * (random - 0.5) * 0.4)
	return max(wait, min(retryAfter, maxRetryAfter))
}
