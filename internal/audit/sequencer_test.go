package audit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// start runs a sequencer inside a synctest bubble until the test ends.
func start(t *testing.T, s *audit.Sequencer, wake <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, wake) }()
	t.Cleanup(func() { cancel(); <-done })
}

// size waits until all goroutines are idle and returns the size of acme's log.
func size(log *memLog) int {
	synctest.Wait()
	log.mu.Lock()
	defer log.mu.Unlock()
	return len(log.entries["acme"])
}

func TestRunWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		wake := make(chan struct{}, 1)
		start(t, &audit.Sequencer{Store: log, Batch: 10}, wake)
		if got := size(log); got != 0 {
			t.Fatalf("an empty log has size %d", got)
		}

		for i := range 35 { // more than three batches: no second wake-up is needed
			log.append("acme", body(i))
		}
		wake <- struct{}{}
		if got := size(log); got != 35 {
			t.Errorf("right after the wake-up the log has size %d, want 35", got)
		}

		log.append("acme", body(35)) // its wake-up is lost
		if got := size(log); got != 35 {
			t.Errorf("without a wake-up the log has size %d at once, want 35", got)
		}
		time.Sleep(time.Second)
		if got := size(log); got != 36 {
			t.Errorf("a second after a lost wake-up the log has size %d, want 36", got)
		}
	})
}

func TestRunIsQuietWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		wake := make(chan struct{})
		start(t, &audit.Sequencer{Store: log}, wake)
		close(wake) // the waker is gone: no reason to spin
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if log.views < 90 || log.views > 105 {
			t.Errorf("%d looks in 90 s, want about one in 900 ms", log.views)
		}
	})
}

func TestRunBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.append("acme", body(0))
		broken := true
		log.failView = func() error {
			if broken {
				return errors.New("disk on fire")
			}
			return nil
		}
		var out bytes.Buffer
		start(t, &audit.Sequencer{Store: log, Logger: slog.New(slog.NewTextHandler(&out, nil))}, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		log.mu.Lock()
		if log.views < 20 || log.views > 30 { // 1, 2, 4, 8, 16, 30, 30, … seconds
			t.Errorf("%d tries in ten minutes of failure", log.views)
		}
		if got := strings.Count(out.String(), "disk on fire"); got != log.views {
			t.Errorf("%d of %d failures were logged", got, log.views)
		}
		broken = false
		log.mu.Unlock()
		time.Sleep(31 * time.Second)
		if got := size(log); got != 1 {
			t.Errorf("after the recovery the log has size %d, want 1", got)
		}
	})
}

// TestRunRetriesConflicts: after conflicts with a faster sequencer, Run tries again
// soon, and logs nothing.
func TestRunRetriesConflicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.append("acme", body(0))
		conflicts := 5
		log.failView = func() error {
			if conflicts > 0 {
				conflicts--
				return gatehouse.ErrConflict
			}
			return nil
		}
		var out bytes.Buffer
		start(t, &audit.Sequencer{Store: log, Logger: slog.New(slog.NewTextHandler(&out, nil))}, nil)
		time.Sleep(500 * time.Millisecond)
		if got := size(log); got != 1 || out.Len() > 0 {
			t.Errorf("after five conflicts the log has size %d, and this was logged: %s", got, out.String())
		}
	})
}

// TestNumberedIsCalledForEachLog: Numbered is called for each log that has grown, and
// for no log when nothing was stored.
func TestNumberedIsCalledForEachLog(t *testing.T) {
	t.Parallel()
	log := newMemLog()
	var notified []string
	s := &audit.Sequencer{Store: log, Numbered: func(tenant string) { notified = append(notified, tenant) }}
	for _, tenant := range []string{"acme", "globex", "acme"} {
		log.append(tenant, body(0))
	}
	log.refuses = true
	if n, err := s.Once(t.Context()); n != 0 || err == nil || len(notified) > 0 {
		t.Errorf("%d numbered, called for %v: %v", n, notified, err)
	}
	log.refuses = false
	if n, err := s.Once(t.Context()); n != 3 || err != nil || !slices.Equal(notified, []string{"acme", "globex"}) {
		t.Errorf("%d numbered, called for %v: %v", n, notified, err)
	}
}

// TestRunReportsRefusals: a store that refuses the leaves, without another
// sequencer being faster, must be reported.
func TestRunReportsRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.append("acme", body(0))
		log.refuses = true
		var out bytes.Buffer
		start(t, &audit.Sequencer{Store: log, Logger: slog.New(slog.NewTextHandler(&out, nil))}, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// 1, 2, 4, 8, 16, 30, 30, … seconds
		if got := strings.Count(out.String(), "although no other sequencer has"); got < 20 || got > 30 {
			t.Errorf("refusals of ten minutes were logged %d times", got)
		}
	})
}

// TestRunGathersUnderLoad wakes the sequencer for every leaf of a steady
// stream: it numbers them in few batches, each well within a second.
func TestRunGathersUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		wake := make(chan struct{}, 1)
		start(t, &audit.Sequencer{Store: log}, wake)
		for i := range 2000 { // two seconds of a thousand leaves each
			log.append("acme", body(i))
			select {
			case wake <- struct{}{}:
			default:
			}
			time.Sleep(time.Millisecond)
		}
		if got := size(log); got < 1970 {
			t.Errorf("the log is %d leaves behind, want at most 30", 2000-got)
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		if log.views > 150 {
			t.Errorf("%d batches for two seconds of load, want about 100", log.views)
		}
	})
}
