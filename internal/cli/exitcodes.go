package cli

import (
	"fmt"
)

// The exit codes. A script can go by them without reading any output.
const (
	exitDone       = 0
	exitError      = 1
	exitUsage      = 2
	exitNotAllowed = 4  // not authenticated, or not allowed
	exitPending    = 8  // still pending, or not finished
	exitRejected   = 10 // rejected by a person or denied by the policy
	exitExpired    = 11
	exitDecided    = 12 // superseded, canceled or already decided
	exitUnknown    = 13 // the outcome at the target is unknown
	exitCanceled   = 130
)

// exitWith is an error that only carries an exit code: what there was to say
// is printed already.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a mistake in the command line that the parser cannot see.
type usageError struct{ detail string }

func (e *usageError) Error() string { return e.detail }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
