package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var at []time.Duration
		done := make(chan struct{})
		var log strings.Builder
		go func() {
			defer close(done)
			Loop(ctx, slog.New(slog.NewTextHandler(&log, nil)), "sweep", time.Minute, func(context.Context) (bool, error) {
				at = append(at, time.Since(start))
				switch len(at) {
				case 1:
					return true, nil // more work is waiting
				case 3:
					return true, errors.New("no")
				}
				return false, nil
			})
		}()
		time.Sleep(210 * time.Second)
		cancel()
		<-done
		want := []time.Duration{0, 0, time.Minute, 2 * time.Minute, 3 * time.Minute}
		if len(at) != len(want) {
			t.Fatalf("ran at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Fatalf("ran at %v, want %v", at, want)
			}
		}
		failed, goesOn, more := strings.Cut(log.String(), "background work succeeds again")
		if !more || strings.Count(failed, "background work failed") != 1 || strings.Count(goesOn, "\n") != 1 {
			t.Errorf("logged:\n%s", log.String())
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if c.Retries != 3 || c.Lease != time.Minute || c.Poll != time.Second || len(c.Backoff) != 4 || c.Workers == 0 ||
		c.Batch != c.Workers {
		t.Errorf("%+v", c)
	}
	if c := (Config{}).withDefaults(); c.Retries != 0 {
		t.Error("no retries is a choice, not a missing value")
	}
	for name, c := range map[string]Config{
		"retries": {Retries: -1}, "lease": {Lease: -1}, "backoff": {Backoff: []time.Duration{-1}}, "workers": {Workers: -1},
	} {
		if err := c.withDefaults().validate(); err == nil {
			t.Errorf("negative %s accepted", name)
		}
	}
}
