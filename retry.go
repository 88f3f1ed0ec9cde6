package gatehouse

// Retry is what an agent can expect of a change that did not succeed.
type Retry string

// The values of Retry say whether a change can be retried, and who retries it.
const (
	// RetryNever: this change is over. Propose another one.
	RetryNever Retry = "never"
	// RetryLater: the change is sound and had no effect. An administrator replays it
	// when the target is up. Do not propose it again.
	RetryLater Retry = "later"
	// RetryOperator: an operator has to investigate or repair something first. Do
	// not propose it again.
	RetryOperator Retry = "operator"
)

// cause is the cause of a push's failure, as far as its error code shows.
type cause int

const (
	// causeOther: the target refused the change, or the code is not known.
	causeOther cause = iota
	// causeApproval: the approval no longer holds, or the call would not have the approved
	// effect.
	causeApproval
	// causeContent: the change itself is wrong.
	causeContent
	// causeDown: the target or the store was not available, or did not answer in time.
	causeDown
	// causeAccess: the connector or its rights must be repaired.
	causeAccess
)

func causeOf(code string) cause {
	switch code {
	case string(CodeTargetChanged), string(CodeDigestMismatch), string(CodeAuthorityRevoked),
		"idempotency_conflict", "not_as_approved", "redirect", "address_refused":
		return causeApproval
	case string(CodeInvalid), "resolved_failed":
		return causeContent
	case "unreachable", "timeout", "connection_lost", "retries_exhausted", "check_failed", "lease_expired", "lease_short",
		"store_error", "http_408", "http_425", "http_429", "http_500", "http_502", "http_503", "http_504":
		return causeDown
	case "http_401", "http_403", "http_407", "token_refused", "clock_skew", "connector_missing", "secret_missing",
		"poison", "ambiguous", "connector_error", "connector_panic":
		return causeAccess
	}
	if len(code) == len("http_4xx") && code[:len("http_4")] == "http_4" {
		return causeContent
	}
	return causeOther
}

// retryOf classifies the end of a push for the agent that proposed it.
func retryOf(s Status, p *Push, code string) Retry {
	switch {
	case p.ClosedAt != nil:
		return RetryNever
	case s == StatusUnknown:
		return RetryOperator
	}
	switch causeOf(code) {
	case causeApproval, causeContent:
		return RetryNever
	case causeDown:
		return RetryLater
	}
	return RetryOperator
}

// Correctable reports whether an operator can edit the change of a failed action and
// propose it again: the error does not show another cause than the change's content,
// and nobody has corrected it yet. It does not know whether the dead letter is closed; the gate
// checks that.
func (a *Action) Correctable() bool {
	if a.Status != StatusFailed || a.Failure == nil || a.Push == nil || a.Superseded != "" || a.ArchivedAt != nil {
		return false
	}
	c := causeOf(a.Failure.Code)
	return c == causeContent || c == causeOther
}
