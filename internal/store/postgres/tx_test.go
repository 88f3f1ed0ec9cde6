package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestClockAfterLocks lets one transaction begin before another and then wait for its lock: its
// clock reading is not before the other's.
func TestClockAfterLocks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	id := fill(t, s, 1)[0]
	beside := openTest(t, Config{URL: s.config.URL}) // in the same process it would wait in the lock queue
	begun, done := make(chan struct{}), make(chan error, 1)
	first := sync.OnceFunc(func() { close(begun) })
	var holder, waiter time.Time // a reading while the lock is held, and the waiter's reading
	err := s.Update(ctx, "default", func(tx gatehouse.Tx) error {
		if _, err := tx.LockAction("act_" + id); err != nil {
			return err
		}
		go func() {
			done <- beside.Update(ctx, "default", func(tx gatehouse.Tx) error {
				by := &gatehouse.Caller{Principal: &gatehouse.Principal{ID: "p"},
					Idempotency: &gatehouse.IdempotencyRequest{Route: "r", Key: "k"}}
				if known, err := tx.OpenCaller(by); err != nil || known.Answer != nil {
					t.Errorf("OpenCaller: %+v, %v", known, err)
				}
				first()
				_, err := tx.LockAction("act_" + id)
				waiter = tx.Now()
				return err
			})
		}()
		<-begun
		waitForLock(t, s)
		if err := s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&holder); err != nil {
			return err
		}
		return tx.AppendLeaf(&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: "s", Actor: "a"})
	})
	if err = errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if !waiter.After(holder) {
		t.Errorf("the waiter read %s, and had not its lock at %s", waiter, holder)
	}
}

// waitForLock returns when a session waits for a lock.
func waitForLock(t *testing.T, s *Store) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); lockWaits(t, s) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no session waits for a lock")
		}
	}
}

// lockWaits counts the locks that sessions wait for.
func lockWaits(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.pool.QueryRow(context.Background(),
		`SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity
			WHERE datname = current_database())`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFailureSticks ignores the error of a queued write: later reads return it too, and nothing
// is stored.
func TestFailureSticks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	fill(t, s, 1)
	err := s.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		tx := q.In("acme")
		if err := tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()}); err != nil {
			return err
		}
		tx = q.In(gatehouse.DefaultTenant)
		_ = tx.MoveApproval("apr_none", gatehouse.ApprovalApproved)
		for range 2 {
			if _, err := tx.FindAction("act_000000000"); !errors.Is(err, gatehouse.ErrConflict) {
				t.Errorf("a read after a failure: error %v", err)
			}
		}
		return nil
	})
	if !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("Update: error %v, want a conflict", err)
	}
	err = s.View(ctx, "acme", func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err })
	if !errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("a transaction that failed left a row: %v", err)
	}
}

// TestDeadlock makes two transactions lock two actions crosswise. The one that the server
// aborts runs again.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	ids := fill(t, s, 2)
	holds := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	done := make(chan error, 2)
	var runs [2]int
	for i := range 2 {
		go func() {
			done <- s.Update(ctx, "default", func(tx gatehouse.Tx) error {
				runs[i]++
				if _, err := tx.LockAction("act_" + ids[i]); err != nil {
					return err
				}
				if runs[i] == 1 {
					close(holds[i])
					<-holds[1-i]
				}
				if _, err := tx.LockAction("act_" + ids[1-i]); err != nil {
					return err
				}
				return tx.AppendLeaf(&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: "s", Actor: "a"})
			})
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if runs[0]+runs[1] < 3 {
		t.Errorf("the closures ran %v times: there was no deadlock", runs)
	}
	if err := s.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		leaves, err := q.UnnumberedLeaves(10)
		if len(leaves) != 2 {
			t.Errorf("%d leaves, want 2", len(leaves))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestUnstorableText: a text that cannot be stored is refused as the caller's mistake.
func TestUnstorableText(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for _, id := range []string{"a\x00b", "a\xffb"} {
		err := s.Update(context.Background(), id, func(tx gatehouse.Tx) error {
			return tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()})
		})
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%q: error %v", id, err)
		}
	}
}

// TestGivenUpBeforeCommit: a caller that gives up after all writes but before COMMIT gets the
// context's error, and nothing is stored.
func TestGivenUpBeforeCommit(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := s.Update(ctx, "acme", func(tx gatehouse.Tx) error {
		if err := tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()}); err != nil {
			return err
		}
		if _, err := tx.FindTenant(); err != nil { // so that the queued write is sent
			return err
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	err = s.View(
		context.Background(),
		"acme",
		func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err },
	)
	if !errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("it is stored: %v", err)
	}
}
