package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestClockFallsBack sets the database's clock back by hours. In a running process the store's time
// does not go back, in reads and lists alike; a new process starts at the store's time. The store
// reports by how much the clock is behind.
func TestClockFallsBack(t *testing.T) {
	t.Parallel()
	dsn, to := pgtest.Skewed(t)
	var said bytes.Buffer
	s := openTest(t, Config{URL: dsn, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	now := func(s *Store) (now time.Time) {
		t.Helper()
		if err := s.View(t.Context(), gatehouse.DefaultTenant,
			func(tx gatehouse.ReadTx) error { now = tx.Now(); return nil }); err != nil {
			t.Fatal(err)
		}
		return now
	}
	to(3 * time.Hour)
	at := now(s)
	a := pendingAction("late", at)
	a.Approval.ExpiresAt = at.Add(time.Hour)
	if err := s.Update(t.Context(), a.Tenant, func(tx gatehouse.Tx) error { return tx.InsertAction(a) }); err != nil {
		t.Fatal(err)
	}
	to(5 * time.Hour)
	before := now(s)
	leaf := &gatehouse.Leaf{Tenant: a.Tenant, Type: "test", Subject: "clock", Actor: "system"}
	if err := s.Update(t.Context(), leaf.Tenant, func(tx gatehouse.Tx) error { return tx.AppendLeaf(leaf) }); err != nil {
		t.Fatal(err)
	}
	to(0)
	if said.Len() > 0 {
		t.Errorf("it logged something while its clock was right: %s", &said)
	}
	if after := now(s); after.Before(leaf.At) || after.Before(before) {
		t.Errorf("the time is %s, after it was %s", after, before)
	}
	if behind := s.ClockBehind(); behind < 4*time.Hour || behind > 5*time.Hour {
		t.Errorf("the clock is said to be behind by %s", behind)
	}
	if !strings.Contains(said.String(), "the store's clock waits") {
		t.Errorf("the log does not say that the store's clock waits: %s", &said)
	}
	other := openTest(t, Config{URL: dsn})
	if began := now(other); began.Before(leaf.At) {
		t.Errorf("a new process begins at %s, before a leaf that was stored at %s", began, leaf.At)
	}
	defer func() {
		to(6 * time.Hour)
		now(s)
		if behind := s.ClockBehind(); behind != 0 {
			t.Errorf("once it has caught up, the clock is said to be behind by %s", behind)
		}
	}()
	for who, s := range map[string]*Store{"the running process": s, "the new process": other} {
		for status, want := range map[gatehouse.Status]int{gatehouse.StatusPending: 0, gatehouse.StatusExpired: 1} {
			for _, sort := range []gatehouse.Sort{"", gatehouse.SortUrgency} {
				if sort != "" && status != gatehouse.StatusPending {
					continue
				}
				var page gatehouse.Page[*gatehouse.Action]
				err := s.View(t.Context(), a.Tenant, func(tx gatehouse.ReadTx) (err error) {
					page, err = tx.ListActions(gatehouse.ActionFilter{Status: status, Sort: sort})
					return err
				})
				if err != nil || len(page.Items) != want {
					t.Errorf("%s lists %d as %s, want %d (%v); %s has expired", who, len(page.Items), status, want, err, a.ID)
				}
			}
		}
	}
}

// TestClockOfTheProcess fails a transaction before it has read the clock: the process's own
// clock does not affect other transactions.
func TestClockOfTheProcess(t *testing.T) {
	t.Parallel()
	long := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	s := openTest(t, Config{Clock: func() time.Time { return long }})
	at := func(ctx context.Context) (now time.Time, err error) {
		err = s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error { now = tx.Now(); return ctx.Err() })
		return now, err
	}
	if now, err := at(t.Context()); err != nil || !now.Equal(long) {
		t.Fatalf("the time is %s (%v)", now, err)
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			cancel() // like a client that disconnects
			tx.Now()
			return ctx.Err()
		})
		if err == nil {
			t.Fatal("a transaction with a canceled context succeeded")
		}
	}
	if now, err := at(t.Context()); err != nil || !now.Equal(long) {
		t.Errorf("after a transaction failed it is %s (%v), want %s", now, err, long)
	}
}
