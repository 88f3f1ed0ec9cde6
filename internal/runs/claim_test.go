package runs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// unstored is a store that fails to store the first lease of a step.
type unstored struct {
	gatehouse.Store
	lost *atomic.Int64
}

type claiming struct {
	gatehouse.Queues
	taken *int
}

func (c claiming) ClaimSteps(
	owner string, lease time.Duration, shares ...gatehouse.StepShare,
) ([]*gatehouse.Step, error) {
	steps, err := c.Queues.ClaimSteps(owner, lease, shares...)
	*c.taken = len(steps)
	return steps, err
}

func (u unstored) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	lose := false // also when the store reruns the closure
	return u.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		taken := 0
		if err := fn(claiming{q, &taken}); err != nil {
			return err
		}
		if taken > 0 && (lose || u.lost.CompareAndSwap(0, 1)) {
			lose = true
			return errors.New("the disk is full")
		}
		return nil
	})
}

// TestLeaseThatIsNotStored: neither the runtime nor an external worker executes
// a step under such a lease.
func TestLeaseThatIsNotStored(t *testing.T) {
	onEngines(t, func(t *testing.T, store gatehouse.Store) {
		lost := &atomic.Int64{}
		w := newWorld(t, unstored{store, lost})
		w.apply("ask", "name: ask\nsteps:\n"+
			"  - {id: one, uses: model.acme, with: {model: small, messages: [{role: user, content: hello}]}}\n")
		w.status(w.start("ask", `{}`).ID, gatehouse.RunSucceeded)
		if w.models.asked != 1 || lost.Load() != 1 {
			t.Errorf("the model was asked %d times, and %d leases were lost", w.models.asked, lost.Load())
		}
		lost.Store(0)
		w.apply("page", "name: page\nsteps:\n  - {id: one, uses: worker.page}\n")
		w.start("page", `{}`)
		g := gate.New(unstored{store, lost}, nil, w.hub, gate.Config{}, nil)
		leased, err := runs.New(g, runs.Config{}).LeaseSteps(w.as("bot"),
			gatehouse.LeaseRequest{Tools: []string{"page"}})
		if len(leased) > 0 || err == nil {
			t.Errorf("leased %v, %v", leased, err)
		}
	})
}
