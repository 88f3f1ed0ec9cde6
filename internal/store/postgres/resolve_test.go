package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// leftBehind is the session of a process that has lost its connection and cannot know the
// outcome of its open transaction.
func leftBehind(t *testing.T, s *Store) (*pgx.Conn, session) {
	t.Helper()
	ctx := context.Background()
	config := s.conn.Copy()
	if err := attachSession(ctx, config); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(ctx) })
	if err := registerSession(ctx, c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, `begin`); err != nil {
		t.Fatal(err)
	}
	return c, *sessionOf(c)
}

// wantHungUp waits until the server has ended a session.
func wantHungUp(t *testing.T, c *pgx.Conn) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := c.Exec(context.Background(), `SELECT 1`); err != nil {
			return
		}
		if time.Now().After(end) {
			t.Error("the terminated session still has its locks")
			return
		}
	}
}

// TestOutcomeWithMarkHeld: a transaction that has written its mark and does not end, for
// example because the server process was stopped, is undecided until its session is terminated.
func TestOutcomeWithMarkHeld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	c, o := leftBehind(t, s)
	if _, err := c.Exec(ctx, markSession, o.seq, o.last+1); err != nil {
		t.Fatal(err)
	}
	if stored, err := s.outcome(ctx, o); err == nil {
		t.Errorf("stored is %v while it may still be", stored)
	}
	again, err := s.resolve(o, errors.New("the connection is gone"))
	if !again || !errors.Is(err, gatehouse.ErrBusy) {
		t.Errorf("again %v, error %v", again, err)
	}
	if _, err := c.Exec(ctx, `commit`); err == nil {
		t.Error("it is stored after it was said not to be")
	}
}

// TestOutcomeFreesLocks: the locks of a lost transaction are free when it runs again, and no other
// session is terminated for that.
func TestOutcomeFreesLocks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	c, o := leftBehind(t, s)
	other := o
	other.started = o.started.Add(-time.Second) // an earlier process with the same pid
	if stored, err := s.outcome(ctx, other); stored || err != nil {
		t.Errorf("stored %v, error %v", stored, err)
	}
	if _, err := c.Exec(ctx, `SELECT pg_sleep(0.01)`); err != nil {
		t.Errorf("another session was ended: %v", err)
	}
	if stored, err := s.outcome(ctx, o); stored || err != nil {
		t.Errorf("stored %v, error %v", stored, err)
	}
	wantHungUp(t, c)
}

// TestOutcomeUnknown: a mark with an unexpected value leaves the outcome of the transaction
// unknown.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	_, o := leftBehind(t, s)
	statement(t, s.config.URL, `UPDATE gatehouse_session SET last = 7 WHERE seq = $1`, o.seq)
	if stored, err := s.outcome(context.Background(), o); err == nil {
		t.Errorf("stored is %v", stored)
	}
}

// TestOutcomeOfLostSession: a transaction counts as not stored if a standby took over before it had received
// the transaction or the row of its session, even if the standby gave the row's seq to another session.
func TestOutcomeOfLostSession(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	c, o := leftBehind(t, s)
	if _, err := c.Exec(ctx, `rollback`); err != nil {
		t.Fatal(err)
	}
	statement(t, s.config.URL,
		`UPDATE gatehouse_session SET last = 1, started_at = started_at + interval '1 second' WHERE seq = $1`, o.seq)
	if stored, err := s.outcome(ctx, o); stored || err != nil {
		t.Errorf("another's transaction: stored %v, error %v", stored, err)
	}
	late := o
	late.last = 4
	statement(t, s.config.URL, `UPDATE gatehouse_session SET last = 2, started_at = $2 WHERE seq = $1`, o.seq, o.made)
	if stored, err := s.outcome(ctx, late); stored || err != nil {
		t.Errorf("the ones before are lost: stored %v, error %v", stored, err)
	}
	statement(t, s.config.URL, `DELETE FROM gatehouse_session WHERE seq = $1`, o.seq)
	if stored, err := s.outcome(ctx, o); stored || err != nil {
		t.Errorf("no row: stored %v, error %v", stored, err)
	}
}

// TestOutcomeDespiteWarnings: a warning that a database sends to every new connection says nothing
// about a commit.
func TestOutcomeDespiteWarnings(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	statement(t, s.config.URL,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_text_search_config = none', current_database()); END $$`)
	_, o := leftBehind(t, s)
	if stored, err := s.outcome(context.Background(), o); stored || err != nil {
		t.Errorf("stored %v, error %v", stored, err)
	}
}

// TestOutcomeOfReadOnly: on a database that an operator made read-only, the outcome
// of a transaction is known once its server process has ended, and is read without a write.
func TestOutcomeOfReadOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		did    []string
		stored bool
	}{
		"not begun to end": {nil, false},
		"has its mark":     {[]string{markSession}, false},
		"stored":           {[]string{markSession, `commit`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := openTest(t, Config{Patience: 10 * time.Second})
			c, o := leftBehind(t, s)
			for _, sql := range tt.did {
				var args []any
				if sql == markSession {
					args = []any{o.seq, o.last + 1}
				}
				if _, err := c.Exec(ctx, sql, args...); err != nil {
					t.Fatal(err)
				}
			}
			alter(t, s.config.URL, `default_transaction_read_only = on`)
			if stored, err := s.outcome(ctx, o); err == nil {
				t.Errorf("stored is %v before its session has ended", stored)
			}
			again, err := s.resolve(o, errors.New("the connection is gone"))
			if again == tt.stored || (err == nil) != tt.stored || err != nil && !errors.Is(err, gatehouse.ErrBusy) {
				t.Errorf("again %v, error %v", again, err)
			}
			if _, err := c.Exec(ctx, `commit`); err == nil {
				t.Error("its session still works")
			}
			var last int64
			if err := s.pool.QueryRow(ctx, viewMark, o.seq, o.made).Scan(&last); err != nil ||
				(last == o.last+1) != tt.stored ||
				last < 0 {
				t.Errorf("the mark is %d, error %v", last, err)
			}
		})
	}
}

// TestOutcomeOnStandby: a standby cannot tell the outcome. It accepts no writes either, but knows neither the
// sessions of its primary nor everything that the primary has stored.
func TestOutcomeOnStandby(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	s := openTest(t, Config{URL: dsn})
	c, o := leftBehind(t, s)
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	statement(t, dsn,
		`CREATE SCHEMA standby; CREATE FUNCTION standby.pg_is_in_recovery() RETURNS BOOLEAN LANGUAGE SQL AS 'SELECT true'`)
	alter(t, dsn, `search_path = standby, pg_catalog, public`)
	alter(t, dsn, `default_transaction_read_only = on`)
	for range 2 {
		if stored, err := s.outcome(context.Background(), o); err == nil {
			t.Errorf("stored is %v", stored)
		}
	}
}
