package serve

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageIsCollectedLessOftenInARush(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		old   int64
		since time.Duration
		live  uint64
		want  int64
	}{
		"a rush begins":               {atRest, 100 * time.Millisecond, 10 * mb, inRush},
		"it continues more slowly":    {inRush, 2 * time.Second, 10 * mb, inRush},
		"it is over":                  {inRush, time.Minute, 10 * mb, atRest},
		"no rush":                     {atRest, 5 * time.Second, 10 * mb, atRest},
		"much is in use":              {atRest, 100 * time.Millisecond, 32 * mb, 200},
		"more than the room is":       {inRush, 100 * time.Millisecond, 500 * mb, atRest},
		"nothing is known to be live": {atRest, 0, 0, inRush},
	} {
		if got := nextPercent(c.old, c.since, c.live); got != c.want {
			t.Errorf("%s: %d percent, want %d", name, got, c.want)
		}
	}
	if liveHeap() == 0 {
		t.Error("nothing is in use")
	}

	t.Setenv("GOGC", "100")
	if adaptGarbage() != nil {
		t.Error("GOGC is set, but has no effect")
	}
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(atRest)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	p := adaptGarbage()
	percent := func() int64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.percent
	}
	last := func(at time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = at
	}
	rush := func() {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); percent() == atRest; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("two collections in quick succession were not noticed")
			}
			runtime.GC()
		}
		if debug.SetGCPercent(inRush) == atRest {
			t.Error("the runtime has another setting")
		}
	}
	rush()
	last(time.Now())
	if p.rest(); percent() == atRest {
		t.Error("a rush was over at once")
	}
	last(time.Now().Add(-rushIsOver))
	if p.rest(); percent() != atRest || debug.SetGCPercent(atRest) != atRest {
		t.Error("a rush after which nothing is collected is never over")
	}
	rush() // it looks at each collection, not at one
	for deadline := time.Now().Add(30 * time.Second); percent() != atRest; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a rush does not end by itself")
		}
	}

	quiet := &garbagePace{percent: atRest, over: time.NewTimer(time.Hour)}
	if quiet.look(); quiet.percent != atRest {
		t.Error("the first collection of all was a rush")
	}
	if quiet.look(); quiet.percent == atRest {
		t.Error("a rush that comes later is not noticed")
	}
}
