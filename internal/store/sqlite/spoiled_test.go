package sqlite

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// failing makes n closures that each insert a tenant. The nth one to run fails,
// and fails again on every rerun.
func failing(
	prefix string, n, nth int, writeFirst bool,
) (fns []func(gatehouse.Tx) error, runs, culprit *atomic.Int64, own error) {
	runs, culprit, own = new(atomic.Int64), new(atomic.Int64), errors.New("own")
	culprit.Store(-1)
	for i := range n {
		fns = append(fns, func(tx gatehouse.Tx) error {
			if int(runs.Add(1)) == nth {
				culprit.Store(int64(i))
			}
			fails := culprit.Load() == int64(i)
			if fails && !writeFirst {
				return own
			}
			if err := insertTenant(fmt.Sprint(prefix, i))(tx); err != nil || !fails {
				return err
			}
			return own
		})
	}
	return fns, runs, culprit, own
}

// A closure that fails after a write is undone alone: the rest of its batch
// runs again with savepoints, and later batches have savepoints from the start.
func TestFailureAfterWritingIsUndoneAlone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const n, nth = 20, 7
	fns, runs, culprit, own := failing("t", n, nth, true)
	before := s.writer.commits.Load()
	errs := oneBatch(t, s, fns...)
	wantAllBut(t, s, "t", errs, culprit, own)
	if got := s.writer.commits.Load() - before; got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	if got := runs.Load(); got != nth+n {
		t.Errorf("%d runs, want %d up to the failure and %d with savepoints", got, nth, n)
	}

	fns, runs, culprit, own = failing("u", n, nth, true)
	wantAllBut(t, s, "u", oneBatch(t, s, fns...), culprit, own)
	if runs.Load() != n {
		t.Errorf("a careful batch: %d runs, want %d", runs.Load(), n)
	}
}

// A closure that fails before it writes causes no second run of the others.
func TestFailureBeforeWritingCostsNoRun(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const n = 20
	fns, runs, culprit, own := failing("t", n, 7, false)
	errs := oneBatch(t, s, fns...)
	wantAllBut(t, s, "t", errs, culprit, own)
	if runs.Load() != n || s.writer.savepointBatches != 0 {
		t.Errorf("%d runs, want %d; %d careful batches to come", runs.Load(), n, s.writer.savepointBatches)
	}
}

func wantAllBut(t *testing.T, s *Store, prefix string, errs []error, culprit *atomic.Int64, own error) {
	t.Helper()
	stored := tenants(t, s)
	for i, err := range errs {
		is := stored[fmt.Sprint(prefix, i)]
		if int64(i) == culprit.Load() {
			if !errors.Is(err, own) || is {
				t.Errorf("the closure that failed: %v, stored %t", err, is)
			}
		} else if err != nil || !is {
			t.Errorf("number %d: %v, stored %t", i, err, is)
		}
	}
}
