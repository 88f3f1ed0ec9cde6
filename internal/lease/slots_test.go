package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/lease"
)

func TestAcquire(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		free, freed, least, most, want int
		waits                          time.Duration
	}{
		"all that are free":   {free: 5, least: 1, most: 9, want: 5},
		"no more than most":   {free: 5, least: 1, most: 3, want: 3},
		"most is below least": {free: 5, least: 4, most: 3, want: 3},
		"waits for the first": {freed: 1, least: 1, most: 9, want: 1, waits: time.Second},
		"patience ends":       {free: 2, least: 4, most: 9, want: 2, waits: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				outer, inner := make(lease.Slots, 12), make(lease.Slots, 10)
				for range 10 - tt.free {
					outer <- struct{}{}
					inner <- struct{}{}
				}
				time.AfterFunc(time.Second, func() { lease.Release(tt.freed, outer, inner) })
				began := time.Now()
				got := lease.Acquire(t.Context(), tt.least, tt.most, time.Millisecond, outer, inner)
				if waited := time.Since(began); waited != tt.waits {
					t.Errorf("waited %v, want %v", waited, tt.waits)
				}
				if got != tt.want {
					t.Errorf("took %d, want %d", got, tt.want)
				}
			})
		})
	}
}

// TestAcquireUntilTheEnd: a caller whose context ends while it waits for slots holds none.
func TestAcquireUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outer, inner := make(lease.Slots, 4), make(lease.Slots, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := lease.Acquire(ctx, 3, 4, time.Minute, outer, inner); got != 0 {
			t.Errorf("took %d, want none", got)
		}
		if len(outer) != 0 || len(inner) != 0 {
			t.Errorf("%d and %d slots are in use", len(outer), len(inner))
		}
	})
}

func TestCursor(t *testing.T) {
	t.Parallel()
	var c lease.Cursor[string]
	c.Scanned(lease.MaxScan, "m")
	if got := c.After(); got != "m" {
		t.Errorf("the next look begins after %q", got)
	}
	c.Scanned(lease.MaxScan-1, "z")
	if got := c.After(); got != "" {
		t.Errorf("after all were seen, the next look begins after %q", got)
	}
}
