package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

func insertTenant(id string) func(gatehouse.Tx) error {
	return func(x gatehouse.Tx) error {
		q := queues{x.(*tx)}
		defer q.In(gatehouse.DefaultTenant)
		now := x.Now()
		return errors.Join(
			q.In(id).InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: now}),
		)
	}
}

// oneBatch runs the closures in one batch: it blocks the writer until all are
// queued.
func oneBatch(t *testing.T, s *Store, fns ...func(gatehouse.Tx) error) []error {
	t.Helper()
	inside, release := make(chan struct{}), make(chan struct{})
	var held sync.WaitGroup
	var once sync.Once
	held.Go(func() {
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(gatehouse.Tx) error {
			once.Do(func() { close(inside) })
			<-release
			return nil
		})
		if err != nil {
			t.Errorf("the holder: %v", err)
		}
	})
	<-inside
	errs := make([]error, len(fns))
	for i, fn := range fns {
		held.Go(func() { errs[i] = s.Update(context.Background(), gatehouse.DefaultTenant, fn) })
	}
	for len(s.writer.queue) < len(fns) {
		time.Sleep(100 * time.Microsecond)
	}
	close(release)
	held.Wait()
	return errs
}

func tenants(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	err := s.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) error {
		list, err := q.ListTenants()
		for _, n := range list {
			ids[n.ID] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestGroupCommit(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const updates = 3*maxBatch - 1 // plus the closure that holds the writer
	var fns []func(gatehouse.Tx) error
	for i := range updates {
		fns = append(fns, insertTenant(fmt.Sprint("t", i)))
	}
	before := s.writer.commits.Load()
	for _, err := range oneBatch(t, s, fns...) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if commits := s.writer.commits.Load() - before; commits != 3 {
		t.Errorf("%d commits for %d updates, want 3", commits, updates)
	}
	if n := len(tenants(t, s)); n != updates+1 {
		t.Errorf("%d tenants, want %d", n, updates+1)
	}
}

func TestNothingWrittenCostsNoCommit(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	own := errors.New("own")
	before := s.writer.commits.Load()
	errs := oneBatch(t, s,
		func(x gatehouse.Tx) error {
			_, err := queues{x.(*tx)}.ClaimPushes("w", time.Minute,
				gatehouse.PushShare{Tenant: gatehouse.DefaultTenant, Limit: 10})
			return err
		},
		func(tx gatehouse.Tx) error { return errors.Join(insertTenant("x")(tx), own) },
	)
	if errs[0] != nil || !errors.Is(errs[1], own) {
		t.Fatalf("errors %v", errs)
	}
	if n := s.writer.commits.Load() - before; n != 0 {
		t.Errorf("%d commits", n)
	}
}

// TestForeignKeyLeftOpen detects a violated foreign key in the closure that
// caused it, not at the COMMIT of the whole batch.
func TestForeignKeyLeftOpen(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	s.writer.savepointBatches = 2 // the holder's batch and this one
	var runs atomic.Int64
	good := func(tx gatehouse.Tx) error { runs.Add(1); return insertTenant("good")(tx) }
	errs := oneBatch(t, s, good, func(tx gatehouse.Tx) error {
		a := pendingAction("1", tx.Now())
		a.Supersedes = "act_none"
		return tx.InsertAction(a)
	})
	if errs[0] != nil || !errors.Is(errs[1], gatehouse.ErrNotFound) {
		t.Errorf("errors %v", errs)
	}
	if runs.Load() != 1 {
		t.Errorf("the good closure ran %d times", runs.Load())
	}
}

// TestDiskFull lets one closure of a batch run out of disk space, upon which
// SQLite rolls back the whole batch. The others run again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	s := openTest(t, Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	var at time.Time
	err := s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) error {
		at = x.Now()
		c := x.(*tx).c
		pages, err := c.number(`PRAGMA page_count`)
		if err != nil {
			return err
		}
		_, err = c.number(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+20))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	hog := func(tx gatehouse.Tx) error {
		a := pendingAction("hog", at)
		a.Rationale = strings.Repeat("x", 1<<20)
		return tx.InsertAction(a)
	}
	errs := oneBatch(t, s, insertTenant("a"), insertTenant("b"), hog, insertTenant("c"), func(tx gatehouse.Tx) error {
		_ = hog(tx) // error ignored: this closure may not store anything either
		return insertTenant("d")(tx)
	}, insertTenant("e"))
	for i, id := range []string{"a", "b", "", "c", "", "e"} {
		switch {
		case i == 4 && errs[i] == nil:
			t.Errorf("closure %d continued after the end of its transaction", i)
		case i == 2 && !isCode(errs[i], sqlite3.SQLITE_FULL):
			t.Errorf("closure %d: error %v, want disk full", i, errs[i])
		case id != "" && errs[i] != nil:
			t.Errorf("a good closure failed: %v", errs[i])
		case id != "" && !tenants(t, s)[id]:
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	if tenants(t, s)["d"] {
		t.Error("a closure that failed is stored in part")
	}
	if !strings.Contains(logged.String(), "rolled back as a whole") {
		t.Error("SQLite did not roll back the batch: the test proves nothing")
	}
	if err := s.Update(context.Background(), gatehouse.DefaultTenant, insertTenant("later")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestUnclearCommit makes COMMIT fail in each possible way.
func TestUnclearCommit(t *testing.T) {
	t.Parallel()
	broken := &dbError{code: sqlite3.SQLITE_IOERR_FSYNC, text: "planted"}
	for name, fault := range map[string]func(c *conn) error{
		"took place": func(c *conn) error { return errors.Join(c.script(`COMMIT`), broken) },
		"did not":    func(c *conn) error { return errors.Join(c.script(`ROLLBACK`), broken) },
		"is refused": func(*conn) error { return broken },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTest(t, Config{})
			real := s.writer.commit
			var faults, runs atomic.Int64
			s.writer.commit = func(c *conn) error {
				if faults.Add(1) == 1 {
					return fault(c)
				}
				return real(c)
			}
			counted := func(id string) func(gatehouse.Tx) error {
				return func(tx gatehouse.Tx) error { runs.Add(1); return insertTenant(id)(tx) }
			}
			for i, err := range oneBatch(t, s, counted("a"), counted("b"), counted("c")) {
				if err != nil {
					t.Errorf("closure %d: %v", i, err)
				}
			}
			ids := tenants(t, s)
			if !ids["a"] || !ids["b"] || !ids["c"] {
				t.Errorf("stored %v", ids)
			}
			want := int64(6)
			if name == "took place" {
				want = 3
			}
			if runs.Load() != want {
				t.Errorf("%d runs, want %d", runs.Load(), want)
			}
			if err := s.Update(context.Background(), gatehouse.DefaultTenant, insertTenant("d")); err != nil ||
				!tenants(t, s)["d"] {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	// The file is gone for longer than the writer's patience, then it is back.
	for name, commit := range map[string]string{"and took place": `COMMIT`, "and did not": `ROLLBACK`} {
		t.Run("cannot be read back for long "+name, func(t *testing.T) {
			t.Parallel()
			s := openTest(t, Config{})
			_, hash := insertAna(t, s)
			findKey(t, s, hash) // and cache it
			s.writer.patience = 30 * time.Millisecond
			real, dir := s.writer.commit, filepath.Dir(s.config.Path)
			away := filepath.Join(dir, "away")
			first := true
			s.writer.commit = func(c *conn) error {
				if !first {
					return real(c)
				}
				first = false
				s.config.Path = filepath.Join(away, filepath.Base(s.config.Path))
				return errors.Join(c.script(commit), broken)
			}
			var runs atomic.Int64
			begun, done := make(chan struct{}), make(chan error, 1)
			go func() {
				<-begun
				done <- s.Update(t.Context(), gatehouse.DefaultTenant,
					func(tx gatehouse.Tx) error { runs.Add(1); return insertTenant("a")(tx) })
			}()
			err := s.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
				runs.Add(1)
				close(begun)
				for len(s.writer.queue) == 0 { // until the other request is queued in the same batch
					time.Sleep(100 * time.Microsecond)
				}
				return tx.RevokeKey("key_1")
			})
			for _, err := range []error{err, <-done} {
				if err == nil || errors.Is(err, gatehouse.ErrBusy) {
					t.Errorf("the caller of an unclear commit was answered %v", err)
				}
			}
			if err := s.Update(t.Context(), gatehouse.DefaultTenant, insertTenant("b")); !errors.Is(err, gatehouse.ErrBusy) {
				t.Errorf("while it is unclear what is stored, a write is answered %v", err)
			}
			if err := s.Ping(t.Context()); err == nil {
				t.Error("Ping returns no error")
			}
			if err := os.Symlink(dir, away); err != nil {
				t.Fatal(err)
			}
			for s.Ping(t.Context()) != nil {
				time.Sleep(time.Millisecond)
			}
			update(t, s, insertTenant("c"))
			ids, stored := tenants(t, s), commit == `COMMIT`
			if ids["a"] != stored || ids["b"] || !ids["c"] {
				t.Errorf("stored %v", ids)
			}
			if gone := findKey(t, s, hash) == nil; gone != stored {
				t.Errorf("the key is known: %v", !gone)
			}
			if runs.Load() != 2 {
				t.Errorf("two closures were run %d times, after their callers were answered", runs.Load())
			}
		})
	}
	t.Run("nor what overwrites it", func(t *testing.T) {
		t.Parallel()
		s := openTest(t, Config{})
		real := s.writer.commit
		faults := []string{`ROLLBACK`, `COMMIT`}
		s.writer.commit = func(c *conn) error {
			if len(faults) == 0 {
				return real(c)
			}
			end := faults[0]
			faults = faults[1:]
			return errors.Join(c.script(end), broken)
		}
		update(t, s, insertTenant("a"))
		if !tenants(t, s)["a"] {
			t.Error("an empty batch was confused with the lost one, which was acknowledged")
		}
	})
	t.Run("cannot be read back before the end", func(t *testing.T) {
		t.Parallel()
		s := openTest(t, Config{})
		s.writer.patience = 30 * time.Millisecond
		s.writer.commit = func(c *conn) error {
			s.config.Path += "/not-a-folder/x.db"
			return errors.Join(c.script(`ROLLBACK`), broken)
		}
		if err := s.Update(t.Context(), gatehouse.DefaultTenant, insertTenant("a")); err == nil {
			t.Error("an unclear commit was acknowledged")
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestClockSurvivesRestart sets the wall clock back while the store is closed:
// the store's clock stays where it was.
func TestClockSurvivesRestart(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/sub/gatehouse.db"
	at := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, back := range []time.Duration{0, time.Hour, 365 * 24 * time.Hour} {
		s, err := Open(context.Background(), Config{Path: path, Clock: func() time.Time { return at.Add(-back) }})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			if back > 0 && !tx.Now().Equal(at) {
				t.Errorf("set back by %s: View reads %s", back, tx.Now())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			if !tx.Now().Equal(at) {
				t.Errorf("set back by %s: Update reads %s", back, tx.Now())
			}
			return insertTenant(fmt.Sprint("t", back.Hours()))(tx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTransactionKept(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	var kept gatehouse.Tx
	if err := s.Update(context.Background(), gatehouse.DefaultTenant,
		func(tx gatehouse.Tx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := insertTenant("x")(kept); !errors.Is(err, errEnded) {
		t.Errorf("a write after the end: error %v", err)
	}
	if _, err := kept.FindTenant(); !errors.Is(err, errEnded) {
		t.Errorf("a read after the end: error %v", err)
	}
}
