package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// readyWithin is how long a database may take to say that it is there. Who asks
// waits for about 5 s and takes no answer for an answer.
const readyWithin = 3 * time.Second

// Ping reports whether the database answers, takes writes and keeps what it was
// told, and is of the version that this program knows: under a newer one, or
// none, this process has no business.
func (s *Store) Ping(ctx context.Context) error {
	if s.closed() {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var err error
	// The pool may have many connections that ended a moment ago; a new one tells.
	for range s.config.MaxConns + 1 {
		err = s.ready(ctx)
		var connect *pgconn.ConnectError
		if kindOf(err) != lost || errors.As(err, &connect) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (s *Store) ready(ctx context.Context) error {
	var standby bool
	var commit, frozen string
	var version int
	err := s.pool.QueryRow(ctx, `SELECT pg_is_in_recovery(), current_setting('synchronous_commit'),
current_setting('default_transaction_read_only'), (SELECT coalesce(max(version), 0) FROM gatehouse_schema)`).Scan(&standby, &commit, &frozen, &version)
	switch {
	case err != nil:
		return explain(err)
	case standby:
		return errors.New("postgres: this server is a standby: it takes no writes")
	case frozen == "on":
		return errors.New("postgres: default_transaction_read_only is set: this database takes no writes")
	case commit == "off":
		return fmt.Errorf("postgres: %w", errForgetful)
	case version > SchemaVersion():
		return fmt.Errorf("postgres: %w", newerError(version))
	case version < SchemaVersion():
		return fmt.Errorf("postgres: the database is of version %d again, this program's is %d: restart it", version, SchemaVersion())
	}
	return nil
}

var errForgetful = errors.New("synchronous_commit is off: decisions that were answered would not survive a crash")

// ErrNewer is what Open and Ping fail with where a program with more migrations
// was at the database.
var ErrNewer = errors.New("a newer Gatehouse was here")

func newerError(version int) error {
	return fmt.Errorf("the database is of version %d, this program knows %d: %w", version, SchemaVersion(), ErrNewer)
}
