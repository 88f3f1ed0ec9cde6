package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// The kinds of a [*NotApplied], for errors.Is; and ErrNoResult, which is not one of them.
var (
	ErrDenied   = errors.New("denied")
	ErrRejected = errors.New("rejected")
	ErrExpired  = errors.New("expired: nobody decided in time")
	// ErrWithdrawn: the action was canceled or superseded.
	ErrWithdrawn = errors.New("canceled: the action was withdrawn")
	// ErrReversed: the action was applied, and reversed later.
	ErrReversed = errors.New("reversed: the action was applied, and later reversed")
	// ErrFailed: the action was approved, but has had no effect.
	ErrFailed = errors.New("failed")
	// ErrUnknown: the action may have taken effect. A person investigates; do not propose it again.
	ErrUnknown = errors.New("unknown: the action may have taken effect")
	// ErrWaiting: the action is not finished yet, and continues. To wait for it, repeat the call.
	ErrWaiting = errors.New("not finished yet")
	// ErrNoResult: the action was applied, but the function's result was not stored.
	ErrNoResult = errors.New("client: applied, but the result was not stored")
)

var outcomes = map[gatehouse.Status]error{
	gatehouse.StatusDenied: ErrDenied, gatehouse.StatusRejected: ErrRejected, gatehouse.StatusExpired: ErrExpired,
	gatehouse.StatusCanceled: ErrWithdrawn, gatehouse.StatusSuperseded: ErrWithdrawn,
	gatehouse.StatusReversed: ErrReversed, gatehouse.StatusFailed: ErrFailed, gatehouse.StatusUnknown: ErrUnknown,
}

// NotApplied is the error of a [GuardedFunc] whose action has no known, lasting effect.
type NotApplied struct {
	// Action is the action's present state.
	Action *gatehouse.Action
	// Cause is the error of the function, if it ran in this process.
	Cause error
}

// Unwrap returns the kind and, if there is one, the cause.
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
	text := e.kind().Error()
	switch {
	case e.Action.Status == gatehouse.StatusDenied:
		text += ": " + strings.Join(e.Action.Policy.Reasons, "; ")
	case e.Action.Status == gatehouse.StatusRejected:
		text += ": " + strings.Join(e.Notes(), "; ")
	case e.Action.Failure != nil:
		text += fmt.Sprintf(": %s: %s", e.Action.Failure.Code, e.Action.Failure.Detail)
	}
	return text + " (" + e.Action.ID + ")"
}

// Notes are the notes of the people who rejected the action.
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

// noEffect marks an error of a function that has certainly changed nothing.
type noEffect struct {
	err   error
	code  string
	retry bool
}

func (e *noEffect) Error() string { return e.err.Error() }

func (e *noEffect) Unwrap() error { return e.err }

// NoEffect marks an error of a guarded function that has changed nothing. retry says that another
// attempt may succeed. Any other error leaves the outcome unknown. NoEffect(nil) is nil.
func NoEffect(err error, retry bool) error {
	if err == nil {
		return nil
	}
	return &noEffect{err: err, code: "refused", retry: retry}
}
