package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// mysqlDialect talks to a MariaDB server, 10.6 or later, or to MySQL, 8.0 or later.
type mysqlDialect struct{ plain }

// mysqlSession makes a session independent of the server's defaults: values that do not fit are
// refused, times are UTC, a lock is not waited for longer than 10 seconds, and a caller that is
// stopped does not hold its row locks for longer than 2 minutes.
var mysqlSession = []string{
	"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
	"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
	"SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE," +
		"NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', lc_messages = 'en_US', autocommit = 1, " +
		"completion_type = NO_CHAIN, foreign_key_checks = 1, unique_checks = 1, sql_auto_is_null = 0, " +
		"sql_safe_updates = 0, lock_wait_timeout = 10, innodb_lock_wait_timeout = 10, wait_timeout = 120",
}

func openMySQL(dsn, password string) (address string, db *sql.DB, err error) {
	cfg, err := parseMySQL(dsn, password)
	if err != nil {
		return "", nil, err
	}
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return "", nil, fmt.Errorf("mysql: %w", err)
	}
	db = sql.OpenDB(mysqlConnector{inner})
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	db.SetConnMaxIdleTime(time.Minute)
	return fmt.Sprintf("mysql:%s@%s/%s", cfg.User, cfg.Addr, cfg.DBName), db, nil
}

// mysqlConnector prepares the session of each connection.
type mysqlConnector struct{ driver.Connector }

func (c mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, statement := range mysqlSession {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

func (mysqlDialect) quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// columns refuses a table whose storage engine is not InnoDB: a rollback would undo the idempotency
// record, but not the change. It also refuses a view, because the catalogue does not show which tables
// the view reads.
func (mysqlDialect) columns(ctx context.Context, q querier, table string) ([]column, error) {
	where, args := mysqlTable(table)
	rows, err := q.QueryContext(ctx, `
SELECT t.table_type, COALESCE(t.engine, ''), c.column_name, c.data_type, c.column_type, c.is_nullable = 'NO',
       COALESCE(c.generation_expression, '') <> '', c.extra LIKE '%auto_increment%'
FROM information_schema.tables t
JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
WHERE `+where+` ORDER BY c.ordinal_position`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var columns []column
	long := false
	for rows.Next() {
		var c column
		var tableType, engine, dataType string
		err := rows.Scan(&tableType, &engine, &c.name, &dataType, &c.decl, &c.notNull, &c.generated, &c.filled)
		if err != nil {
			return nil, err
		}
		if tableType == "VIEW" {
			return nil, &schemaError{table + " is a view; name its table, so that its storage engine is known"}
		}
		if engine != "InnoDB" {
			return nil, &schemaError{fmt.Sprintf("table %s has the storage engine %s; only InnoDB keeps a change and "+
				"its record in one transaction", table, engine)}
		}
		c.kind = mysqlKind(dataType)
		c.hexadecimal = c.kind == kindBinary
		long = long || dataType == "longtext"
		columns = append(columns, c)
	}
	if err := rows.Err(); err != nil || !long {
		return columns, err
	}
	return columns, markMariaJSON(ctx, q, table, columns)
}

func (mysqlDialect) cascades(ctx context.Context, q querier, table string) (found bool, err error) {
	schema, name, two := strings.Cut(table, ".")
	if !two {
		schema, name = "", table
	}
	err = queryOne(ctx, q, `
SELECT EXISTS (SELECT 1 FROM information_schema.referential_constraints t
  WHERE t.unique_constraint_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.referenced_table_name = ?
  AND t.delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))`, []any{schema, name}, &found)
	return found, err
}

// mysqlTable is the condition that finds a table in the catalogue.
func mysqlTable(table string) (where string, args []any) {
	schema, name, two := strings.Cut(table, ".")
	if !two {
		return "t.table_schema = DATABASE() AND t.table_name = ?", []any{table}
	}
	return "t.table_schema = ? AND t.table_name = ?", []any{schema, name}
}

// markMariaJSON finds MariaDB's JSON columns: they are LONGTEXT with a CHECK of their own.
func markMariaJSON(ctx context.Context, q querier, table string, columns []column) error {
	var maria bool
	if err := queryOne(ctx, q, "SELECT VERSION() LIKE '%MariaDB%'", nil, &maria); err != nil || !maria {
		return err
	}
	where, args := mysqlTable(table)
	where = strings.ReplaceAll(where, "t.table_schema", "t.constraint_schema")
	for i := range columns {
		if columns[i].decl != "longtext" {
			continue
		}
		var n int
		check := "json_valid(" + mysqlDialect{}.quote(columns[i].name) + ")"
		err := queryOne(ctx, q, "SELECT COUNT(*) FROM information_schema.check_constraints t WHERE "+where+
			" AND t.check_clause = ?", append(args[:len(args):len(args)], check), &n)
		if err != nil {
			return err
		}
		if n > 0 {
			columns[i].kind, columns[i].decl = kindJSON, "json"
		}
	}
	return nil
}

// mysqlKind returns the kind of a data type. A type with its own text form, such as a date, ENUM or UUID,
// is of kind text, so that a value is read in the form in which it was written.
func mysqlKind(dataType string) kind {
	switch dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit":
		return kindInteger
	case "decimal", "float", "double":
		return kindNumber
	case "json":
		return kindJSON
	case "datetime", "timestamp":
		return kindTime
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "date", "time", "uuid",
		"inet4", "inet6":
		return kindText
	}
	return kindBinary // also types without a text form, such as geometries
}

func (mysqlDialect) param(int) string { return "?" }

// read selects a column unchanged, because the binary protocol does not round. It adds 0 to a BIT column,
// because the protocol would return bytes.
func (d mysqlDialect) read(c column) string {
	if strings.HasPrefix(c.decl, "bit(") {
		return d.quote(c.name) + " + 0"
	}
	return d.quote(c.name)
}

func (mysqlDialect) decode(c column, raw any) (cell, error) {
	switch v := raw.(type) {
	case nil:
		return cell{"null", true}, nil
	case int64:
		return cell{gatehouse.JSON(strconv.FormatInt(v, 10)), true}, nil
	case uint64:
		return cell{gatehouse.JSON(strconv.FormatUint(v, 10)), true}, nil
	case float32: // the shortest text that reads as the same number
		return cell{gatehouse.JSON(strconv.FormatFloat(float64(v), 'g', -1, 32)), true}, nil
	case float64:
		return cell{gatehouse.JSON(strconv.FormatFloat(v, 'g', -1, 64)), true}, nil
	case string:
		return decodeMySQLText(c, v), nil
	case []byte:
		return decodeMySQLText(c, string(v)), nil
	}
	return cell{}, fmt.Errorf("sqlconn: MySQL gave a %T", raw)
}

func decodeMySQLText(c column, s string) cell {
	switch c.kind {
	case kindBinary:
		return cell{gatehouse.StringJSON("0x" + hex.EncodeToString([]byte(s))), true}
	case kindInteger, kindNumber, kindJSON:
		if j, err := gatehouse.Canonicalize([]byte(s)); err == nil {
			return cell{j, true}
		}
		return cell{gatehouse.StringJSON(s), c.kind != kindJSON}
	case kindTime:
		s = strings.Replace(s, " ", "T", 1)
		if strings.HasPrefix(c.decl, "timestamp") {
			s += "Z" // a point in time, which the session's zone shows in UTC
		}
	}
	return cell{gatehouse.StringJSON(s), utf8.ValidString(s)}
}

// bind passes integers as integers, because MySQL may compare an integer with a text as floats
// (MySQL's manual, 12.3). It passes times in UTC without a zone, and binary values as bytes. Other
// values are texts, which the server converts to the column's type.
func (mysqlDialect) bind(c column, v gatehouse.JSON) any {
	if isNull(v) {
		return nil
	}
	s, isText := v.Text()
	if !isText || c.kind == kindJSON {
		s = string(v)
	}
	switch c.kind {
	case kindInteger:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return n
		}
		switch v {
		case "true":
			return int64(1)
		case "false":
			return int64(0)
		}
	case kindTime:
		if t, ok := parseTime(s); ok {
			return t.UTC().Format("2006-01-02 15:04:05.999999999")
		}
	case kindBinary:
		if b, ok := binary(s); ok {
			return b
		}
	}
	return s
}

func (mysqlDialect) lock() (hint, end string) { return "", " FOR UPDATE" }

func (mysqlDialect) now() string { return "DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ')" }

// unlessExists is empty: INSERT IGNORE would also take values that do not fit. The error of a
// duplicate ends the statement, not the transaction.
func (mysqlDialect) unlessExists() string { return "" }

// insertReturning knows only numbers of AUTO_INCREMENT: MySQL has no RETURNING.
func (mysqlDialect) insertReturning(ctx context.Context, conn *sql.Conn, s *statement, _ column) (any, error) {
	res, err := conn.ExecContext(ctx, s.text.String(), s.args...)
	if err != nil {
		return nil, err
	}
	id, err := res.LastInsertId()
	return uint64(id), err // the protocol's number is unsigned
}

func (mysqlDialect) begin(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "START TRANSACTION READ WRITE")
	return err
}

// commit treats only one error as a rollback: a deadlock, by which a cluster (Galera) reports that it
// could not certify the transaction. After any other error, the commit may have taken effect.
func (d mysqlDialect) commit(ctx context.Context, conn *sql.Conn) (rolledBack bool, err error) {
	_, err = conn.ExecContext(ctx, "COMMIT")
	if err == nil {
		return false, nil
	}
	if mysqlCode(err) == 1213 {
		return d.rollback(ctx, conn), err
	}
	discard(conn)
	return false, err
}

func (mysqlDialect) rollback(ctx context.Context, conn *sql.Conn) bool { return rollback(ctx, conn) }

// ensureIdempotencyTable creates the idempotency table unless it exists, and then begins a new transaction, because
// CREATE TABLE commits the present one. An existing table must have the primary key (tenant,
// idempotency_key), and these columns must be binary, because a collation treats some different texts as
// equal.
func (d mysqlDialect) ensureIdempotencyTable(ctx context.Context, conn *sql.Conn, table string) error {
	for range 2 {
		columns, err := d.columns(ctx, conn, table)
		if isSchemaError(err) {
			return &refusal{codeRecordTable, err.Error()}
		}
		if err != nil {
			return err
		}
		if len(columns) > 0 {
			if err := d.checkRecord(ctx, conn, table, columns); err != nil {
				return err
			}
			return d.begin(ctx, conn) // with a new snapshot: the present one can be older than a record
		}
		if _, err := conn.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+quoteTable(d, table)+` (
  tenant          VARBINARY(255) NOT NULL,
  idempotency_key VARBINARY(255) NOT NULL,
  digest          VARCHAR(255) NOT NULL,
  operation       VARCHAR(255) NOT NULL,
  entity          TEXT NOT NULL,
  applied_at      VARCHAR(40) NOT NULL,
  result          LONGTEXT NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`); err != nil {
			return err
		}
	}
	return errors.New("sqlconn: the idempotency table disappeared")
}

func (d mysqlDialect) checkRecord(ctx context.Context, conn *sql.Conn, table string, columns []column) error {
	if err := checkKeyColumns(table, columns); err != nil {
		return err
	}
	where, args := mysqlTable(table)
	var key string
	if err := queryOne(ctx, conn, `
SELECT COALESCE(GROUP_CONCAT(t.column_name, COALESCE(t.sub_part, '') ORDER BY t.seq_in_index), '')
FROM information_schema.statistics t WHERE t.index_name = 'PRIMARY' AND `+where, args, &key); err != nil {
		return err
	}
	if key != "tenant,idempotency_key" {
		return &refusal{codeRecordTable, "the primary key of " + table + " must be (tenant, idempotency_key)"}
	}
	return nil
}

func mysqlCode(err error) uint16 {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return 0
	}
	return e.Number
}

func (mysqlDialect) classify(err error) verdict {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return verdict{kind: connector.Ambiguous, code: "connection_lost", detail: "the connection failed"}
	}
	v := verdict{kind: connector.Terminal, code: "sql_error", answered: true, says: shortened(mysqlMessage(e))}
	v.detail = fmt.Sprintf("%s (error %d)", v.says, e.Number)
	if class, ok := mysqlErrors[e.Number]; ok {
		v.kind, v.code = class.kind, class.code
	}
	v.missing = v.code == "schema_changed"
	v.unique = e.Number == 1062 || e.Number == 1586
	return v
}

// mysqlMessage leaves the values of a violated key out: the key can have columns that must not be shown.
func mysqlMessage(e *mysql.MySQLError) string {
	if e.Number != 1062 && e.Number != 1586 {
		return e.Message
	}
	if i := strings.LastIndex(e.Message, " for key "); i >= 0 {
		return "Duplicate entry" + e.Message[i:]
	}
	return "Duplicate entry"
}
