package term

import (
	"fmt"
)

// The exit codes. A script can go by them without reading any output.
const (
	ExitDone       = 0
	ExitError      = 1
	ExitUsage      = 2
	ExitNotAllowed = 4  // not authenticated, or not allowed
	ExitPending    = 8  // still pending, or not finished
	ExitRejected   = 10 // rejected by a person or denied by the policy
	ExitExpired    = 11
	ExitDecided    = 12 // superseded, canceled or already decided
	ExitUnknown    = 13 // the outcome at the target is unknown
	ExitCanceled   = 130
)

// Exit is an error that only carries an exit code: what there was to say
// is printed already.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// UsageError is a mistake in the command line that the parser cannot see.
type UsageError struct{ detail string }

func (e *UsageError) Error() string { return e.detail }

// Usagef is a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
