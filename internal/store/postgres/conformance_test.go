package postgres

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/storetest"
)

// TestConformance connects as a role that owns nothing and has exactly the privileges that readiness
// checks: they are enough for the whole suite, so the list is complete.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) gatehouse.Store {
		config := Config{URL: asUser(t, database(t), guestRole)}
		if strings.HasSuffix(t.Name(), "/CanceledCaller") {
			config.callers = 1 // callers wait for each other
		}
		if strings.HasSuffix(t.Name(), "/ClockJumps") {
			return openClocked(t, config)
		}
		return openTest(t, config)
	})
}

// clocked is a store whose clock a test can set. All other tests of the suite use the
// database's clock.
type clocked struct {
	*Store
	clock *atomic.Pointer[func() time.Time]
}

func openClocked(t *testing.T, config Config) *clocked {
	clock := new(atomic.Pointer[func() time.Time])
	now := time.Now
	clock.Store(&now)
	config.Clock = func() time.Time { return (*clock.Load())() }
	return &clocked{openTest(t, config), clock}
}

// SetClock implements storetest.Clocked.
func (c *clocked) SetClock(now func() time.Time) { c.clock.Store(&now) }
