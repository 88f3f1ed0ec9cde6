package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// previewTime limits a preview, and so how long its locks delay others.
const previewTime = 2 * time.Second

var _ connector.Previewer = (*Connector)(nil)

// Previews is true by default for the entities of SQLite and PostgreSQL. In MariaDB and MySQL, a trigger
// may write to a table whose storage engine has no rollback, so the operator must enable the previews of
// an entity. SQL Server has no previews, because a trigger may commit.
func (c *Connector) Previews(call connector.Call) bool {
	_, _, ok := splitOperation(call.Operation)
	e, known := c.cfg.Entities[call.Target.EntityType]
	if e.Preview != nil {
		return ok && known && *e.Preview
	}
	return ok && known && c.dialect.rollsBackTriggers()
}

// Preview implements [connector.Previewer]: it does the work of Execute, except for the idempotency
// record, in a transaction that it rolls back.
func (c *Connector) Preview(ctx context.Context, call connector.Call) (gatehouse.Preview, error) {
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	p, failed := c.prepare(ctx, call)
	if failed != nil {
		return connector.PreviewOfError(failed)
	}
	if p.op == opInsert {
		spends, err := c.dialect.spendsNumber(ctx, c.reader, p.table.entity.Table, p.setsColumn)
		switch {
		case err != nil:
			return connector.PreviewOfError(c.unreachable(err))
		case spends:
			return gatehouse.Preview{None: "trying the insert would use up a number of the table's sequence"}, nil
		}
	}
	conn, failed := c.beginPreview(ctx)
	if failed != nil {
		return connector.PreviewOfError(failed)
	}
	defer conn.Close()
	defer discard(conn) // with its limits, and with what a trigger may have left in the session

	out, err := c.try(ctx, conn, p)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		would, err := connector.PreviewOfError(c.abandon(ctx, conn, call, p, err))
		would.Changes, would.Differs = out.Changes, out.Differs
		return would, err
	}
	if !c.dialect.rollback(ctx, conn) {
		return gatehouse.Preview{}, fail(connector.Transient, "connection_lost",
			"the connection failed before the preview was rolled back", nil)
	}
	return out, nil
}

// beginPreview opens a transaction with short limits on a separate connection.
func (c *Connector) beginPreview(ctx context.Context) (*sql.Conn, *connector.Error) {
	for tries := 0; ; tries++ {
		conn, err := c.reader.Conn(ctx) // SQLite's only writer stays free for Execute
		if err != nil {
			return nil, c.unreachable(err)
		}
		for _, statement := range c.dialect.previewSession() {
			if err == nil {
				_, err = conn.ExecContext(ctx, statement)
			}
		}
		if err == nil {
			err = c.dialect.begin(ctx, conn)
		}
		if err == nil {
			return conn, nil
		}
		discard(conn)
		if !errors.Is(err, driver.ErrBadConn) || tries >= 8 {
			return nil, c.unreachable(err)
		}
	}
}

// try makes the change and describes what has changed.
func (c *Connector) try(ctx context.Context, conn *sql.Conn, p *plan) (out gatehouse.Preview, err error) {
	before, err := c.lockRows(ctx, conn, p)
	if err != nil {
		return out, err
	}
	if err := p.guard(before); err != nil {
		return out, err
	}
	after, err := c.carryOut(ctx, conn, p)
	if err != nil {
		return out, err
	}
	out.Rows = len(p.refs)
	for _, ref := range p.refs {
		out.Changes = append(out.Changes, p.previewed(ref, before[ref], after[ref])...)
	}
	for _, ch := range out.Changes {
		out.Differs = out.Differs || ch.How == gatehouse.PreviewDiffers
	}
	if err := p.verify(before, after); err != nil {
		return out, err
	}
	why := p.irreversible(before, after)
	out.Undo = &gatehouse.PreviewUndo{Possible: why == "", Why: why}
	return out, nil
}

// previewed lists the columns of a row that change, without the key, and without a version that the
// change does not name. For a deleted row, the list is empty.
func (p *plan) previewed(ref string, before, after row) []gatehouse.PreviewChange {
	if after == nil {
		return nil
	}
	proposed := make(map[string]gatehouse.JSON)
	for _, f := range p.changeOf(ref) {
		proposed[f.Name] = f.Value
	}
	var out []gatehouse.PreviewChange
	for i, col := range p.table.columns {
		c := gatehouse.PreviewChange{Path: gatehouse.JoinPointer(col.name), After: after[i].json,
			How: gatehouse.PreviewAsProposed}
		if p.bulk {
			c.Ref = ref
		}
		if before != nil {
			c.Before = before[i].json
		}
		want, named := proposed[col.name]
		switch {
		case i == p.table.key || !named && i == p.table.version:
			continue
		case named && !p.asApproved(i, want, after[i].json):
			c.How, c.Proposed = gatehouse.PreviewDiffers, want
		case before == nil && isNull(c.After) || c.Before.Equal(c.After):
			continue
		case !named && before != nil && !col.generated:
			c.How = gatehouse.PreviewAlso
		}
		out = append(out, c)
	}
	return out
}

// irreversible says why the applied change could not be undone; "" when it could.
func (p *plan) irreversible(before, after map[string]row) string {
	switch {
	case p.reversal(before, after) != nil:
		return ""
	case len(p.refs) > maxBulkReversal:
		return "it changes more than 1,000 rows"
	case p.keyLost():
		return "the database makes the keys, and the rows would not get their keys back"
	case p.op == opDelete && p.table.cascades:
		return "rows that refer to a deleted row are deleted or changed with it, and would not be restored"
	case p.op == opDelete && p.table.hidden:
		return "the table has columns that Gatehouse does not see, and cannot restore"
	}
	return "an old value cannot be restored exactly, or is too large"
}

// setsColumn reports whether a proposal gives a column a value in each row.
func (p *plan) setsColumn(column string) bool {
	if column == p.table.entity.Key {
		return !p.makesKey
	}
	given := func(change []gatehouse.Member) bool {
		return slices.ContainsFunc(change, func(f gatehouse.Member) bool { return f.Name == column })
	}
	if p.change == nil {
		return given(p.common)
	}
	for _, ref := range p.refs {
		if !given(p.change[ref]) {
			return false
		}
	}
	return true
}

// spendsAny reports whether an insert omits one of the columns that a query lists.
func spendsAny(ctx context.Context, q querier, given func(string) bool, query string, args ...any) (bool, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	spends := false
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			return false, err
		}
		spends = spends || !given(column)
	}
	return spends, rows.Err()
}

// The parts of a preview that depend on the engine. A rollback does not reset a sequence.

// rollsBackTriggers is true: SQLite's triggers write only to its file.
func (sqliteDialect) rollsBackTriggers() bool { return true }

// previewSession permits writes on a reader's connection.
func (sqliteDialect) previewSession() []string {
	return []string{"PRAGMA query_only = 0", "PRAGMA busy_timeout = 500"}
}

func (sqliteDialect) runDeferred() string { return "" }

func (sqliteDialect) spendsNumber(context.Context, querier, string, func(string) bool) (bool, error) {
	return false, nil // AUTOINCREMENT stores its numbers in a table, which is rolled back
}

func (postgresDialect) rollsBackTriggers() bool { return true }

func (postgresDialect) previewSession() []string {
	return []string{"SET lock_timeout = 500", "SET statement_timeout = 2000"}
}

// runDeferred runs the triggers, and checks the constraints, that are left to COMMIT.
func (postgresDialect) runDeferred() string { return "SET CONSTRAINTS ALL IMMEDIATE" }

func (d postgresDialect) spendsNumber(
	ctx context.Context, q querier, table string, given func(string) bool,
) (bool, error) {
	return spendsAny(ctx, q, given, `
SELECT a.attname
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
  AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%')`, quoteTable(d, table))
}

func (mysqlDialect) rollsBackTriggers() bool { return false }

// previewSession limits the wait for locks and, on MariaDB, the time of each statement.
func (mysqlDialect) previewSession() []string {
	return []string{
		"SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1 /*M!100600 , max_statement_time = 2 */"}
}

func (mysqlDialect) runDeferred() string { return "" } // InnoDB checks at once

// spendsNumber is true for any table with AUTO_INCREMENT: a given value moves its counter too.
func (mysqlDialect) spendsNumber(ctx context.Context, q querier, table string, given func(string) bool) (bool, error) {
	where, args := mysqlTable(table)
	counted, err := spendsAny(ctx, q, func(string) bool { return false },
		"SELECT t.column_name FROM information_schema.columns t WHERE t.extra LIKE '%auto_increment%' AND "+where,
		args...)
	if err != nil || counted {
		return counted, err
	}
	return spendsAny(ctx, q, given,
		"SELECT t.column_name FROM information_schema.columns t WHERE t.column_default LIKE '%nextval(%' AND "+where,
		args...)
}

func (sqlserverDialect) rollsBackTriggers() bool { return false }

func (sqlserverDialect) previewSession() []string { return nil }

func (sqlserverDialect) runDeferred() string { return "" }

func (sqlserverDialect) spendsNumber(context.Context, querier, string, func(string) bool) (bool, error) {
	return false, nil
}
