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

// atOnce runs calls as Updates with n companions.
func atOnce(n int, calls ...func(context.Context) error) []error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call(gatehouse.WithCompanions(context.Background(), n)) })
	}
	wg.Wait()
	return errs
}

func leaving(s *Store, key string) func(context.Context) error {
	return func(ctx context.Context) error { return leave(ctx, s, key, nil)() }
}

// TestCompanionsAreOneGroup: companions form one group, even if nobody else is under way.
func TestCompanionsAreOneGroup(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record, companionWait: time.Hour})
	var calls []func(context.Context) error
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprint("w", i))
		calls = append(calls, leaving(s, want[i]))
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
	wantLeft(t, s, want...)
}

// TestCompanionsWaitBriefly: a companion that does not come delays the others for companionWait only, and one that gives
// up while it waits is not stored.
func TestCompanionsWaitBriefly(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for _, err := range atOnce(4, leaving(s, "a"), leaving(s, "b")) {
		if err != nil {
			t.Error(err)
		}
	}
	wantLeft(t, s, "a", "b")
	if err := atOnce(2, leaving(s, "late"))[0]; err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "a", "b", "late")
}

// TestOthersEndTheWait: an Update without companions starts at once, and takes along the companions that wait.
func TestOthersEndTheWait(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{companionWait: time.Hour})
	ctx, cancel := context.WithCancel(gatehouse.WithCompanions(context.Background(), 3))
	gone, stays := make(chan error, 1), make(chan error, 1)
	go func() { gone <- leaving(s, "gone")(ctx) }()
	waitFor := func(n int) {
		t.Helper()
		waiting := -1
		for end := time.Now().Add(20 * time.Second); waiting != n && time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
			s.groupQueue.mu.Lock()
			waiting = len(s.groupQueue.waiting)
			s.groupQueue.mu.Unlock()
		}
		if waiting != n {
			t.Fatalf("%d wait, want %d", waiting, n)
		}
	}
	waitFor(1)
	go func() { stays <- leaving(s, "stays")(gatehouse.WithCompanions(context.Background(), 3)) }()
	waitFor(2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	waitFor(1)
	if err := leaving(s, "alone")(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-stays; err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "alone", "stays")
}
