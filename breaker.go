package gatehouse

import "time"

// The states of a breaker.
const (
	// BreakerClosed: calls are made.
	BreakerClosed = "closed"
	// BreakerOpen: no call is made until the next trial; pushes wait without an attempt.
	BreakerOpen = "open"
	// BreakerHalfOpen: one push is on its way as a trial, the others wait.
	BreakerHalfOpen = "half_open"
)

// CodeBreakerOpen is the error code of a push that waits for a breaker.
const CodeBreakerOpen = "breaker_open"

// BreakerState is whether the calls of a connector are stopped, since too many in a
// row have failed.
type BreakerState struct {
	Connector string `json:"connector"`
	// State is closed, open or half_open.
	State string `json:"state"`
	// Since is when it was opened, NextTrialAt when it is tried again; nil where it is
	// closed, or another process knows.
	Since       *time.Time `json:"since,omitempty"`
	NextTrialAt *time.Time `json:"next_trial_at,omitempty"`
	// Failures counts the calls in a row that have failed.
	Failures int `json:"failures,omitempty"`
	// ErrorCode is that of the last one, which may have been another tenant's.
	ErrorCode string `json:"error_code,omitempty"`
	// Waiting counts the caller's pushes that wait for it, up to [MaxLimit].
	Waiting int `json:"waiting"`
}
