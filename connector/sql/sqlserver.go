package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// sqlserverDialect is for Microsoft SQL Server, 2016 or later, and Azure SQL.
type sqlserverDialect struct{}

// sqlserverSession makes a session independent of the defaults of the server and the database. With
// ANSI_WARNINGS and ARITHABORT, a value that does not fit its column is an error. Without XACT_ABORT,
// most errors leave the transaction open, as unlessExists needs. A statement waits for a lock for 10
// seconds at most.
const sqlserverSession = "SET XACT_ABORT OFF; SET IMPLICIT_TRANSACTIONS OFF; SET ANSI_NULLS ON; " +
	"SET ANSI_PADDING ON; SET ANSI_WARNINGS ON; SET ARITHABORT ON; SET CONCAT_NULL_YIELDS_NULL ON; " +
	"SET QUOTED_IDENTIFIER ON; SET NUMERIC_ROUNDABORT OFF; SET LANGUAGE us_english; SET DATEFORMAT ymd; " +
	"SET LOCK_TIMEOUT 10000; SET DEADLOCK_PRIORITY NORMAL; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

func openSQLServer(dsn, password string) (address string, db *sql.DB, err error) {
	cfg, err := parseSQLServer(dsn, password)
	if err != nil {
		return "", nil, err
	}
	inner := mssql.NewConnectorConfig(*cfg)
	inner.SessionInitSQL = sqlserverSession // for each use of a pooled connection
	db = sql.OpenDB(inner)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	db.SetConnMaxIdleTime(time.Minute)
	return fmt.Sprintf("sqlserver:%s@%s:%d/%s", cfg.User, cfg.Host, cfg.Port, cfg.Database), db, nil
}

func (sqlserverDialect) quote(name string) string {
	return "[" + strings.ReplaceAll(name, "]", "]]") + "]"
}

func (sqlserverDialect) param(i int) string { return "@p" + strconv.Itoa(i) }

// sqlserverColumns reads the catalogue. For a user-defined type it returns the base type's name.
const sqlserverColumns = `
SELECT c.name, COALESCE(TYPE_NAME(c.system_type_id), TYPE_NAME(c.user_type_id)), c.max_length, c.precision, c.scale,
       c.is_nullable, c.is_identity, CAST(IIF(c.is_computed = 1 OR c.generated_always_type <> 0, 1, 0) AS bit)
FROM sys.columns c WHERE c.object_id = OBJECT_ID(@p1) ORDER BY c.column_id`

func (d sqlserverDialect) columns(ctx context.Context, q querier, table string) ([]column, error) {
	rows, err := q.QueryContext(ctx, sqlserverColumns, quoteTable(d, table))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var columns []column
	for rows.Next() {
		var c column
		var dataType string
		var length, precision, scale int
		var nullable bool
		err := rows.Scan(&c.name, &dataType, &length, &precision, &scale, &nullable, &c.identity, &c.generated)
		if err != nil {
			return nil, err
		}
		c.kind, c.decl = sqlserverKind(dataType), sqlserverType(dataType, length, precision, scale)
		c.notNull, c.filled = !nullable, c.identity
		c.hexadecimal = c.kind == kindBinary || c.kind == kindRowVersion || dataType == "uniqueidentifier"
		c.generated = c.generated || c.identity || c.kind == kindRowVersion
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

func (d sqlserverDialect) cascades(ctx context.Context, q querier, table string) (found bool, err error) {
	err = queryOne(ctx, q, `
SELECT CAST(IIF(EXISTS (SELECT 1 FROM sys.foreign_keys k WHERE k.referenced_object_id = OBJECT_ID(@p1)
  AND k.delete_referential_action <> 0), 1, 0) AS bit)`, []any{quoteTable(d, table)}, &found)
	return found, err
}

// lock locks the rows, and the key ranges of missing rows, until the end of the transaction. It
// reads the latest committed rows, even if the database has READ_COMMITTED_SNAPSHOT.
func (sqlserverDialect) lock() (hint, end string) { return " WITH (UPDLOCK, HOLDLOCK)", "" }

func (sqlserverDialect) first(n int) (top, end string) { return "TOP (" + strconv.Itoa(n) + ") ", "" }

func (sqlserverDialect) now() string { return "CONVERT(nvarchar(33), SYSUTCDATETIME(), 126) + N'Z'" }

// unlessExists is empty: a duplicate key makes the INSERT fail but leaves the transaction open, so
// the caller can continue.
func (sqlserverDialect) unlessExists() string { return "" }

// recordKey returns bytes, because comparisons of texts ignore trailing spaces.
func (sqlserverDialect) recordKey(s string) any { return []byte(s) }

// execute reads @@ROWCOUNT: the driver would add the rows that triggers change.
func (sqlserverDialect) execute(ctx context.Context, conn *sql.Conn, s *statement) (rows int64, err error) {
	var text strings.Builder
	if s.identity != "" {
		fmt.Fprintf(&text, "SET IDENTITY_INSERT %s ON; ", s.identity)
	}
	text.WriteString(s.text.String() + "; SET @rows = @@ROWCOUNT")
	if s.identity != "" {
		fmt.Fprintf(&text, "; SET IDENTITY_INSERT %s OFF", s.identity)
	}
	args := append(s.args[:len(s.args):len(s.args)], sql.Named("rows", sql.Out{Dest: &rows}))
	_, err = conn.ExecContext(ctx, text.String(), args...)
	return rows, err
}

// insertReturning reads SCOPE_IDENTITY, which the inserts of triggers do not change. OUTPUT would fail
// on a table with triggers.
func (sqlserverDialect) insertReturning(ctx context.Context, conn *sql.Conn, s *statement, _ column) (any, error) {
	var number int64
	_, err := conn.ExecContext(ctx, s.text.String()+"; IF SCOPE_IDENTITY() IS NULL "+
		"THROW 50000, 'a trigger has replaced the INSERT', 1; SET @number = SCOPE_IDENTITY()",
		append(s.args[:len(s.args):len(s.args)], sql.Named("number", sql.Out{Dest: &number}))...)
	return number, err
}

// begin returns driver.ErrBadConn for a broken connection, so that the caller tries another.
func (sqlserverDialect) begin(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "BEGIN TRANSACTION")
	if err != nil && ctx.Err() == nil && sqlserverError(err) == nil {
		return errors.Join(driver.ErrBadConn, err)
	}
	return err
}

// commit rolls back if sqlserverUncommitted lists the error's number. After any other error it is unknown
// whether the change was committed. COMMIT ends only the innermost transaction, so commit fails if a trigger
// has left another transaction open.
func (d sqlserverDialect) commit(ctx context.Context, conn *sql.Conn) (rolledBack bool, err error) {
	_, err = conn.ExecContext(ctx, "IF @@TRANCOUNT <> 1 THROW 50000, 'a trigger has left a transaction open', 1; "+
		"COMMIT TRANSACTION")
	if err == nil {
		return false, nil
	}
	if e := sqlserverError(err); e != nil && sqlserverUncommitted[e.Number] {
		return d.rollback(ctx, conn), err
	}
	discard(conn)
	return false, err
}

// sqlserverUncommitted are the errors after which COMMIT has committed nothing: the THROW of commit, a
// transaction that can only be rolled back, and failed validations of memory-optimized tables.
var sqlserverUncommitted = map[int32]bool{50000: true, 3930: true, 41301: true, 41305: true, 41325: true}

// rollback rolls back the transaction. It succeeds also if an error has ended the transaction already.
func (sqlserverDialect) rollback(ctx context.Context, conn *sql.Conn) bool {
	return rollbackBy(ctx, conn, "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
}

// ensureIdempotencyTable creates the idempotency table unless it exists. An existing table must have the primary
// key that prevents duplicate records.
func (d sqlserverDialect) ensureIdempotencyTable(ctx context.Context, conn *sql.Conn, table string) error {
	for range 2 {
		columns, err := d.columns(ctx, conn, table)
		if err != nil {
			return err
		}
		if len(columns) > 0 {
			return d.checkRecord(ctx, conn, table, columns)
		}
		_, err = conn.ExecContext(ctx, `CREATE TABLE `+quoteTable(d, table)+` (
  tenant          varbinary(255) NOT NULL,
  idempotency_key varbinary(255) NOT NULL,
  digest          nvarchar(255) NOT NULL,
  operation       nvarchar(255) NOT NULL,
  entity          nvarchar(max) NOT NULL,
  applied_at      nvarchar(40) NOT NULL,
  result          nvarchar(max) NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
)`)
		if e := sqlserverError(err); err != nil && (e == nil || e.Number != 2714) { // 2714: another caller created it
			return err
		}
	}
	return errors.New("sqlconn: the idempotency table disappeared")
}

// sqlserverPrimaryKey reads the columns of a table's primary key.
const sqlserverPrimaryKey = `
SELECT c.name FROM sys.indexes i
JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.object_id = OBJECT_ID(@p1) AND i.is_primary_key = 1 AND i.ignore_dup_key = 0 ORDER BY k.key_ordinal`

func (d sqlserverDialect) checkRecord(ctx context.Context, conn *sql.Conn, table string, columns []column) error {
	if err := checkKeyColumns(table, columns); err != nil {
		return err
	}
	rows, err := conn.QueryContext(ctx, sqlserverPrimaryKey, quoteTable(d, table))
	if err != nil {
		return err
	}
	defer rows.Close()
	var key []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		key = append(key, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if strings.Join(key, ",") != "tenant,idempotency_key" {
		return &refusal{codeRecordTable, "the primary key of " + table + " must be (tenant, idempotency_key)"}
	}
	return nil
}

// sqlserverError returns the first error of a batch, which is the cause of the others; nil if the
// server did not answer, or ended the connection.
func sqlserverError(err error) *mssql.Error {
	var e mssql.Error
	var broken mssql.ServerError
	if !errors.As(err, &e) || errors.As(err, &broken) {
		return nil
	}
	if len(e.All) > 0 {
		e = e.All[0]
	}
	return &e
}

func (sqlserverDialect) classify(err error) verdict {
	e := sqlserverError(err)
	if e == nil || e.Number == 0 { // number 0 marks an error of the driver itself
		return verdict{kind: connector.Ambiguous, code: "connection_lost", detail: "the connection failed"}
	}
	// The message of a duplicate ends with the values of the key, and those of some columns must not
	// be shown.
	message, _, _ := strings.Cut(e.Message, " The duplicate key value is ")
	v := verdict{kind: connector.Terminal, code: "sql_error", answered: true, says: shortened(message)}
	v.detail = fmt.Sprintf("%s (error %d)", v.says, e.Number)
	if class, ok := sqlserverErrors[e.Number]; ok {
		v.kind, v.code = class.kind, class.code
	}
	v.missing = v.code == "schema_changed"
	v.unique = e.Number == 2601 || e.Number == 2627
	return v
}
