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
	storetest.Run(t, func(t *testing.T) gatehouse.Store {
		if strings.HasSuffix(t.Name(), "/CanceledCaller") {
			// One caller waits for another.
			return openTest(t, Config{callers: 1})
		}
		if strings.HasSuffix(t.Name(), "/ClockJumps") {
			return openClocked(t)
		}
		return openTest(t, Config{})
	})
}

// clocked is a store whose clock a test can set; the others of the suite run
// on the database's.
type clocked struct {
	*Store
	clock *atomic.Pointer[func() time.Time]
}

func openClocked(t *testing.T) *clocked {
	clock := new(atomic.Pointer[func() time.Time])
	now := time.Now
	clock.Store(&now)
	return &clocked{openTest(t, Config{Clock: func() time.Time { return (*clock.Load())() }}), clock}
}

// SetClock implements storetest.Clocked.
func (c *clocked) SetClock(now func() time.Time) { c.clock.Store(&now) }
