package gatehouse

import "time"

// The states of a breaker.
const (
	// BreakerClosed: calls are made.
	BreakerClosed = "closed"
	// BreakerOpen: no call is made until the next trial; pushes wait without using
	// an attempt.
	BreakerOpen = "open"
	// BreakerHalfOpen: one push is sent as a trial, the others wait.
	BreakerHalfOpen = "half_open"
)

// CodeBreakerOpen is the error code of a push that waits for a breaker.
const CodeBreakerOpen = "breaker_open"

// CodeConcurrency is the error code of a push that waits because as many calls of its connector
// are under way as its configuration permits.
const CodeConcurrency = "concurrency_limit"

// BreakerState is the state of a connector's circuit breaker.
type BreakerState struct {
	Connector string `json:"connector"`
	// State is closed, open or half_open.
	State string `json:"state"`
	// Since is when the breaker opened; nil when it is closed, or when only another
	// process's breaker is open.
	Since *time.Time `json:"since,omitempty"`
	// NextTrialAt is when the next trial is due; of another process's breaker, when the
	// first waiting push is due; nil when the breaker is closed.
	NextTrialAt *time.Time `json:"next_trial_at,omitempty"`
	// Failures counts consecutive failed calls; 0 unless this process's breaker is open or half open.
	Failures int `json:"failures,omitempty"`
	// ErrorCode is the code of the last failure, which may be another tenant's; "" if Failures is 0.
	ErrorCode string `json:"error_code,omitempty"`
	// Cause describes why calls are stopped, with the last failure. The target's message is left
	// out if it is for another tenant. Cause is "" for a caller that reads only its own actions.
	Cause string `json:"cause,omitempty"`
	// Waiting counts the pushes that wait for the breaker, among the [MaxLimit] newest queued pushes
	// that the caller may read.
	Waiting int `json:"waiting"`
}
