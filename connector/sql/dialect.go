package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// dialect holds the differences between the engines.
type dialect interface {
	// columns reads the catalogue; empty when the table does not exist.
	columns(ctx context.Context, q querier, table string) ([]column, error)
	// cascades reports whether a foreign key refers to the table with ON DELETE CASCADE, SET NULL or SET DEFAULT.
	cascades(ctx context.Context, q querier, table string) (bool, error)
	// quote quotes a table's or column's name, which identifierForm has accepted or the
	// database's own catalogue has.
	quote(name string) string
	// param is the placeholder of the i-th parameter, from 1.
	param(i int) string
	// read is the expression that reads a column in a form that decode can convert exactly.
	read(c column) string
	// decode converts the result of read to JSON.
	decode(c column, raw any) (cell, error)
	// bind converts a proposal's value to a parameter, never through a float.
	bind(c column, v gatehouse.JSON) any
	// lock returns the parts of a SELECT that lock its rows until the end of the transaction: hint
	// follows the table's name, end is the end of the statement.
	lock() (hint, end string)
	// first returns the parts of a SELECT that limit it to n rows: top follows the word SELECT, end
	// comes before the end of lock.
	first(n int) (top, end string)
	// now is the SQL expression for the current time.
	now() string

	// unlessExists is the end of an INSERT that inserts no record if the record exists. If unlessExists
	// is empty, the INSERT of an existing record fails, and leaves the transaction open.
	unlessExists() string
	// recordKey is the parameter of a record's tenant or idempotency key.
	recordKey(s string) any
	// execute carries out an INSERT, UPDATE or DELETE and counts its rows.
	execute(ctx context.Context, conn *sql.Conn, s *statement) (rows int64, err error)
	// insertReturning carries out an INSERT of one row and reads the key that the database made, in
	// the form of read. If no row was inserted, an engine with RETURNING returns sql.ErrNoRows.
	insertReturning(ctx context.Context, conn *sql.Conn, s *statement, key column) (raw any, err error)

	// begin starts a transaction that may write.
	begin(ctx context.Context, conn *sql.Conn) error
	// commit commits. An error with rolledBack set proves that the transaction has no effect.
	commit(ctx context.Context, conn *sql.Conn) (rolledBack bool, err error)
	// rollback reports whether it is proven that the transaction has no effect.
	rollback(ctx context.Context, conn *sql.Conn) bool
	// ensureIdempotencyTable makes the idempotency table unless it exists. It comes first in the transaction.
	ensureIdempotencyTable(ctx context.Context, conn *sql.Conn, table string) error

	// rollsBackTriggers reports whether a rollback undoes all that triggers write.
	rollsBackTriggers() bool
	// previewSession are the statements that prepare the session of a preview; nil if the engine has no
	// previews. Preview closes the session at its end.
	previewSession() []string
	// runDeferred is the statement that runs the triggers, and checks the constraints, that are deferred
	// to COMMIT; "" for none.
	runDeferred() string
	// spendsNumber reports whether an insert takes a number from a sequence. A rollback does not return
	// the number. given reports whether the insert sets a column.
	spendsNumber(ctx context.Context, q querier, table string, given func(column string) bool) (bool, error)

	// classify interprets a statement's error. The kind assumes that the transaction is rolled back.
	classify(err error) verdict
}

// plain implements what most engines have in common.
type plain struct{}

func (plain) recordKey(s string) any { return s }

func (plain) first(n int) (top, end string) { return "", " LIMIT " + strconv.Itoa(n) }

func (plain) execute(ctx context.Context, conn *sql.Conn, s *statement) (int64, error) {
	res, err := conn.ExecContext(ctx, s.text.String(), s.args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (plain) insertReturning(ctx context.Context, conn *sql.Conn, s *statement, key column) (raw any, err error) {
	s.add(" RETURNING ", s.dialect.read(key))
	err = queryOne(ctx, conn, s.text.String(), s.args, &raw)
	return raw, err
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

// rollback waits for the server's confirmation. Without one, it closes the connection and returns false.
func rollback(ctx context.Context, conn *sql.Conn) bool { return rollbackBy(ctx, conn, "ROLLBACK") }

func rollbackBy(ctx context.Context, conn *sql.Conn, statement string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, statement); err != nil {
		discard(conn)
		return false
	}
	return true
}

// discard closes a connection instead of giving it back to the pool.
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
	// says is the database's message; detail is for operators: the message and the engine's error code, if
	// any.
	detail, says string
	// unique marks a violated unique key; missing marks a table or a column that may no longer exist.
	unique, missing bool
	// answered reports whether the server itself returned the error.
	answered bool
}
