package api

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// sharedBuckets is a RateStore in memory; down makes it fail.
type sharedBuckets struct {
	fullAt time.Time
	asked  atomic.Int64
	down   bool
}

func (s *sharedBuckets) SpendRate(_ context.Context, _, _ string, cost, _ time.Duration) (time.Duration, error) {
	s.asked.Add(1)
	if s.down {
		return 0, errors.New("the store is down")
	}
	now := time.Now()
	if s.fullAt.Before(now) {
		s.fullAt = now
	}
	s.fullAt = s.fullAt.Add(cost)
	return s.fullAt.Sub(now), nil
}

// passed sends n requests to the processes in turn and counts those that pass.
func passed(n int, processes ...*buckets) (count int) {
	for i := range n {
		if processes[i%len(processes)].spend(context.Background(), &gatehouse.Principal{ID: "prn_1"}) == nil {
			count++
		}
	}
	return count
}

func sharing(store RateStore) *buckets {
	b := newBuckets(10, 100)
	b.sharedBy(store, slog.New(slog.DiscardHandler))
	return b
}

// TestRateIsSharedByProcesses: processes that share a store allow one burst
// together, and at most a tenth of it more for each process, including one that
// starts later.
func TestRateIsSharedByProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) {
		store := new(sharedBuckets)
		one, two := sharing(store), sharing(store)
		if n := passed(400, one, two); n < 100 || n > 120 {
			t.Errorf("%d of 400 passed, want a burst of 100 and at most a tenth of it for each process", n)
		}
		if asked := store.asked.Load(); asked > 25 {
			t.Errorf("the store was asked %d times", asked)
		}
		if n := passed(100, sharing(store)); n > 10 {
			t.Errorf("%d passed after a restart", n)
		}
		time.Sleep(20 * time.Second)
		if n := passed(400, one, two); n < 80 || n > 120 {
			t.Errorf("%d passed when the bucket was full again", n)
		}
	})
}

// TestRateOfSlowCallerSkipsStore: the store is not asked about a caller with at
// most a tenth of the rate.
func TestRateOfSlowCallerSkipsStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) {
		store := new(sharedBuckets)
		b := sharing(store)
		for range 1000 {
			if passed(1, b) != 1 {
				t.Fatal("refused")
			}
			time.Sleep(time.Second)
		}
		if asked := store.asked.Load(); asked != 0 {
			t.Errorf("the store was asked %d times", asked)
		}
	})
}

// TestRefusedReportKeepsTheCount: a refused request does not lose the requests that the store does not know yet.
func TestRefusedReportKeepsTheCount(t *testing.T) {
	t.Parallel()
	b := sharing(new(sharedBuckets))
	p := &gatehouse.Principal{ID: "prn_1"}
	passed(3, b)
	k := b.byName[p.ID]
	k.fullAt = time.Now().Add(time.Hour)
	unreported := k.unreported
	if err := b.report(t.Context(), p, k); err == nil || unreported == 0 || k.unreported != unreported {
		t.Errorf("%v: %v unreported, want %v", err, k.unreported, unreported)
	}
}

// TestRateWithoutItsStore: if the store fails, each process applies its own
// limit and asks the store again later.
func TestRateWithoutItsStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) {
		store := &sharedBuckets{down: true}
		b := sharing(store)
		if n := passed(400, b); n != 100 {
			t.Errorf("%d passed, want 100", n)
		}
		if asked := store.asked.Load(); asked != 1 {
			t.Errorf("the store was asked %d times while it was down", asked)
		}
		store.down = false
		time.Sleep(2 * spendPause)
		if n := passed(1, b); n != 1 || store.asked.Load() != 2 {
			t.Errorf("%d passed, and the store was asked %d times", n, store.asked.Load())
		}
		if fullIn := time.Until(store.fullAt); fullIn < 8*time.Second {
			t.Errorf("the bucket is full in %s: the store lacks what was spent while it was down", fullIn)
		}
	})
}
