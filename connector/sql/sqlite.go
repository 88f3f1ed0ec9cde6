package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// sqliteDialect supports an SQLite file that other processes may use too.
type sqliteDialect struct{ plain }

// openSQLite prepares one connection for writing and a few for reading. The file is opened on first
// use and must exist then, because a mistyped path must not create an empty database. The journal
// mode is left unchanged.
func openSQLite(path string) (address string, writer, reader *sql.DB, err error) {
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.ContainsAny(path, "?\x00") || strings.HasPrefix(path, ":memory:") {
		return "", nil, nil, errors.New("sqlite: needs the path of a file, without options")
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", nil, nil, err
	}
	query := url.Values{"_pragma": {"busy_timeout(5000)", "foreign_keys(1)"}, "mode": {"rw"}, "_dqs": {"0"}}
	write := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode() + "&_pragma=synchronous(2)"}
	if writer, err = sql.Open("sqlite", write.String()); err != nil {
		return "", nil, nil, err
	}
	read := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode() + "&_pragma=query_only(1)"}
	if reader, err = sql.Open("sqlite", read.String()); err != nil {
		return "", nil, nil, errors.Join(err, writer.Close())
	}
	writer.SetMaxOpenConns(1)
	reader.SetMaxOpenConns(4)
	return "sqlite:" + path, writer, reader, nil
}

// sqliteTable splits name or schema.name.
func sqliteTable(table string) (schema, name string) {
	schema, name, two := strings.Cut(table, ".")
	if !two {
		return "main", table
	}
	return schema, name
}

func (sqliteDialect) columns(ctx context.Context, q querier, table string) ([]column, error) {
	schema, name := sqliteTable(table)
	rows, err := q.QueryContext(ctx, `
SELECT name, type, "notnull", hidden, dflt_value IS NOT NULL OR pk = 1 AND upper(type) = 'INTEGER'
FROM pragma_table_xinfo(?1, ?2) ORDER BY cid`, name, schema)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var columns []column
	for rows.Next() {
		var c column
		var hidden int
		if err := rows.Scan(&c.name, &c.decl, &c.notNull, &hidden, &c.filled); err != nil {
			return nil, err
		}
		if hidden == 1 { // a hidden column of a virtual table
			continue
		}
		c.generated = hidden == 2 || hidden == 3
		c.kind = affinity(c.decl)
		if c.decl == "" {
			c.decl = "without type"
		}
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

func (sqliteDialect) cascades(ctx context.Context, q querier, table string) (found bool, err error) {
	schema, name := sqliteTable(table)
	err = queryOne(ctx, q, `
SELECT EXISTS (SELECT 1 FROM pragma_table_list l, pragma_foreign_key_list(l.name, l.schema) f
  WHERE l.schema = ?1 COLLATE NOCASE AND f."table" = ?2 COLLATE NOCASE
  AND f.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))`, []any{schema, name}, &found)
	return found, err
}

// affinity follows section 3.1 of SQLite's datatype3.html, and also recognises columns declared as
// JSON.
func affinity(decl string) kind {
	d := strings.ToUpper(decl)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(d, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("INT"):
		return kindInteger
	case has("JSON"):
		return kindJSON
	case has("CHAR", "CLOB", "TEXT"):
		return kindText
	case d == "" || has("BLOB") || d == "ANY":
		return kindAny
	}
	return kindNumber
}

func (sqliteDialect) quote(name string) string { return quoteStandard(name) }

func (sqliteDialect) param(i int) string { return "?" + strconv.Itoa(i) }

// read adds a unary plus, which hides the column's declared type: by that type, the driver would convert
// texts and numbers to times and booleans. The plus does not change the value.
func (d sqliteDialect) read(c column) string { return "+" + d.quote(c.name) }

func (sqliteDialect) decode(c column, raw any) (cell, error) {
	switch v := raw.(type) {
	case nil:
		return cell{"null", true}, nil
	case int64:
		return cell{gatehouse.JSON(strconv.FormatInt(v, 10)), true}, nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return cell{gatehouse.StringJSON(strconv.FormatFloat(v, 'g', -1, 64)), false}, nil
		}
		// This is the shortest text that parses to the same number: a stored 12.50 is read as 12.5.
		return cell{gatehouse.JSON(strconv.FormatFloat(v, 'g', -1, 64)), c.kind != kindAny}, nil
	case string:
		if c.kind == kindJSON {
			j, err := gatehouse.Canonicalize([]byte(v))
			if err == nil {
				return cell{j, true}, nil
			}
			return cell{gatehouse.StringJSON(v), false}, nil
		}
		return cell{gatehouse.StringJSON(v), utf8.ValidString(v)}, nil
	case []byte:
		return cell{gatehouse.StringJSON(fmt.Sprintf("x'%x'", v)), false}, nil
	}
	return cell{}, fmt.Errorf("sqlconn: SQLite gave a %T", raw)
}

// bind passes integers that fit as integers, and all other numbers as their exact text: the
// column's affinity converts the text to a number, or keeps it.
func (sqliteDialect) bind(c column, v gatehouse.JSON) any {
	switch {
	case isNull(v):
		return nil
	case c.kind == kindJSON || isComposite(v):
		return string(v)
	case isBool(v):
		if c.kind == kindText {
			return string(v)
		}
		if v == "true" {
			return int64(1)
		}
		return int64(0)
	}
	if s, ok := v.Text(); ok {
		return s
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && c.kind != kindText {
		return n
	}
	return string(v)
}

func (sqliteDialect) lock() (hint, end string) { return "", "" } // BEGIN IMMEDIATE has locked the database

func (sqliteDialect) now() string { return "strftime('%Y-%m-%dT%H:%M:%fZ','now')" }

func (sqliteDialect) unlessExists() string { return onConflict }

func (sqliteDialect) begin(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// commit ignores the cancellation of the caller's context: an interrupt in the middle would make a
// local commit ambiguous without need.
func (sqliteDialect) commit(ctx context.Context, conn *sql.Conn) (bool, error) {
	_, err := conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT) {
		// SQLite documents that the transaction is still open after these two errors.
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return rollback == nil, err
	}
	return false, err
}

// rollback needs no confirmation: uncommitted changes disappear with the connection, and a
// connection that cannot roll back is closed.
func (sqliteDialect) rollback(ctx context.Context, conn *sql.Conn) bool {
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		discard(conn)
	}
	return true
}

func (d sqliteDialect) ensureIdempotencyTable(ctx context.Context, conn *sql.Conn, table string) error {
	_, err := conn.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+quoteTable(d, table)+` (
  tenant          TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  digest          TEXT NOT NULL,
  operation       TEXT NOT NULL,
  entity          TEXT NOT NULL,
  applied_at      TEXT NOT NULL,
  result          TEXT NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
) STRICT`)
	return err
}

// sqliteMissing matches the message for an unknown table or column.
var sqliteMissing = regexp.MustCompile(`no such (table|column): |has no column named `)

func (sqliteDialect) classify(err error) verdict {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return verdict{kind: connector.Ambiguous, code: "connection_lost", detail: "the connection failed"}
	}
	v := verdict{kind: connector.Terminal, code: "sql_error", detail: shortened(e.Error()), says: shortened(e.Error()),
		answered: true}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_ERROR:
		v.missing = sqliteMissing.MatchString(e.Error()) // other errors have the same code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		v.kind, v.code = connector.Transient, "busy"
	case sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		v.kind, v.code = connector.Transient, "interrupted"
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		v.kind, v.code = connector.Transient, "storage"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB:
		v.kind, v.code = connector.Transient, "unreachable"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		v.code = "forbidden"
	case sqlite3.SQLITE_CONSTRAINT:
		v.code = "constraint_violation"
		v.unique = e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
	case sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		v.code = "invalid_value"
	}
	return v
}
