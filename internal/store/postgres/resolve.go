package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection as the database knows it, by a row of its own. last
// counts its transactions that wrote; the number is written within each.
type session struct {
	seq, last int64
	// The server's process, and when it began: together they name it for good.
	pid     int32
	started time.Time
}

const (
	// The rows of connections that ended long ago go when a new one begins. No
	// connection lasts two days: the pool renews each after an hour.
	forgetSessions = `DELETE FROM gatehouse_session WHERE seq IN (SELECT seq FROM gatehouse_session
WHERE started_at < clock_timestamp() - interval '2 days' ORDER BY seq LIMIT 100 FOR UPDATE SKIP LOCKED)`
	insertSession = `WITH s AS (INSERT INTO gatehouse_session DEFAULT VALUES RETURNING seq)
SELECT s.seq, a.pid, a.backend_start FROM s, pg_stat_activity a WHERE a.pid = pg_backend_pid()`

	// markSession is the last write of each transaction.
	markSession = guarded + markMoved + orConflict
	markMoved   = `UPDATE gatehouse_session SET last = $2 WHERE seq = $1 AND last = $2 - 1`
	// takeMark gives a transaction's number away, by its negative: from then on
	// the transaction is not stored and never will be, since markSession fails
	// in it. It waits for a transaction that has the mark and is about to end.
	// It may be run any number of times, and what it has done is read by a
	// statement of its own, which sees what the first one waited for.
	takeMark = `UPDATE gatehouse_session SET last = -$2::bigint WHERE seq = $1 AND last = $2 - 1`
	readMark = `SELECT last FROM gatehouse_session WHERE seq = $1`
	// hangUp ends a session whose client, this process, is gone from it.
	hangUp = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2`
)

// customSession is where a connection keeps its session.
const customSession = "gatehouse.session"

func sessionOf(c *pgx.Conn) *session {
	o, _ := c.PgConn().CustomData()[customSession].(*session)
	return o
}

// register makes a new connection's row.
func register(ctx context.Context, c *pgx.Conn) error {
	o := new(session)
	if err := shorten(ctx, c); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, forgetSessions); err != nil {
		return err
	}
	if err := c.QueryRow(ctx, insertSession).Scan(&o.seq, &o.pid, &o.started); err != nil {
		return err
	}
	c.PgConn().CustomData()[customSession] = o
	return nil
}

// resolve finds out what became of a COMMIT whose answer was lost. again says
// that it did not take place, and never will.
func (s *Store) resolve(o session, cause error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var stored bool
		if stored, err = s.fate(ctx, o); err == nil {
			s.log.Warn("postgres: an unclear commit was looked up", "session", o.seq, "number", o.last+1, "stored", stored, "error", cause)
			if stored {
				return false, nil
			}
			return true, &dbError{lost, cause}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			err = fmt.Errorf("postgres: the outcome of a commit (%w) cannot be looked up: %w", cause, err)
			s.log.Error("postgres: a transaction may or may not be stored", "session", o.seq, "number", o.last+1, "error", err)
			return false, err
		}
	}
}

// fate returns whether the session's next transaction is stored, or an error
// while that is not settled.
func (s *Store) fate(ctx context.Context, o session) (stored bool, err error) {
	config := s.conn.Copy()
	config.RuntimeParams["lock_timeout"] = "500ms"
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, takeMark, o.seq, o.last+1)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		// Its end does not come by itself.
		_, e := c.Exec(ctx, hangUp, o.pid, o.started)
		return false, errors.Join(err, e)
	}
	if err != nil {
		return false, err
	}
	var last int64
	switch err := c.QueryRow(ctx, readMark, o.seq).Scan(&last); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, errors.New("the server has forgotten the session")
	case err != nil:
		return false, err
	case last == o.last+1:
		return true, nil
	case last != -(o.last + 1):
		return false, fmt.Errorf("the session's mark is %d", last)
	}
	// What is left of the session must not keep its locks.
	if _, err := c.Exec(ctx, hangUp, o.pid, o.started); err != nil {
		s.log.Warn("postgres: a lost session was not ended", "pid", o.pid, "error", err)
	}
	return false, nil
}
