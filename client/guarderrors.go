package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// What a [*NotApplied] is, by errors.Is.
var (
	ErrDenied   = errors.New("denied")
	ErrRejected = errors.New("rejected")
	ErrExpired  = errors.New("expired: nobody decided in time")
	// ErrWithdrawn: it was canceled.
	ErrWithdrawn = errors.New("canceled: it was taken back")
	// ErrReversed: it was applied, and undone later.
	ErrReversed = errors.New("reversed: it was applied, and undone later")
	// ErrFailed: approved, and it came to nothing.
	ErrFailed = errors.New("failed")
	// ErrUnknown: it may have taken effect. A person looks into it; it is not to be proposed again.
	ErrUnknown = errors.New("unknown: it may have taken effect")
	// ErrWaiting: it is not finished yet, and goes on. The same call made again joins it.
	ErrWaiting = errors.New("not finished yet")
	// ErrNoResult: it was applied, and what the function returned then was not kept.
	ErrNoResult = errors.New("client: applied, and the result was not kept")
)

var outcomes = map[gatehouse.Status]error{
	gatehouse.StatusDenied: ErrDenied, gatehouse.StatusRejected: ErrRejected, gatehouse.StatusExpired: ErrExpired,
	gatehouse.StatusCanceled: ErrWithdrawn, gatehouse.StatusSuperseded: ErrWithdrawn,
	gatehouse.StatusReversed: ErrReversed, gatehouse.StatusFailed: ErrFailed, gatehouse.StatusUnknown: ErrUnknown,
}

// NotApplied is an action of a [GuardedFunc] that came to no effect that is known.
type NotApplied struct {
	// Action is how it stands.
	Action *gatehouse.Action
	// Cause is what the function returned here, if it ran.
	Cause error
}

// Unwrap has the kind, and the cause where there is one.
func (e *NotApplied) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.kind()}
	}
	return []error{e.kind(), e.Cause}
}

func (e *NotApplied) kind() error {
	if kind := outcomes[e.Action.Status]; kind != nil {
		return kind
	}
	return ErrWaiting
}

func (e *NotApplied) Error() string {
	said := e.kind().Error()
	switch {
	case e.Action.Status == gatehouse.StatusDenied:
		said += ": " + strings.Join(e.Action.Policy.Reasons, "; ")
	case e.Action.Status == gatehouse.StatusRejected:
		said += ": " + strings.Join(e.Notes(), "; ")
	case e.Action.Failure != nil:
		said += fmt.Sprintf(": %s: %s", e.Action.Failure.Code, e.Action.Failure.Detail)
	}
	return said + " (" + e.Action.ID + ")"
}

// Notes are the words of those who said no.
func (e *NotApplied) Notes() []string {
	var notes []string
	if e.Action.Approval == nil {
		return nil
	}
	for _, v := range e.Action.Approval.Votes {
		if v.Decision == gatehouse.Reject && v.Notes != "" {
			notes = append(notes, v.Notes)
		}
	}
	return notes
}

// noEffect marks an error of a function that has changed nothing, and knows it.
type noEffect struct {
	err   error
	code  string
	retry bool
}

func (e *noEffect) Error() string { return e.err.Error() }

func (e *noEffect) Unwrap() error { return e.err }

// NoEffect marks an error of a guarded function that has changed nothing. retry says that
// another attempt may succeed. Any other error leaves the outcome unknown. Of nil it is nil.
func NoEffect(err error, retry bool) error {
	if err == nil {
		return nil
	}
	return &noEffect{err: err, code: "refused", retry: retry}
}
