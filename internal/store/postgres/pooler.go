package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrShared is the error of Open, Inspect and Ping behind a pooler that can give each transaction a different
// server session. Prepared statements, settings and LISTEN belong to sessions, and a lost COMMIT is looked up
// by session.
var ErrShared = errors.New("a connection pooler can give each transaction a different server session: " +
	"connect to the server itself, or set pool_mode = session in PgBouncer")

// sharingChecks is how often refuseShared checks whether connections share sessions. Without
// other users, the first check detects such a pooler.
const sharingChecks = 3

// backend identifies a session of the server uniquely.
type backend struct {
	pid     int32
	started time.Time
}

// refuseShared refuses a pooler that lets connections share a session.
func refuseShared(ctx context.Context, a *pgx.Conn) error {
	b, err := pgx.ConnectConfig(ctx, a.Config())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = b.Close(ctx)
	}()
	of := func(c *pgx.Conn) (s backend, err error) {
		// Such a pooler may not support prepared statements.
		err = c.QueryRow(ctx, `SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()`,
			pgx.QueryExecModeSimpleProtocol).Scan(&s.pid, &s.started)
		return s, err
	}
	for range sharingChecks {
		first, err := of(a)
		if err != nil {
			return err
		}
		if _, err := b.Exec(ctx, `BEGIN`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		other, err := of(b)
		if err != nil {
			return err
		}
		if first == other { // another query on a would wait for b's transaction
			return ErrShared
		}
		again, err := of(a)
		if err != nil {
			return err
		}
		if first != again {
			return ErrShared
		}
		if _, err := b.Exec(ctx, `ROLLBACK`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}
