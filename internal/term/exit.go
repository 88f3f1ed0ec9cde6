package term

import (
	"fmt"
)

// The exit codes. Scripts can rely on them without parsing the output.
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

// Exit is an error that only carries an exit code: everything is printed already.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// UsageError is a mistake in the command line that the parser does not detect.
type UsageError struct{ detail string }

func (e *UsageError) Error() string { return e.detail }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
