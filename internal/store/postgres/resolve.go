package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection as the database knows it, by a row of its own. last
// counts its transactions that wrote; the number is written within each.
type session struct {
	seq, last int64
	// made is when the row was. A standby that takes over without having had the
	// row gives its number to another session.
	made time.Time
	// The server's process, and when it began: together they name it for good.
	pid     int32
	started time.Time
	// warned says that the server gave a warning with its last answers.
	warned bool
	// committing keeps the driver from canceling what it gives up.
	committing *atomic.Bool
}

const (
	// The rows of connections that ended long ago go when a new one begins. No
	// connection lasts two days: the pool renews each after an hour.
	forgetSessions = `DELETE FROM gatehouse_session WHERE seq IN (SELECT seq FROM gatehouse_session
WHERE started_at < clock_timestamp() - interval '2 days' ORDER BY seq LIMIT 100 FOR UPDATE SKIP LOCKED)`
	insertSession = `WITH s AS (INSERT INTO gatehouse_session DEFAULT VALUES RETURNING seq, started_at)
SELECT s.seq, s.started_at, a.pid, a.backend_start FROM s, pg_stat_activity a WHERE a.pid = pg_backend_pid()`

	// markSession is the last write of each transaction.
	markSession = guarded + markMoved + orConflict
	markMoved   = `UPDATE gatehouse_session SET last = $2 WHERE seq = $1 AND last = $2 - 1`
	// takeMark gives a transaction's number away, by its negative: from then on
	// the transaction is not stored and never will be, since markSession fails
	// in it. It waits for a transaction that has the mark and is about to end.
	// It may be run any number of times, and what it has done is read by a
	// statement of its own, which sees what the first one waited for.
	takeMark = `UPDATE gatehouse_session SET last = -$2::bigint WHERE seq = $1 AND last = $2 - 1 AND started_at = $3`
	// readMark writes, so that its COMMIT waits for whatever standby the looked-up
	// one should have waited for: what no standby has may be gone after the next failure.
	readMark = `UPDATE gatehouse_session SET last = last WHERE seq = $1 AND started_at = $2 RETURNING last`
	// seeMark is for where nothing may be written.
	seeMark = `SELECT last FROM gatehouse_session WHERE seq = $1 AND started_at = $2`
	// hangUp ends a session whose client, this process, is gone from it. One that
	// waits for a standby has committed: ending it would show everybody what the
	// standby has not.
	hangUp = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = $1 AND backend_start = $2 AND wait_event IS DISTINCT FROM 'SyncRep'`
	// hangUpCounted is hangUp, and counts the session, 0 when it has ended. A standby
	// knows nothing of its primary's.
	hangUpCounted = `SELECT pg_is_in_recovery(), count(CASE wait_event WHEN 'SyncRep' THEN true ELSE pg_terminate_backend(pid) END)
FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2`
	isThere = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2)`
)

// customSession is where a connection keeps its session.
const customSession = "gatehouse.session"

func sessionOf(c *pgx.Conn) *session {
	o, _ := c.PgConn().CustomData()[customSession].(*session)
	return o
}

// attend gives a new connection its session.
func attend(_ context.Context, config *pgx.ConnConfig) error {
	o := &session{committing: new(atomic.Bool)}
	config.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		c.CustomData()[customSession] = o
		return nil
	}
	// The warning that can come with COMMIT is that somebody has told it not to wait
	// for a standby any longer.
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { o.warned = o.warned || n.SeverityUnlocalized == "WARNING" }
	// The driver asks the server to cancel whatever is under way on a connection
	// that it closes, and a COMMIT that waits for a standby would be shown to
	// everybody without one.
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if o.committing.Load() {
			return nil, errors.New("a COMMIT is not canceled")
		}
		return dial(ctx, network, address)
	}
	return nil
}

// errAlone is that a COMMIT has taken place on the server that was asked, and on
// no standby that it should have waited for.
var errAlone = errors.New("the server did not wait for its standby")

// register makes a new connection's row. It waits for no standby: what is stored
// there by this session later comes behind it.
func register(ctx context.Context, c *pgx.Conn) error {
	o := sessionOf(c)
	if err := shorten(ctx, c); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = local`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, forgetSessions); err != nil {
			return err
		}
		return tx.QueryRow(ctx, insertSession).Scan(&o.seq, &o.made, &o.pid, &o.started)
	})
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
			// What they are is hidden: neither says that nothing is stored, which that
			// time was too short would.
			err = errors.New("postgres: the outcome of a commit (" + cause.Error() + ") cannot be looked up: " + err.Error())
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
	if err := attend(ctx, config); err != nil {
		return false, err
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, takeMark, o.seq, o.last+1, o.made)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		// Its end does not come by itself.
		_, e := c.Exec(ctx, hangUp, o.pid, o.started)
		return false, errors.Join(err, e)
	}
	if errors.As(err, &pg) && pg.Code == "25006" { // read_only_sql_transaction
		return fateOfEnded(ctx, c, o)
	}
	if err != nil {
		return false, err
	}
	stored, err = marked(ctx, c, o, readMark, -(o.last + 1))
	if stored || err != nil {
		return stored, err
	}
	// What is left of the session must not keep its locks.
	if _, err := c.Exec(ctx, hangUp, o.pid, o.started); err != nil {
		s.log.Warn("postgres: a lost session was not ended", "pid", o.pid, "error", err)
	}
	return false, nil
}

// fateOfEnded finds it out where nothing may be written, since an operator wants
// the database as it is: the mark says it when the session has ended, and with it
// what it had begun.
func fateOfEnded(ctx context.Context, c *pgx.Conn, o session) (stored bool, err error) {
	var standby bool
	var there int
	if err := c.QueryRow(ctx, hangUpCounted, o.pid, o.started).Scan(&standby, &there); err != nil {
		return false, err
	}
	switch {
	case standby:
		return false, errors.New("the server is a standby")
	case there > 0:
		return false, errors.New("the session has not ended")
	}
	return marked(ctx, c, o, seeMark, o.last)
}

// marked reads a session's mark: the next transaction's number is that of one that
// is stored, otherwise of one that is not and never will be.
func marked(ctx context.Context, c *pgx.Conn, o session, read string, otherwise int64) (stored bool, err error) {
	var last int64
	mine := sessionOf(c)
	mine.warned = false // of what there may be to say about the database
	switch err := c.QueryRow(ctx, read, o.seq, o.made).Scan(&last); {
	case errors.Is(err, pgx.ErrNoRows):
		// A standby took over that never had the session, nor what came behind it.
		return false, nil
	case err != nil:
		return false, err
	case mine.warned:
		return false, errAlone
	case last == o.last+1:
		return true, nil
	case 0 <= last && last < o.last:
		return false, nil // it has lost the ones before as well
	case last != otherwise:
		return false, fmt.Errorf("the session's mark is %d", last)
	}
	return false, nil
}

// abandon gives the place of an Update back when the session is gone in which its
// COMMIT may still wait for a standby: each that waits is one of the server's
// connections, of which it has few.
func (s *Store) abandon(o session) {
	for {
		select {
		case <-time.After(time.Second):
		case <-s.closing:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
		var there bool
		err := s.pool.QueryRow(ctx, isThere, o.pid, o.started).Scan(&there)
		cancel()
		if err == nil && !there {
			<-s.updates
			return
		}
	}
}
