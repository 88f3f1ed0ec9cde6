package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
)

// unstored is a store in which the first lease of a step that is taken is not
// stored after all.
type unstored struct {
	gatehouse.Store
	lost *atomic.Int64
}

type claiming struct {
	gatehouse.Tx
	taken *int
}

func (c claiming) ClaimSteps(owner string, lease time.Duration, shares ...gatehouse.StepShare) ([]*gatehouse.Step, error) {
	steps, err := c.Tx.ClaimSteps(owner, lease, shares...)
	*c.taken = len(steps)
	return steps, err
}

func (u unstored) Update(ctx context.Context, fn func(gatehouse.Tx) error) error {
	lose := false // however often the store runs it
	return u.Store.Update(ctx, func(tx gatehouse.Tx) error {
		taken := 0
		if err := fn(claiming{tx, &taken}); err != nil {
			return err
		}
		if taken > 0 && (lose || u.lost.CompareAndSwap(0, 1)) {
			lose = true
			return errors.New("the disk is full")
		}
		return nil
	})
}

// TestLeaseThatIsNotStored: nothing is carried out under it, neither here nor by
// a worker outside.
func TestLeaseThatIsNotStored(t *testing.T) {
	t.Parallel()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			lost := &atomic.Int64{}
			w := newWorld(t, unstored{store, lost})
			w.apply("ask", "name: ask\nsteps:\n  - {id: one, uses: model.acme, with: {model: small, messages: [{role: user, content: hello}]}}\n")
			w.status(w.start("ask", `{}`).ID, gatehouse.RunSucceeded)
			if w.models.asked != 1 || lost.Load() != 1 {
				t.Errorf("the model was asked %d times, and %d leases were lost", w.models.asked, lost.Load())
			}
			lost.Store(0)
			w.apply("page", "name: page\nsteps:\n  - {id: one, uses: worker.page}\n")
			w.start("page", `{}`)
			gate := app.New(unstored{store, lost}, nil, w.hub, app.Config{}, nil)
			leased, err := app.NewRuns(gate, app.RunsConfig{}).LeaseSteps(w.as("bot"), gatehouse.LeaseRequest{Tools: []string{"page"}})
			if len(leased) > 0 || err == nil {
				t.Errorf("leased %v, %v", leased, err)
			}
		})
	}
}
