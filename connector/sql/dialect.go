package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// dialect is what differs between the engines.
type dialect interface {
	// columns reads the catalogue; none when there is no such table.
	columns(ctx context.Context, q querier, table string) ([]column, error)
	// quote quotes a table's or column's name, which identifierForm has accepted or the
	// database's own catalogue has.
	quote(name string) string
	// param is the placeholder of the i-th parameter, from 1.
	param(i int) string
	// read is the expression that reads a column so that decode can tell its
	// exact value.
	read(c column) string
	// decode makes JSON of what read gave.
	decode(c column, raw any) (cell, error)
	// bind makes a parameter of a proposal's value. No float is ever made.
	bind(c column, v gatehouse.JSON) any
	// lock ends a SELECT whose rows must stay as they are until the end.
	lock() string
	// now is the expression of the current time.
	now() string

	// unlessExists ends an INSERT of a record that does nothing when there is one. Where it is
	// empty, the INSERT fails then, and the transaction goes on.
	unlessExists() string

	// begin starts a transaction that no other can slip into.
	begin(ctx context.Context, conn *sql.Conn) error
	// commit ends it. An error for which rolledBack is true proves that
	// nothing of it remains.
	commit(ctx context.Context, conn *sql.Conn) (rolledBack bool, err error)
	// rollback reports whether it is proven that nothing remains.
	rollback(ctx context.Context, conn *sql.Conn) bool
	// ensureRecord makes the idempotency table unless it is there. Nothing else was done in the
	// transaction yet.
	ensureRecord(ctx context.Context, conn *sql.Conn, table string) error
	// classify says what an error of a statement, rolled back since, means.
	classify(err error) verdict
}

// onConflict is unlessExists of SQLite and PostgreSQL.
const onConflict = " ON CONFLICT (tenant, idempotency_key) DO NOTHING"

// quoteStandard quotes a name as the SQL standard does.
func quoteStandard(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteTable quotes name or schema.name.
func quoteTable(d dialect, name string) string {
	schema, table, two := strings.Cut(name, ".")
	if !two {
		return d.quote(name)
	}
	return d.quote(schema) + "." + d.quote(table)
}

// rollbackTimeout bounds the wait for a ROLLBACK's confirmation after the
// caller's own time is over.
const rollbackTimeout = 2 * time.Second

// rollback asks a server for its confirmation. Without one, the connection is closed.
func rollback(ctx context.Context, conn *sql.Conn) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
		return false
	}
	return true
}

// discard closes a connection instead of giving it back to the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// maxSays bounds what is kept of a database's message, in characters.
const maxSays = 1000

// shortened cuts a database's message to what is kept.
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
	// detail is what the database says, fit to be shown to an operator, and says
	// its own words alone.
	detail, says string
	// unique marks a violated key, missing the lack of a relation that was
	// there before.
	unique, missing bool
	// answered is whether the server itself reported the error.
	answered bool
}
