package runs

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestSetAside: failures back off with doubled waits, are tried after work that has
// not failed, and are dropped when polls no longer find them.
func TestSetAside(t *testing.T) {
	t.Parallel()
	var a backoffs
	bad, good := gatehouse.StepRef{RunID: "run_1", StepID: "stp_1"}, gatehouse.StepRef{RunID: "run_2", StepID: "stp_2"}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	left := func(what string, want ...gatehouse.StepRef) {
		t.Helper()
		if d := cmp.Diff(want, a.without([]gatehouse.StepRef{bad, good}, now)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	left("before it has failed", bad, good)
	for i, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if tries := a.note(bad, errors.New("broken"), now); tries != i+1 {
			t.Errorf("%d tries, want %d", tries, i+1)
		}
		left("just after it failed", good)
		now = now.Add(time.Duration(seconds)*time.Second - 1)
		left("just before it is tried again", good)
		now = now.Add(1)
		left("when it is tried again", good, bad)
	}
	if a.size() != 1 {
		t.Errorf("%d are set aside", a.size())
	}
	a.note(bad, nil, now)
	left("once it has succeeded", bad, good)
	a.note(bad, errors.New("broken"), now)
	now = now.Add(asideFirst + asideMost + 1)
	left("when it was not tried for long", bad, good)
	if a.size() != 0 {
		t.Errorf("%d are still set aside", a.size())
	}
}
