package sqlite

import (
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

const codeInterrupt = sqlite3.SQLITE_INTERRUPT

var (
	errClosed = errors.New("sqlite: store is closed")
	errEnded  = errors.New("sqlite: transaction used after its end")
)

// dbError is an error of SQLite with its extended result code.
type dbError struct {
	code int32
	text string
}

func (e *dbError) Error() string { return fmt.Sprintf("%s (SQLite error %d)", e.text, e.code) }

// Is maps result codes to the store's errors that callers know.
func (e *dbError) Is(target error) bool {
	switch target {
	case gatehouse.ErrConflict:
		switch e.code {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_TRIGGER:
			return true
		}
	case gatehouse.ErrNotFound:
		return e.code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
	case gatehouse.ErrBusy:
		return e.code&0xff == sqlite3.SQLITE_BUSY || e.code&0xff == sqlite3.SQLITE_LOCKED
	}
	return false
}

func isCode(err error, primary int32) bool {
	var e *dbError
	return errors.As(err, &e) && e.code&0xff == primary
}
