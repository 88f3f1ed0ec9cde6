package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
)

var (
	errClosed = errors.New("postgres: store is closed")
	errEnded  = errors.New("postgres: transaction used after its end")

	errSecondRead = errors.New("postgres: a Read made a second query")
)

// kind is the meaning of a server error for a transaction.
type kind int

const (
	other kind = iota
	// conflict and missing are answers: a guard failed, or a row does not exist.
	conflict
	missing
	// contention ended the transaction, which may run again.
	contention
	// lost means that the connection is lost, and the transaction with it.
	lost
	// denied means that the role lacks a privilege, until somebody grants it.
	denied
)

// dbError is an error with its kind.
type dbError struct {
	kind kind
	err  error
}

func (e *dbError) Error() string { return "postgres: " + e.err.Error() }

func (e *dbError) Unwrap() error { return e.err }

// Is maps kinds to the errors that callers of the store know.
func (e *dbError) Is(target error) bool {
	switch target {
	case gatehouse.ErrConflict:
		return e.kind == conflict
	case gatehouse.ErrNotFound:
		return e.kind == missing
	case gatehouse.ErrBusy:
		return e.kind == contention || e.kind == lost || e.kind == denied
	}
	return false
}

// noRow is the error of a statement that should have written a row. none is ErrConflict or ErrNotFound.
func noRow(none error) error {
	e := &dbError{conflict, errors.New("no row matches")}
	if errors.Is(none, gatehouse.ErrNotFound) {
		e.kind = missing
	}
	return e
}

// explain adds the kind to a driver error.
func explain(err error) error {
	var own *dbError
	if err == nil || errors.As(err, &own) {
		return err
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return &dbError{lost, err}
	}
	if severe(pg) {
		return &dbError{lost, err}
	}
	if lacksPrivilege(pg) {
		return &dbError{denied, err}
	}
	if strings.HasPrefix(pg.Code, "53") { // insufficient resources: disk, memory, connections
		return &dbError{contention, err}
	}
	switch pg.Code {
	case "GH001", "23505": // guard or trigger, unique_violation
		return &dbError{conflict, err}
	case "GH002", "23503": // guard, foreign_key_violation
		return &dbError{missing, err}
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return &dbError{contention, err}
	case "0A000", "26000": // a plan from before a migration, or a prepared statement that a pooler lost
		return &dbError{contention, err}
	case "25006": // read_only_sql_transaction: the database was frozen, or is now a standby
		return &dbError{contention, err}
	case "57014": // query_canceled, by an operator or statement_timeout: the store's own cancellation ends the connection
		return &dbError{contention, err}
	case "22021", "22P05": // character_not_in_repertoire, untranslatable_character
		return gatehouse.E(gatehouse.CodeInvalid, "a text holds a character that cannot be stored, such as NUL").Because(err)
	case "54000": // program_limit_exceeded: an index entry
		return gatehouse.E(gatehouse.CodeInvalid, "an indexed text is too long").Because(err)
	}
	return &dbError{other, err}
}

// severe errors end the connection.
func severe(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" ||
		strings.HasPrefix(pg.Code, "08") || pg.Code == "57P01" || pg.Code == "57P02" || pg.Code == "57P03"
}

func kindOf(err error) kind {
	var e *dbError
	if errors.As(err, &e) {
		return e.kind
	}
	return other
}
