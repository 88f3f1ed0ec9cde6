package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// leftBehind is the connection of a process that has lost it and cannot know what became
// of its transaction, which is begun.
func leftBehind(t *testing.T, s *Store) (*pgx.Conn, session) {
	t.Helper()
	ctx := context.Background()
	config := s.conn.Copy()
	if err := attend(ctx, config); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(ctx) })
	if err := register(ctx, c); err != nil {
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
			t.Error("what is left of the session keeps its locks")
			return
		}
	}
}

// TestFateOfWhoHasTheMark: a transaction that has written its number and does not
// end, as where the server's process was stopped, is not settled before it is ended.
func TestFateOfWhoHasTheMark(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	c, o := leftBehind(t, s)
	if _, err := c.Exec(ctx, markMoved, o.seq, o.last+1); err != nil {
		t.Fatal(err)
	}
	if stored, err := s.fate(ctx, o); err == nil {
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

// TestFateFreesLocks: what a lost transaction has locked is free when it is run
// again, and no other session is ended for it.
func TestFateFreesLocks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	c, o := leftBehind(t, s)
	other := o
	other.started = o.started.Add(-time.Second) // it had the same number, and is gone
	if stored, err := s.fate(ctx, other); stored || err != nil {
		t.Errorf("stored %v, error %v", stored, err)
	}
	if _, err := c.Exec(ctx, `SELECT pg_sleep(0.01)`); err != nil {
		t.Errorf("another session was ended: %v", err)
	}
	if stored, err := s.fate(ctx, o); stored || err != nil {
		t.Errorf("stored %v, error %v", stored, err)
	}
	wantHungUp(t, c)
}

// TestFateUnknown: a mark that is neither of the two that it can be says nothing
// about the transaction.
func TestFateUnknown(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	_, o := leftBehind(t, s)
	statement(t, s.config.URL, `UPDATE gatehouse_session SET last = 7 WHERE seq = $1`, o.seq)
	if stored, err := s.fate(context.Background(), o); err == nil {
		t.Errorf("stored is %v", stored)
	}
}

// TestFateOfLostSession: a standby that took over before it had a transaction, or
// its session, does not have it, also where it has given the session's number to
// another one.
func TestFateOfLostSession(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	c, o := leftBehind(t, s)
	if _, err := c.Exec(ctx, `rollback`); err != nil {
		t.Fatal(err)
	}
	statement(t, s.config.URL, `UPDATE gatehouse_session SET last = 1, started_at = started_at + interval '1 second' WHERE seq = $1`, o.seq)
	if stored, err := s.fate(ctx, o); stored || err != nil {
		t.Errorf("another's transaction: stored %v, error %v", stored, err)
	}
	late := o
	late.last = 4
	statement(t, s.config.URL, `UPDATE gatehouse_session SET last = 2, started_at = $2 WHERE seq = $1`, o.seq, o.made)
	if stored, err := s.fate(ctx, late); stored || err != nil {
		t.Errorf("the ones before are lost: stored %v, error %v", stored, err)
	}
	statement(t, s.config.URL, `DELETE FROM gatehouse_session WHERE seq = $1`, o.seq)
	if stored, err := s.fate(ctx, o); stored || err != nil {
		t.Errorf("no row: stored %v, error %v", stored, err)
	}
}

// TestFateDespiteWarnings: what a database says to everybody who connects has
// nothing to do with a commit.
func TestFateDespiteWarnings(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	statement(t, s.config.URL, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_text_search_config = none', current_database()); END $$`)
	_, o := leftBehind(t, s)
	if stored, err := s.fate(context.Background(), o); stored || err != nil {
		t.Errorf("stored %v, error %v", stored, err)
	}
}

// TestFateWhereNothingMayBeWritten: where an operator wants the database as it is,
// what became of a transaction shows when its server process has ended, and is
// found out without a write.
func TestFateWhereNothingMayBeWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		did    []string
		stored bool
	}{
		"not begun to end": {nil, false},
		"has its mark":     {[]string{markMoved}, false},
		"stored":           {[]string{markMoved, `commit`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := openTest(t, Config{Patience: 10 * time.Second})
			c, o := leftBehind(t, s)
			for _, sql := range tt.did {
				var args []any
				if sql == markMoved {
					args = []any{o.seq, o.last + 1}
				}
				if _, err := c.Exec(ctx, sql, args...); err != nil {
					t.Fatal(err)
				}
			}
			alter(t, s.config.URL, `default_transaction_read_only = on`)
			if stored, err := s.fate(ctx, o); err == nil {
				t.Errorf("stored is %v before its session has ended", stored)
			}
			again, err := s.resolve(o, errors.New("the connection is gone"))
			if again == tt.stored || (err == nil) != tt.stored || err != nil && !errors.Is(err, gatehouse.ErrBusy) {
				t.Errorf("again %v, error %v", again, err)
			}
			if _, err := c.Exec(ctx, `commit`); err == nil {
				t.Error("its session goes on")
			}
			var last int64
			if err := s.pool.QueryRow(ctx, seeMark, o.seq, o.made).Scan(&last); err != nil || (last == o.last+1) != tt.stored || last < 0 {
				t.Errorf("the mark is %d, error %v", last, err)
			}
		})
	}
}

// TestFateOnStandby: a standby takes no writes either, and knows neither what its
// primary runs nor all that it has stored.
func TestFateOnStandby(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	s := openTest(t, Config{URL: dsn})
	c, o := leftBehind(t, s)
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	statement(t, dsn, `CREATE SCHEMA standby; CREATE FUNCTION standby.pg_is_in_recovery() RETURNS BOOLEAN LANGUAGE SQL AS 'SELECT true'`)
	alter(t, dsn, `search_path = standby, pg_catalog, public`)
	alter(t, dsn, `default_transaction_read_only = on`)
	for range 2 {
		if stored, err := s.fate(context.Background(), o); err == nil {
			t.Errorf("stored is %v", stored)
		}
	}
}
