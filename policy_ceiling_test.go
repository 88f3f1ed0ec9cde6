package gatehouse_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func TestCountedAt(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		window   time.Duration
		reserved time.Time
		want     time.Time
	}{
		{64 * time.Minute, day, day},
		{64 * time.Minute, day.Add(time.Microsecond), day.Add(time.Minute)},
		{64 * time.Minute, day.Add(time.Minute), day.Add(time.Minute)},
		{time.Nanosecond, day.Add(7 * time.Microsecond), day.Add(7 * time.Microsecond)},
	} {
		got := gatehouse.CeilingClaim{Window: gatehouse.Duration(c.window)}.CountedAt(c.reserved)
		if !got.Equal(c.want) {
			t.Errorf("a window of %s: reserved at %s counts at %s, want %s", c.window, c.reserved, got, c.want)
		}
	}
	odd := gatehouse.CeilingClaim{Window: gatehouse.Duration(100*time.Minute + 7)}
	for i := range 1000 {
		at := day.Add(time.Duration(i) * 37 * time.Millisecond)
		if got := odd.CountedAt(at); got.Before(at) || got.Sub(at) > odd.Window.D()/64 {
			t.Fatalf("reserved at %s counts at %s", at, got)
		}
	}
}
