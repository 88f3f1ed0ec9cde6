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

// untimed is an announcement that waits for all expected Updates without a time limit.
func untimed(s *Store, n int) (*announcement, func(context.Context) context.Context) {
	of := s.Announce(n)
	w := announcementOf(of(context.Background()))
	w.timeout = time.NewTimer(time.Hour)
	return w, of
}

// atOnce runs calls as announced Updates.
func atOnce(of func(context.Context) context.Context, calls ...func(context.Context) error) []error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call(of(context.Background())) })
	}
	wg.Wait()
	return errs
}

func leaving(s *Store, key string) func(context.Context) error {
	return func(ctx context.Context) error { return leave(ctx, s, key, nil)() }
}

// TestAnnouncedIsOneGroup: announced Updates form one group, even if nobody else is under way.
func TestAnnouncedIsOneGroup(t *testing.T) {
	t.Parallel()
	var road traveler
	s := openTest(t, Config{trip: road.note})
	var calls []func(context.Context) error
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprint("w", i))
		calls = append(calls, leaving(s, want[i]))
	}
	n := road.of(t, "announced", func() {
		_, of := untimed(s, len(calls))
		for _, err := range atOnce(of, calls...) {
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

// TestAnnouncedWaitBriefly: an announced Update that fails, runs alone, gives up or does
// not come delays the others only until that is known, and never takes their writes away.
func TestAnnouncedWaitBriefly(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	own := errors.New("its own")
	var settled sync.WaitGroup
	settled.Add(2)
	_, of := untimed(s, 4)
	errs := atOnce(of,
		func(ctx context.Context) error { defer settled.Done(); return leaving(s, "a")(ctx) },
		func(ctx context.Context) error {
			return s.Update(ctx, gatehouse.DefaultTenant, func(gatehouse.Tx) error { return own })
		},
		func(ctx context.Context) error {
			return s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
				if _, err := tx.LogSize(); err != nil { // groups do not send this read
					return err
				}
				settled.Wait() // it runs alone, and they do not wait for it
				return tx.AppendLeaf(
					&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "t", Subject: "alone", Actor: "a"},
				)
			})
		},
		func(ctx context.Context) error { defer settled.Done(); return leaving(s, "b")(ctx) },
	)
	if errs[0] != nil || !errors.Is(errs[1], own) || errs[2] != nil || errs[3] != nil {
		t.Errorf("errors %v", errs)
	}
	wantLeft(t, s, "a", "alone", "b")

	// One of three never comes.
	for _, err := range atOnce(s.Announce(3), leaving(s, "c"), leaving(s, "d")) {
		if err != nil {
			t.Error(err)
		}
	}
	wantLeft(t, s, "a", "alone", "b", "c", "d")

	// Two of four never come, and one comes after the waiting ones have gone on.
	of = s.Announce(4)
	for _, err := range atOnce(of, leaving(s, "f"), leaving(s, "g")) {
		if err != nil {
			t.Error(err)
		}
	}
	late, stop := context.WithTimeout(of(context.Background()), time.Minute)
	defer stop()
	if err := leaving(s, "h")(late); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "a", "alone", "b", "c", "d", "f", "g", "h")

	// One gives up while it waits for another, which then comes.
	w, of := untimed(s, 2)
	ctx, cancel := context.WithCancel(of(context.Background()))
	gone := make(chan error, 1)
	go func() { gone <- leaving(s, "gone")(ctx) }()
	for held, end := 0, time.Now().Add(20*time.Second); held == 0 &&
		time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		s.groupQueue.mu.Lock()
		held = len(w.members)
		s.groupQueue.mu.Unlock()
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := leaving(s, "e")(of(context.Background())); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "a", "alone", "b", "c", "d", "e", "f", "g", "h")
	if l := &s.groupQueue; l.running != 0 || len(l.waiting) != 0 || len(w.members) != 0 {
		t.Errorf("%d are under way, %d wait, %d are held", l.running, len(l.waiting), len(w.members))
	}
}
