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

// session identifies a connection in the database, where it has its own row. last numbers its
// writing transactions; each of them writes its number.
type session struct {
	seq, last int64
	// made is the creation time of the row. After a failover to a standby that lacks the row,
	// another session can get the same seq.
	made time.Time
	// The server process and its start time, which together identify it uniquely.
	pid     int32
	started time.Time
	// warned says that the server's last answers contained a warning.
	warned bool
	// committing keeps the driver from canceling a COMMIT on a connection that it gives up.
	committing *atomic.Bool
}

const (
	// beginSession begins the transaction that inserts the row of a new connection. The transaction does
	// not wait for a standby: later writes of the session follow it in the WAL. It deletes the rows
	// of connections that ended long ago: the pool renews each connection after 25 hours at most (see
	// Open), so no connection lasts two days.
	beginSession = `BEGIN;
SET LOCAL synchronous_commit = local;
DELETE FROM gatehouse_session WHERE seq IN (SELECT seq FROM gatehouse_session
WHERE started_at < clock_timestamp() - interval '2 days' ORDER BY seq LIMIT 100 FOR UPDATE SKIP LOCKED)`
	insertSession = `WITH s AS (INSERT INTO gatehouse_session DEFAULT VALUES RETURNING seq, started_at)
SELECT s.seq, s.started_at, a.pid, a.backend_start FROM s, pg_stat_get_activity(pg_backend_pid()) a`

	// markSession is the last write of each transaction.
	markSession = `
WITH w AS (UPDATE gatehouse_session SET last = $2 WHERE seq = $1 AND last = $2 - 1 RETURNING 1)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
	// revokeMark stores the negative of a transaction's number in place of the previous number. From
	// then on the transaction cannot commit, because its markSession fails. The statement waits for a
	// transaction that has written the mark and is about to end. It may run any number of times. A
	// separate statement reads the result, because only a new snapshot shows the end of that
	// transaction.
	revokeMark = `UPDATE gatehouse_session SET last = -$2::bigint WHERE seq = $1 AND last = $2 - 1 AND started_at = $3`
	// readMark writes, so that its COMMIT waits for the standby that the original COMMIT should
	// have waited for: a mark that no standby has may be lost in the next failure.
	readMark = `UPDATE gatehouse_session SET last = last WHERE seq = $1 AND started_at = $2 RETURNING last`
	// viewMark reads the mark where the database refuses writes.
	viewMark = `SELECT last FROM gatehouse_session WHERE seq = $1 AND started_at = $2`
	// terminateSession ends a session that this process, its client, has left. A session that
	// waits for a standby has committed: ending it would make changes visible that the standby
	// lacks.
	terminateSession = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = $1 AND backend_start = $2 AND wait_event IS DISTINCT FROM 'SyncRep'`
	// terminateAndCount is terminateSession and counts the session: 0 after it has ended. It also reports
	// whether the server is a standby, which does not list its primary's sessions.
	terminateAndCount = `SELECT pg_is_in_recovery(), count(CASE wait_event WHEN 'SyncRep' THEN true
  ELSE pg_terminate_backend(pid) END)
FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2`
	sessionExists = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2)`
)

// customSession is the key under which a connection stores its session.
const customSession = "gatehouse.session"

func sessionOf(c *pgx.Conn) *session {
	o, _ := c.PgConn().CustomData()[customSession].(*session)
	return o
}

// attachSession gives a new connection its session.
func attachSession(_ context.Context, config *pgx.ConnConfig) error {
	o := &session{committing: new(atomic.Bool)}
	config.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		c.CustomData()[customSession] = o
		return nil
	}
	// The only warning that can come with COMMIT says that the wait for a standby was canceled.
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		o.warned = o.warned || n.SeverityUnlocalized == "WARNING"
	}
	// When the driver closes a connection, it asks the server to cancel what is under way.
	// Canceling a COMMIT that waits for a standby would make its changes visible before a standby has them.
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if o.committing.Load() {
			return nil, errors.New("a COMMIT must not be canceled")
		}
		return dial(ctx, network, address)
	}
	return nil
}

// errNoStandby says that a COMMIT took place on the server, but on no standby that it should
// have waited for.
var errNoStandby = errors.New("the server did not wait for its standby")

// registerSession inserts the row of a new connection, and gives the connection a short lock_timeout.
// Each statement runs once per connection, so none is worth preparing.
func registerSession(ctx context.Context, c *pgx.Conn) error {
	o := sessionOf(c)
	for _, sql := range []string{shortenLockTimeout, beginSession} {
		if _, err := c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	err := c.QueryRow(ctx, insertSession, pgx.QueryExecModeSimpleProtocol).Scan(&o.seq, &o.made, &o.pid, &o.started)
	if err == nil {
		_, err = c.Exec(ctx, `COMMIT`, pgx.QueryExecModeSimpleProtocol)
	}
	return err
}

// resolve finds the outcome of a COMMIT whose answer was lost. again is true if the COMMIT did not
// take place and never will.
func (s *Store) resolve(o session, cause error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var stored bool
		if stored, err = s.outcome(ctx, o); err == nil {
			s.log.Warn("postgres: an unclear commit was looked up", "session", o.seq, "number", o.last+1, "stored", stored,
				"error", cause)
			if stored {
				return false, nil
			}
			return true, &dbError{lost, cause}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			// The text does not wrap the errors: one of them could claim that nothing is stored,
			// or that the caller's time was over, and neither is known here.
			err = errors.New("postgres: the outcome of a commit (" + cause.Error() + ") cannot be looked up: " + err.Error())
			s.log.Error("postgres: a transaction may or may not be stored", "session", o.seq, "number", o.last+1, "error", err)
			return false, err
		}
	}
}

// outcome reports whether the session's next transaction is stored, or an error while that is
// undecided.
func (s *Store) outcome(ctx context.Context, o session) (stored bool, err error) {
	config := s.conn.Copy()
	config.RuntimeParams["lock_timeout"] = "500ms"
	if err := attachSession(ctx, config); err != nil {
		return false, err
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, revokeMark, o.seq, o.last+1, o.made)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		// The transaction does not end by itself.
		_, e := c.Exec(ctx, terminateSession, o.pid, o.started)
		return false, errors.Join(err, e)
	}
	if errors.As(err, &pg) && pg.Code == "25006" { // read_only_sql_transaction
		return outcomeReadOnly(ctx, c, o)
	}
	if err != nil {
		return false, err
	}
	stored, err = readOutcome(ctx, c, o, readMark, -(o.last + 1))
	if stored || err != nil {
		return stored, err
	}
	// The server process of the lost connection must not keep the transaction's locks.
	if _, err := c.Exec(ctx, terminateSession, o.pid, o.started); err != nil {
		s.log.Warn("postgres: a lost session was not ended", "pid", o.pid, "error", err)
	}
	return false, nil
}

// outcomeReadOnly finds the outcome on a database that an operator has made read-only. Once the
// session has ended, and its transaction with it, the mark tells the outcome.
func outcomeReadOnly(ctx context.Context, c *pgx.Conn, o session) (stored bool, err error) {
	var standby bool
	var there int
	if err := c.QueryRow(ctx, terminateAndCount, o.pid, o.started).Scan(&standby, &there); err != nil {
		return false, err
	}
	switch {
	case standby:
		return false, errors.New("the server is a standby")
	case there > 0:
		return false, errors.New("the session has not ended")
	}
	return readOutcome(ctx, c, o, viewMark, o.last)
}

// readOutcome reads a session's mark. If the mark is the number of the next transaction, that transaction is
// stored; if it is the value of otherwise, the transaction is not stored and never will be.
func readOutcome(ctx context.Context, c *pgx.Conn, o session, read string, otherwise int64) (stored bool, err error) {
	var last int64
	mine := sessionOf(c)
	mine.warned = false // a warning about the database itself does not count
	switch err := c.QueryRow(ctx, read, o.seq, o.made).Scan(&last); {
	case errors.Is(err, pgx.ErrNoRows):
		// The new primary was a standby that never had the session, nor anything later.
		return false, nil
	case err != nil:
		return false, err
	case mine.warned:
		return false, errNoStandby
	case last == o.last+1:
		return true, nil
	case 0 <= last && last < o.last:
		return false, nil // the database has lost earlier transactions as well
	case last != otherwise:
		return false, fmt.Errorf("the session's mark is %d", last)
	}
	return false, nil
}

// releaseWhenGone returns the update slot once the server session has ended. Until then, its COMMIT may wait
// for a standby, and the session occupies one of the server's few connections.
func (s *Store) releaseWhenGone(o session) {
	for {
		select {
		case <-time.After(time.Second):
		case <-s.closing:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
		var there bool
		err := s.pool.QueryRow(ctx, sessionExists, o.pid, o.started).Scan(&there)
		cancel()
		if err == nil && !there {
			<-s.updateSlots
			return
		}
	}
}
