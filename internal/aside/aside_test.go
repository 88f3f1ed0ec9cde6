package aside

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSetAside: failures back off with doubled waits, are tried after work that has
// not failed, and are dropped when they are not tried for long.
func TestSetAside(t *testing.T) {
	t.Parallel()
	var a Set[string]
	const bad, good = "bad", "good"
	itself := func(s string) string { return s }
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	left := func(what string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, Due(&a, []string{bad, good}, itself, 2, now)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	left("before it has failed", bad, good)
	for i, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if tries := a.Note(bad, errors.New("broken"), now); tries != i+1 {
			t.Errorf("%d tries, want %d", tries, i+1)
		}
		left("just after it failed", good)
		now = now.Add(time.Duration(seconds)*time.Second - 1)
		left("just before it is tried again", good)
		now = now.Add(1)
		left("when it is tried again", good, bad)
	}
	if a.Size() != 1 {
		t.Errorf("%d are set aside", a.Size())
	}
	a.Note(bad, nil, now)
	left("once it has succeeded", bad, good)
	a.Note(bad, errors.New("broken"), now)
	now = now.Add(first + longest + 1)
	left("when it was not tried for long", bad, good)
	if a.Size() != 0 {
		t.Errorf("%d are still set aside", a.Size())
	}
}
