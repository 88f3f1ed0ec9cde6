package mssqltest

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Error is an error of the server, by its documented number.
type Error struct {
	Number  int32
	Message string
	// Ends makes the server roll the transaction back. Breaks makes the answer say that the connection
	// is broken.
	Ends, Breaks bool
	// Silent ends the connection after the statement, without an answer. Before ends it before the
	// statement is carried out.
	Silent, Before bool
}

func (e *Error) Error() string { return e.Message }

func refused(number int32, message string) *Error { return &Error{Number: number, Message: message} }

// ended returns an error after which the server rolls the transaction back.
func ended(number int32, message string) *Error {
	return &Error{Number: number, Message: message, Ends: true}
}

func syntax(near string) *Error { return refused(102, "Incorrect syntax near '"+near+"'.") }

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// translated gives an error of SQLite the number that SQL Server has for it.
func translated(err error, table string) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return refused(50000, err.Error())
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return refused(2627, "Violation of PRIMARY KEY constraint 'PK'. Cannot insert duplicate key in object 'dbo."+
			table+"'. The duplicate key value is (hidden).")
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return refused(2601, "Cannot insert duplicate key row in object 'dbo."+table+"' with unique index 'UQ'. "+
			"The duplicate key value is (hidden).")
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return refused(547, "The statement conflicted with the REFERENCE constraint \"FK\".")
	case sqlite3.SQLITE_CONSTRAINT_CHECK:
		return refused(547, "The statement conflicted with the CHECK constraint \"CK\".")
	case sqlite3.SQLITE_CONSTRAINT_NOTNULL:
		return refused(515, "Cannot insert the value NULL into column, table 'dbo."+table+"'; column does not allow nulls.")
	case sqlite3.SQLITE_ERROR:
		return refused(208, "Invalid object name '"+table+"'.")
	}
	return refused(50000, e.Error())
}
