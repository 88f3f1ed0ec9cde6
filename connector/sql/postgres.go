package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// postgresDialect supports PostgreSQL 14 or later.
type postgresDialect struct{ plain }

func openPostgres(dsn, password string) (address string, db *sql.DB, err error) {
	cfg, err := postgresConfig(dsn)
	if err != nil {
		return "", nil, err
	}
	address = postgresAddress(cfg)
	if password != "" {
		cfg.Password = password
	}
	// These are the text formats that decode and parseTime know, whatever the server's defaults
	// are. The time limit ends the session of a process that hangs in a transaction for two minutes: its
	// row locks are then released.
	for name, value := range map[string]string{
		"application_name": "gatehouse", "timezone": "UTC", "datestyle": "ISO", "bytea_output": "hex",
		"extra_float_digits": "1", "idle_in_transaction_session_timeout": "120000",
	} {
		cfg.RuntimeParams[name] = value
	}
	// Neither plans nor descriptions are cached between statements, at the price of a round trip
	// each, because the schema may change at any time.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	db = stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return address, db, nil
}

func (d postgresDialect) columns(ctx context.Context, q querier, table string) ([]column, error) {
	rows, err := q.QueryContext(ctx, `
SELECT a.attname, b.typname, b.typcategory::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       a.attgenerated <> '' OR a.attidentity = 'a', a.atthasdef OR a.attidentity <> '',
       format_type(b.oid, -1), CASE WHEN e.typtype = 'e' THEN 'enum' ELSE coalesce(e.typname, b.typname) END
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE t.typbasetype WHEN 0 THEN t.oid ELSE t.typbasetype END
LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`, quoteTable(d, table))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var columns []column
	for rows.Next() {
		var c column
		var typname, category, unlimited, element string
		err := rows.Scan(&c.name, &typname, &category, &c.decl, &c.notNull, &c.generated, &c.filled, &unlimited, &element)
		if err != nil {
			return nil, err
		}
		c.kind, c.hexadecimal = kindOf(typname, category), typname == "uuid" || typname == "bytea"
		if c.kind == kindOther {
			c.spellExpr = postgresSpelled(unlimited, element)
		}
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

// cascades also looks at the tables of a view, and at partitions.
func (d postgresDialect) cascades(ctx context.Context, q querier, table string) (found bool, err error) {
	err = queryOne(ctx, q, `
WITH RECURSIVE deleted (id) AS (
  SELECT to_regclass($1)::oid
  UNION
  SELECT part.id FROM deleted, LATERAL (
    SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = deleted.id
    UNION ALL
    SELECT u.refobjid FROM pg_rewrite w
    JOIN pg_depend u ON u.classid = 'pg_rewrite'::regclass AND u.objid = w.oid AND u.refclassid = 'pg_class'::regclass
    WHERE w.ev_class = deleted.id
  ) part (id)
)
SELECT EXISTS (SELECT FROM pg_constraint c JOIN deleted ON deleted.id = c.confrelid
  WHERE c.contype = 'f' AND c.confdeltype IN ('c', 'n', 'd'))`, []any{quoteTable(d, table)}, &found)
	return found, err
}

func kindOf(typname, category string) kind {
	switch typname {
	case "int2", "int4", "int8":
		return kindInteger
	case "numeric", "float4", "float8":
		return kindNumber
	case "bool":
		return kindBool
	case "json", "jsonb":
		return kindJSON
	case "timestamp", "timestamptz":
		return kindTime
	}
	if category == "S" {
		return kindText
	}
	return kindOther
}

// postgresSpelled returns the expression for column.spellExpr. It casts to the type without modifiers, such as
// numeric[] for a column of type numeric(10,2)[]: a cast to the column's own type would round the approved value as
// the column does, and so hide the rounding.
func postgresSpelled(unlimited, element string) string {
	switch element {
	case "uuid", "bytea", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "enum", "bool", "int2", "int4", "int8",
		"numeric", "text", "varchar", "bpchar", "int4range", "int8range", "numrange", "int4multirange", "int8multirange",
		"nummultirange":
		return "$1::" + unlimited + "::text"
	case "interval": // reading a fraction can round it
		return "CASE WHEN strpos($1::text, '.') = 0 THEN $1::text::" + unlimited + "::text END"
	case "money":
		if unlimited == "money" {
			return `CASE WHEN $1::text ~ '^-?[0-9]+([.][0-9]+)?$' THEN
  CASE WHEN $1::text::numeric = $1::text::numeric::money::numeric THEN $1::text::numeric::money::text END END`
		}
	}
	return ""
}

func (postgresDialect) quote(name string) string { return quoteStandard(name) }

func (postgresDialect) param(i int) string { return "$" + strconv.Itoa(i) }

func (d postgresDialect) read(c column) string {
	if c.kind == kindTime {
		return "to_json(" + d.quote(c.name) + ") #>> '{}'" // RFC 3339
	}
	return d.quote(c.name) + "::text"
}

func (postgresDialect) decode(c column, raw any) (cell, error) {
	if raw == nil {
		return cell{"null", true}, nil
	}
	s, ok := raw.(string)
	if !ok {
		return cell{}, fmt.Errorf("sqlconn: PostgreSQL gave a %T", raw)
	}
	switch c.kind {
	case kindInteger, kindNumber, kindBool, kindJSON:
		if j, err := gatehouse.Canonicalize([]byte(s)); err == nil {
			return cell{j, true}, nil
		}
		return cell{gatehouse.StringJSON(s), c.kind != kindJSON}, nil // NaN, or nested too deeply
	}
	return cell{gatehouse.StringJSON(s), true}, nil
}

// bind passes every value as text. The server converts it to the column's type, as it does with a
// quoted literal.
func (postgresDialect) bind(c column, v gatehouse.JSON) any {
	if isNull(v) {
		return nil
	}
	if s, ok := v.Text(); ok && c.kind != kindJSON {
		return s
	}
	return string(v)
}

func (postgresDialect) lock() (hint, end string) { return "", " FOR UPDATE" }

func (postgresDialect) now() string {
	return `to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}

func (postgresDialect) unlessExists() string { return onConflict }

func (postgresDialect) begin(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	return err
}

// commit checks the command tag of the answer: the server answers the COMMIT of a failed
// transaction with ROLLBACK.
func (postgresDialect) commit(ctx context.Context, conn *sql.Conn) (rolledBack bool, err error) {
	err = conn.Raw(func(c any) error {
		tag, err := c.(*stdlib.Conn).Conn().Exec(ctx, "COMMIT")
		if err != nil {
			return err
		}
		if tag.String() != "COMMIT" {
			rolledBack = true
			return errors.New("the server answered COMMIT with " + tag.String())
		}
		return nil
	})
	var e *pgconn.PgError
	if errors.As(err, &e) {
		// An error with severity FATAL, or of class 57 or 08, can arrive while the commit is in
		// progress; any other error ends the transaction itself.
		rolledBack = e.Severity == "ERROR" && !strings.HasPrefix(e.Code, "57") && !strings.HasPrefix(e.Code, "08")
	}
	if err != nil && !rolledBack {
		discard(conn)
	}
	return rolledBack, err
}

func (postgresDialect) rollback(ctx context.Context, conn *sql.Conn) bool {
	return rollback(ctx, conn)
}

// ensureIdempotencyTable takes a lock because concurrent CREATE TABLE IF NOT EXISTS statements can fail.
func (d postgresDialect) ensureIdempotencyTable(ctx context.Context, conn *sql.Conn, table string) error {
	var there bool
	if err := conn.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`,
		quoteTable(d, table)).Scan(&there); err != nil || there {
		return err
	}
	for _, statement := range []string{
		`SELECT pg_advisory_xact_lock(hashtext('gatehouse idempotency table'))`,
		`CREATE TABLE IF NOT EXISTS ` + quoteTable(d, table) + ` (
  tenant          text NOT NULL,
  idempotency_key text NOT NULL,
  digest          text NOT NULL,
  operation       text NOT NULL,
  entity          text NOT NULL,
  applied_at      text NOT NULL,
  result          text NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
)`,
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (postgresDialect) classify(err error) verdict {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return verdict{kind: connector.Ambiguous, code: "connection_lost", detail: "the connection failed"}
	}
	v := verdict{kind: connector.Terminal, code: "sql_error", answered: true}
	// The error's detail and hint can quote other rows; the message and the names are enough.
	v.says = shortened(e.Message)
	v.detail = fmt.Sprintf("%s (SQLSTATE %s)", v.says, e.Code)
	if e.ConstraintName != "" {
		v.detail += " constraint " + e.ConstraintName
	}
	switch {
	case e.Code == "40001" || e.Code == "40P01":
		v.kind, v.code = connector.Transient, "serialization"
	case e.Code == "55P03" || e.Code == "55006":
		v.kind, v.code = connector.Transient, "busy"
	case e.Code == "57014":
		v.kind, v.code = connector.Transient, "timeout"
	case strings.HasPrefix(e.Code, "57") || strings.HasPrefix(e.Code, "53") || strings.HasPrefix(e.Code, "08"),
		strings.HasPrefix(e.Code, "58"), e.Code == "25P03":
		v.kind, v.code = connector.Transient, "unavailable"
	case e.Code == "25006" || e.Code == "42501":
		v.code = "forbidden"
	case e.Code == "42P01" || e.Code == "42703":
		v.missing = true
		v.code = "schema_changed"
	case strings.HasPrefix(e.Code, "23"):
		v.code = "constraint_violation"
		v.unique = e.Code == "23505"
	case strings.HasPrefix(e.Code, "22") || e.Code == "42804" || e.Code == "42846":
		v.code = "invalid_value"
	}
	return v
}
