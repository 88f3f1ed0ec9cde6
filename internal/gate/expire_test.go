package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// unreadable is a store that cannot read some actions in order to change them.
type unreadable struct {
	gatehouse.Store
	ids map[string]bool
}

type unreadableQueues struct {
	gatehouse.Queues
	ids map[string]bool
}

type unreadableTx struct {
	gatehouse.Tx
	ids map[string]bool
}

var errUnreadable = errors.New("unreadable")

func (s *unreadable) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(unreadableQueues{q, s.ids}) })
}

func (q unreadableQueues) In(tenant string) gatehouse.Tx {
	return unreadableTx{q.Queues.In(tenant), q.ids}
}

func (t unreadableTx) LockAction(id string) (*gatehouse.Action, error) {
	if t.ids[id] {
		return nil, errUnreadable
	}
	return t.Tx.LockAction(id)
}

// TestActionsThatCannotBeSweptBlockNobody: more actions than a batch holds, all of them due first, cannot be
// swept. The action behind them expires, and so does a batch of them once they can be read.
func TestActionsThatCannotBeSweptBlockNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	w.person("ana")
	s := &unreadable{w.store, map[string]bool{}}
	for range 40 {
		s.ids[w.propose(bot, nil).ID] = true
		w.clock.Advance(time.Second)
	}
	good := w.propose(bot, nil)
	w.clock.Advance(31 * day)
	g := gate.New(s, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	for range 2 {
		if _, err := g.Sweep(t.Context()); !errors.Is(err, errUnreadable) {
			t.Errorf("the sweep says %v", err)
		}
	}
	if got := w.told(good.ID); !slices.Contains(got, "hitl.expired") {
		t.Errorf("of the action behind those that cannot be swept, the sweeper has stored %q", got)
	}
	clear(s.ids)
	w.clock.Advance(time.Minute)
	if n, err := g.SweepExpired(t.Context()); n != 32 || err != nil {
		t.Errorf("%d expired once they could be read, %v", n, err)
	}
}
