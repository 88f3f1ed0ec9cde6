package dispatch

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestPatience: beyond its retries, a push of class A is tried again for as
// long as the patience lasts and the target keeps keys.
func TestPatience(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name                string
		patience, retention time.Duration
		class               connector.Class
		attempts, base      int
		after               time.Duration
		want                bool
	}{
		{"retries are left", 0, 0, connector.ClassC, 3, 0, time.Minute, false},
		{"none is left", 0, 0, connector.ClassA, 4, 0, time.Minute, true},
		{"a replay has its own", 0, 0, connector.ClassA, 7, 4, time.Hour, false},
		{"patience", 2 * time.Hour, 0, connector.ClassA, 40, 0, 2*time.Hour - 1, false},
		{"no patience is left", 2 * time.Hour, 0, connector.ClassA, 40, 0, 2 * time.Hour, true},
		{"class B", 2 * time.Hour, 0, connector.ClassB, 4, 0, time.Minute, true},
		{"class C", 2 * time.Hour, 0, connector.ClassC, 4, 0, time.Minute, true},
		{"the key is kept", 2 * time.Hour, time.Hour, connector.ClassA, 9, 0, time.Hour - 1, false},
		{"the key is forgotten", 2 * time.Hour, time.Hour, connector.ClassA, 9, 0, time.Hour, true},
	} {
		picked := due.Add(c.after)
		p := &gatehouse.Push{Attempts: c.attempts, AttemptBase: c.base, CreatedAt: due.Add(-time.Hour), NotBefore: due,
			PickedAt: &picked}
		config := Config{Retries: 3, Patience: c.patience}
		if got := config.spent(p, c.class, c.retention); got != c.want {
			t.Errorf("%s: spent is %v", c.name, got)
		}
	}
}
