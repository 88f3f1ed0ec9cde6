package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
)

// maxRuns bounds how often a closure is run; the pauses between them double
// from minPause to maxPause, a second and a half in all.
const (
	maxRuns  = 10
	minPause = 4 * time.Millisecond
	maxPause = 400 * time.Millisecond
)

// tx implements gatehouse.Tx.
type tx struct{ readTx }

var (
	_ gatehouse.ReadTx = (*readTx)(nil)
	_ gatehouse.Tx     = (*tx)(nil)
)

// Update runs fn in a transaction; see the package comment for its rules.
func (s *Store) Update(ctx context.Context, fn func(gatehouse.Tx) error) error {
	if err := s.take(ctx, s.updates); err != nil {
		return err
	}
	defer func() { <-s.updates }()
	pause := minPause
	for n := 1; ; n++ {
		again, err := s.run(ctx, fn)
		if !again {
			return err
		}
		if n == maxRuns {
			return fmt.Errorf("%w: after %d runs: %w", gatehouse.ErrBusy, n, err)
		}
		s.log.DebugContext(ctx, "postgres: a transaction is run again", "run", n, "error", err)
		if kindOf(err) == lost {
			s.pool.Reset()
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // jitter is no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, maxPause)
	}
}

// run runs fn once. again says that nothing is stored and that another run may
// succeed.
func (s *Store) run(ctx context.Context, fn func(gatehouse.Tx) error) (again bool, err error) {
	c, err := s.acquire(ctx)
	if err != nil {
		return kindOf(err) == lost, err
	}
	t := &tx{readTx{s: s, ctx: ctx, c: c.Conn()}}
	defer func() {
		t.end = true
		t.leave(c)
	}()
	if err = t.call(fn); err == nil && t.err == nil {
		return t.commit()
	}
	if t.err == nil {
		return false, err // the closure's own
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil {
		err = t.err // it went on after an error
	}
	return t.mayRunAgain(), err
}

func (t *tx) mayRunAgain() bool {
	k := kindOf(t.err)
	return k == contention || k == lost
}

// call runs a closure and makes an error of a panic.
func (t *tx) call(fn func(gatehouse.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("postgres: panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}

// commit sends the last writes and COMMIT in one round trip: the server
// commits when none of them failed. From here on the caller's context has no
// say.
func (t *tx) commit() (again bool, err error) {
	if !t.wrote {
		return false, nil
	}
	if t.xid == "" {
		if err := t.read(); err != nil {
			return t.mayRunAgain(), err
		}
	}
	if err := t.ctx.Err(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.config.Patience)
	defer cancel()
	pid := t.c.PgConn().PID()
	err, _ = t.send(ctx, append(t.queue, query{sql: `commit`}))
	var pg *pgconn.PgError
	switch {
	case t.tag == "COMMIT":
		return false, nil // whatever came of the connection afterwards
	case err == nil:
		t.err = &dbError{other, fmt.Errorf("COMMIT was answered with %s", t.tag)}
		return false, t.err
	case errors.As(err, &pg) && !severe(pg), pgconn.SafeToRetry(err):
		t.err = explain(err)
		return t.mayRunAgain(), t.err
	}
	return t.s.resolve(t.xid, pid, err)
}

// lookUp asks for the fate of a transaction. A standby does not know it.
const lookUp = `SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() THEN pg_xact_status($1::text::xid8) END`

// hangUp ends the session that still has the transaction open: its client,
// this process, is gone from it.
const hangUp = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_xid = ($2::text::xid8)::xid`

// resolve finds out what became of a COMMIT whose answer was lost, by the
// transaction's number, on a new connection.
func (s *Store) resolve(xid string, pid uint32, cause error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var status string
		if status, err = s.fate(ctx, xid, pid); err == nil {
			s.log.Warn("postgres: an unclear commit was looked up", "transaction", xid, "status", status, "error", cause)
			if status == "committed" {
				return false, nil
			}
			return true, &dbError{lost, cause}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			err = fmt.Errorf("postgres: the outcome of a commit (%w) cannot be looked up: %w", cause, err)
			s.log.Error("postgres: a transaction may or may not be stored", "transaction", xid, "error", err)
			return false, err
		}
	}
}

// fate returns committed or aborted, or an error while neither is known.
func (s *Store) fate(ctx context.Context, xid string, pid uint32) (string, error) {
	c, err := pgx.ConnectConfig(ctx, s.conn.Copy())
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	var standby bool
	var status *string
	err = c.QueryRow(ctx, lookUp, xid).Scan(&standby, &status)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "22023":
		// In the future: this server was restored or promoted without it.
		return "aborted", nil
	case err != nil:
		return "", err
	case standby:
		return "", errors.New("the server is a standby")
	case status == nil:
		return "", errors.New("the server has forgotten the transaction")
	case *status == "in progress":
		_, err := c.Exec(ctx, hangUp, int32(pid), xid) //nolint:gosec // process ids are int4 in PostgreSQL
		return "", errors.Join(errors.New("the transaction is in progress"), err)
	}
	return *status, nil
}
