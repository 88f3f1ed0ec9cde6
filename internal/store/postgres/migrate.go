package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateLock is the advisory lock for migrations: "GATE".
const migrateLock = 0x47415445

// minVersion is the oldest supported server version.
const minVersion = 140000

// migrate brings the database to the newest version in files, forward only, in one transaction
// under one lock. If several processes start together, the first migrates and the others find
// nothing left to do. It refuses, without change, a database that is newer than files or older
// than the first release. Each migration of a database that has data is logged, since it may take
// long.
func migrate(ctx context.Context, config *pgx.ConnConfig, files fs.FS, moving bool, log *slog.Logger) (err error) {
	config = config.Copy()
	// Building an index over existing rows may take long, and so may waiting for another process
	// that builds one.
	config.RuntimeParams["lock_timeout"] = "0"
	// Migrations read whole tables, so they need the plans that the store turns off.
	maps.DeleteFunc(config.RuntimeParams, func(name, _ string) bool { return strings.HasPrefix(name, "enable_") })
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if err := CheckServer(ctx, c); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrateLock)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, setTenant, AllTenants); err != nil {
			return err
		}
		if err := RefuseElsewhere(ctx, tx); err != nil {
			return err
		}
		if !moving {
			if err := refuseMoving(ctx, tx); err != nil {
				return err
			}
		}
		return apply(ctx, tx, files, log)
	})
	return Advise(ctx, c, err)
}

// CheckServer refuses servers on which the store could not keep its promises, and a pooler that lets connections
// share a session. It changes nothing.
func CheckServer(ctx context.Context, c *pgx.Conn) error {
	if err := refuseShared(ctx, c); err != nil {
		return err
	}
	var version int
	var encoding, commit, readOnly string
	err := c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
current_setting('synchronous_commit'), current_setting('transaction_read_only')`).Scan(
		&version, &encoding, &commit, &readOnly)
	switch {
	case err != nil:
		return err
	case version < minVersion:
		return fmt.Errorf("the server is PostgreSQL %d; Gatehouse needs version 14 or later", version/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database's encoding is %s; it must be UTF8", encoding)
	case commit == "off":
		return errAsyncCommit
	case readOnly == "on":
		return errors.New("this server accepts no writes: it is a standby, or default_transaction_read_only is set")
	}
	return nil
}

// rowQuerier is a connection or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// RefuseElsewhere prevents the creation of a second, empty store in a database whose existing
// tables are outside the search_path: the empty store would know no keys and no approvals.
func RefuseElsewhere(ctx context.Context, db rowQuerier) error {
	var here, there string
	err := db.QueryRow(ctx, `SELECT coalesce(current_schema(), ''), coalesce(min(n.nspname::text), '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'gatehouse_schema' AND c.relkind = 'r'
HAVING coalesce(bool_and(n.nspname <> current_schema()), true)`).Scan(&here, &there)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // they are in the current schema
	case err != nil || there == "":
		return err
	}
	return fmt.Errorf("the tables are in the schema %q of this database, but search_path would make new ones in %q: "+
		"correct search_path for the role, or use a separate database for this Gatehouse", there, here)
}

func apply(ctx context.Context, tx pgx.Tx, files fs.FS, log *slog.Logger) error {
	if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS gatehouse_schema (
  version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())`); err != nil {
		return err
	}
	var version int
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM gatehouse_schema`).Scan(&version); err != nil {
		return err
	}
	if version > shared.NewestMigration(files) {
		return newerError(version)
	}
	if version > 0 && version < shared.BaseVersion {
		return olderError(version)
	}
	list, err := shared.Migrations(files)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Version <= version {
			continue
		}
		if version > 0 {
			log.Info("migrating the store", "migration", m.Name)
		}
		if _, err := tx.Exec(ctx, m.SQL); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO gatehouse_schema (version) VALUES ($1)`, m.Version); err != nil {
			return err
		}
	}
	return nil
}

// olderError is the error for a database from before the first release.
func olderError(version int) error {
	return fmt.Errorf("the database has schema version %d, written by a Gatehouse from before 0.1.0, "+
		"which this program does not read: start with an empty database, "+
		"or export what you need with the program that wrote it", version)
}
