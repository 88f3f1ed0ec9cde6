package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// dialect holds the differences between the engines.
type dialect interface {
	// columns reads the catalogue; empty when the table does not exist.
	columns(ctx context.Context, q querier, table string) ([]column, error)
	// param is the placeholder of the i-th parameter, starting at 1.
	param(i int) string
	// read is the expression that reads a column in a form that decode can convert exactly.
	read(c column) string
	// decode converts the result of read to JSON.
	decode(c column, raw any) (cell, error)
	// bind converts a proposal's value to a parameter, never through a float.
	bind(c column, v gatehouse.JSON) any
	// lock is the suffix of a SELECT that locks its rows until the end of the transaction.
	lock() string
	// now is the SQL expression for the current time.
	now() string

	// begin starts a transaction for reading, locking and writing the rows.
	begin(ctx context.Context, conn *sql.Conn) error
	// commit commits. An error with rolledBack set proves that nothing of the transaction remains.
	commit(ctx context.Context, conn *sql.Conn) (rolledBack bool, err error)
	// rollback reports whether it is proven that nothing remains.
	rollback(ctx context.Context, conn *sql.Conn) bool
	// ensureRecord creates the idempotency table if it does not exist.
	ensureRecord(ctx context.Context, conn *sql.Conn, table string) error
	// classify interprets an error of a statement that has since been rolled back.
	classify(err error) verdict
}

// discard closes a connection instead of returning it to the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// maxSays limits how much of a database's message is kept, in characters.
const maxSays = 1000

// shortened cuts a database's message to maxSays.
func shortened(message string) string {
	if r := []rune(message); len(r) > maxSays {
		return string(r[:maxSays]) + "…"
	}
	return message
}

// verdict is the meaning of a failed statement.
type verdict struct {
	kind connector.Kind
	code string
	// detail is the database's message in a form for operators, says the message's own words only.
	detail, says string
	// unique marks a violated unique key, missing a relation that no longer exists.
	unique, missing bool
	// answered reports whether the server itself returned the error.
	answered bool
}
