package gate_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// orderStore records the order in which its transactions lock actions and read the
// clock.
type orderStore struct {
	gatehouse.Store
	asked []string
}

type orderTx struct {
	gatehouse.Tx
	s *orderStore
}

func (s *orderStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return s.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error { return fn(orderTx{tx, s}) })
}

func (t orderTx) OpenProposal(q gatehouse.ProposalQuery) (*gatehouse.OpenedProposal, error) {
	t.s.asked = append(t.s.asked, "lock "+q.Supersedes)
	return t.Tx.OpenProposal(q)
}

func (t orderTx) Now() time.Time {
	t.s.asked = append(t.s.asked, "clock")
	return t.Tx.Now()
}

// TestRevisionLocksBeforeItReadsTheClock: a revision that waited for the action's
// lock beyond the action's expiry finds it expired, as a waiting decision does.
func TestRevisionLocksBeforeItReadsTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	a := w.propose(bot, nil)
	ordered := &orderStore{Store: w.store}
	g := gate.New(ordered, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	if _, err := g.Revise(bot, a.ID,
		proposal(func(p *gatehouse.Proposal) { p.ProposedChange = `{"price":"11.00"}` })); err != nil {
		t.Fatal(err)
	}
	if len(ordered.asked) == 0 || ordered.asked[0] != "lock "+a.ID {
		t.Errorf("the transaction asked for %q; want the lock of the old action first", ordered.asked)
	}
}
