package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// atOnce runs the calls concurrently, with a context that announces n companions in all, and returns their errors.
func atOnce(n int, calls ...func(context.Context) error) []error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call(gatehouse.WithCompanions(context.Background(), n)) })
	}
	wg.Wait()
	return errs
}

// storing returns a call that stores a leaf with this key.
func storing(s *Store, key string) func(context.Context) error {
	return func(ctx context.Context) error { return addLeaf(ctx, s, key, nil)() }
}

// TestCompanionsAreOneGroup: companions form one group, even if no other Update is under way.
func TestCompanionsAreOneGroup(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record, companionWait: time.Hour})
	var calls []func(context.Context) error
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprint("w", i))
		calls = append(calls, storing(s, want[i]))
	}
	n := counter.count(t, "companions", func() {
		for _, err := range atOnce(len(calls), calls...) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	wantLeaves(t, s, want...)
}

// TestCompanionsWaitBriefly: a companion that does not come delays the others for companionWait only.
func TestCompanionsWaitBriefly(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for _, err := range atOnce(4, storing(s, "a"), storing(s, "b")) {
		if err != nil {
			t.Error(err)
		}
	}
	wantLeaves(t, s, "a", "b")
	if err := atOnce(2, storing(s, "late"))[0]; err != nil {
		t.Error(err)
	}
	wantLeaves(t, s, "a", "b", "late")
}

// TestOthersEndTheWait: an Update without companions starts at once, and waiting companions join its group. The leaf
// of a companion whose context was canceled meanwhile is not stored.
func TestOthersEndTheWait(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{companionWait: time.Hour})
	ctx, cancel := context.WithCancel(gatehouse.WithCompanions(context.Background(), 3))
	gone, stays := make(chan error, 1), make(chan error, 1)
	go func() { gone <- storing(s, "gone")(ctx) }()
	waitFor := func(n int) {
		t.Helper()
		waiting := -1
		end := time.Now().Add(20 * time.Second)
		for ; waiting != n && time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
			s.groupQueue.mu.Lock()
			waiting = len(s.groupQueue.waiting)
			s.groupQueue.mu.Unlock()
		}
		if waiting != n {
			t.Fatalf("%d wait, want %d", waiting, n)
		}
	}
	waitFor(1)
	go func() { stays <- storing(s, "stays")(gatehouse.WithCompanions(context.Background(), 3)) }()
	waitFor(2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	waitFor(1)
	if err := storing(s, "alone")(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-stays; err != nil {
		t.Error(err)
	}
	wantLeaves(t, s, "alone", "stays")
}
