package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrShared is what Open, Inspect and Ping fail with behind a pooler that gives
// each transaction any session of the server: statements that were prepared,
// settings and listening stay with sessions, and by them a lost COMMIT is looked up.
var ErrShared = errors.New("a pooler hands the server's sessions from one transaction to the next: " +
	"connect to the server itself, or set pool_mode = session in PgBouncer")

// shares is how often it is tried whether connections share sessions. A pooler
// that nobody else uses shows it at once.
const shares = 3

// backend is a session of the server, named for good.
type backend struct {
	pid     int32
	started time.Time
}

// refuseShared refuses a pooler that does not leave a connection its session.
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
		// Such a pooler may not know statements that were prepared.
		err = c.QueryRow(ctx, `SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()`,
			pgx.QueryExecModeSimpleProtocol).Scan(&s.pid, &s.started)
		return s, err
	}
	for range shares {
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
		if first == other { // and a third answer may be long in coming
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
