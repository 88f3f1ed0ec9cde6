package runs

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestBegan: an attempt starts no earlier than its step was ready. An older server, whose lease outlives an upgrade,
// stores only the start of the first attempt.
func TestBegan(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	early, late := now.Add(-time.Hour), now.Add(-time.Minute)
	for name, c := range map[string]struct {
		started, ready *time.Time
		want           time.Time
	}{
		"never leased":           {nil, &late, now},
		"leased":                 {&late, &early, late},
		"leased at once":         {&late, &late, late},
		"retried, older server":  {&early, &late, late},
		"without a time of both": {nil, nil, now},
		"never ready":            {&early, nil, early},
	} {
		s := &gatehouse.Step{StartedAt: c.started, ReadyAt: c.ready}
		if got := began(s, now); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
