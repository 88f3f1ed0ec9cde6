package dispatch

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// verdict is the consequence of a failed call.
type verdict string

const (
	verdictRetry   verdict = "retry"
	verdictFailed  verdict = "failed"
	verdictUnknown verdict = "unknown"
)

// judge decides about a failed call. clean says that every earlier attempt is
// proven to be without effect, spent that no attempt is left.
//
//	            A, B                        C
//	not_sent    retry                       retry
//	transient   retry                       end, since the one call was made
//	ambiguous   retry                       unknown
//	terminal    end                         end
//
// "end", and a retry without attempts left, is failed when all attempts are
// proven to be without effect, else unknown. A spent ambiguous call is unknown.
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
		if spent || once(class) && (kind == connector.Transient || !clean) {
			return end
		}
		return verdictRetry
	default:
		if once(class) || spent {
			return end
		}
		return verdictRetry
	}
}

// once reports whether a class allows only one automatic call; true for an
// unknown class.
func once(c connector.Class) bool { return c != connector.ClassA && c != connector.ClassB }

// The sources of receipts; see [gatehouse.Receipt]. sourceCheck marks an
// attempt that ended before its call because the target could not be checked.
const (
	sourceCall     = "call"
	sourceCheck    = "check"
	sourceReceipt  = "receipt"
	sourceReadBack = "read_back"
	sourceOperator = "operator"
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

// maxRetryAfter bounds the wait that a target can ask for.
const maxRetryAfter = time.Hour

// backoff returns the wait after the nth attempt (from 1): the nth configured
// step, or the last one, varied by up to a fifth; longer when the target asks
// for it in wish. random is in [0, 1).
func backoff(steps []time.Duration, n int, wish time.Duration, random float64) time.Duration {
	d := steps[min(max(n, 1), len(steps))-1]
	d += time.Duration(float64(d) * (random - 0.5) * 0.4)
	return max(d, min(wish, maxRetryAfter))
}
