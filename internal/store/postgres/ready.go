package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// pingTimeout bounds Ping. Callers wait for about 5 s and treat silence as a failure.
const pingTimeout = 3 * time.Second

// maxStandbyWait is how long a COMMIT may wait for a standby before Ping reports that the
// database accepts no writes.
const maxStandbyWait = 5 * time.Second

// Ping checks that the database answers, accepts writes, keeps them, grants the role its
// privileges, and has the schema version of this program. A process must not work on a newer
// schema, or on none.
func (s *Store) Ping(ctx context.Context) error {
	if s.closed() {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	var err error
	// The pool may hold many connections that ended a moment ago; only a new connection gives a
	// valid answer.
	for range s.config.MaxConns + 1 {
		err = s.ping(ctx)
		var connect *pgconn.ConnectError
		if kindOf(err) != lost || errors.As(err, &connect) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (s *Store) ping(ctx context.Context) error {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	var standby, alone bool
	var pid int32
	var commit, frozen, lacking string
	var version int
	err = c.QueryRow(ctx, `SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('synchronous_commit'),
current_setting('default_transaction_read_only'), (SELECT coalesce(max(version), 0) FROM gatehouse_schema),
  (`+missingPrivileges+`),
EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'
  AND query_start < clock_timestamp() - $5::interval)`,
		allTables, updatedTables, deletedTables, sequences, maxStandbyWait).Scan(
		&pid, &standby, &commit, &frozen, &version, &lacking, &alone)
	switch {
	case err != nil:
		return explain(err)
	case pid != sessionOf(c.Conn()).pid:
		return fmt.Errorf("postgres: %w", ErrShared)
	case standby:
		return errors.New("postgres: this server is a standby: it accepts no writes")
	case frozen == "on":
		return errors.New("postgres: default_transaction_read_only is set: this database accepts no writes")
	case commit == "off":
		return fmt.Errorf("postgres: %w", errAsyncCommit)
	case alone:
		return fmt.Errorf(
			"postgres: a commit has waited for more than %v for a standby of synchronous_standby_names: "+
				"nothing can be decided until a standby responds", maxStandbyWait)
	case lacking != "":
		return fmt.Errorf("postgres: the role lacks rights: %s", lacking)
	case version > SchemaVersion():
		return fmt.Errorf("postgres: %w", newerError(version))
	case version < SchemaVersion():
		return fmt.Errorf("postgres: the database has schema version %d, which is older than this program's version %d: "+
			"restart Gatehouse, which migrates the database", version, SchemaVersion())
	}
	return nil
}

var errAsyncCommit = errors.New("synchronous_commit is off: a crash of the server could lose confirmed decisions")

// ErrNewer is the error of Open and Ping on a database that a program with more migrations has
// used.
var ErrNewer = errors.New("a newer Gatehouse has used this database")

func newerError(version int) error {
	return fmt.Errorf("the database has schema version %d, this program knows versions up to %d: %w", version,
		SchemaVersion(), ErrNewer)
}
