package postgres

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, func(t *testing.T) string { return database(t) })
}

// conform runs the suite on the databases at these addresses.
func conform(t *testing.T, address func(t *testing.T) string) {
	storetest.Run(t, func(t *testing.T) gatehouse.Store {
		config := Config{URL: address(t)}
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
