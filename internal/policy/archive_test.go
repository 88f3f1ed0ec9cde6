package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestWindowsEndBeforeArchiving: no ceiling's window is longer than the time that claims stay in
// the live tables.
func TestWindowsEndBeforeArchiving(t *testing.T) {
	t.Parallel()
	parse := func(window time.Duration) error {
		_, err := policy.Parse(
			fmt.Appendf(nil, "version: 1\nceilings:\n  - {name: c, per: tenant, window: %dh, count: 1}\n", window/time.Hour))
		return err
	}
	if err := parse(gatehouse.MaxCeilingWindow); err != nil {
		t.Error(err)
	}
	if err := parse(gatehouse.MaxCeilingWindow + time.Hour); err == nil {
		t.Error("a window is longer than its claims are kept")
	}
}
