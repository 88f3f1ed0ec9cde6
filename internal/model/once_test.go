package model

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// budgeted is a store that accepts a number of writing transactions and then fails
// all others, as if the process had died.
type budgeted struct {
	gatehouse.Store
	left *atomic.Int64
}

var errSpent = errors.New("the process is dead")

func (b budgeted) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if b.left.Add(-1) < 0 {
		return errSpent
	}
	return b.Store.Update(ctx, tenant, fn)
}

func (b budgeted) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	if b.left.Add(-1) < 0 {
		return errSpent
	}
	return b.Store.UpdateQueues(ctx, fn)
}

// TestOneTransaction: each use case is one transaction. A process that dies
// after it loses nothing, and nothing is half done.
func TestOneTransaction(t *testing.T) {
	t.Parallel()
	for name, open := range engines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var left atomic.Int64
			left.Store(1 << 40)
			c := &clock{at: epoch}
			s := newSide(t, newGround(t, name, func(t testing.TB, now func() time.Time, n int) []gatehouse.Store {
				stores := open(t, now, n)
				for i := range stores {
					stores[i] = budgeted{stores[i], &left}
				}
				return stores
			}, c.now), "once")
			once := func(what, want string, do func() string) {
				t.Helper()
				c.advance(time.Second)
				left.Store(1)
				got := do()
				left.Store(1 << 40)
				if got != want {
					t.Fatalf("%s: %q, want %q", what, got, want)
				}
				s.checkInvariants()
			}
			p := proposal{kind: price, connector: "mute", operation: "a", entity: "x", by: "bot", amount: 1}
			noted := p
			noted.kind = note
			ballot := ballot{by: "ana", approve: true, digest: "right", stepUp: true}
			no := ballot
			no.approve = false
			once("allow", "proposed approved", func() string { return s.propose(noted) })
			for range 4 {
				once("ask", "proposed pending", func() string { return s.propose(p) })
			}
			once("approve", "decided 1/1", func() string { return s.decide(1, ballot) })
			once("reject", "decided 0/1", func() string { return s.decide(2, no) })
			once("cancel", "canceled", func() string { return s.cancel(3, "bot", false) })
			once("revise", "proposed pending", func() string { return s.revise(4, p) })
			once("cancel within the hold", "canceled", func() string { return s.cancel(1, "ben", true) })
			once("approve shortly", "approved", func() string { b := ballot; b.short = true; return s.decide(5, b) })
			c.advance(time.Hour)
			for range 2 {
				if out := s.dispatch(fine, ""); out == "nothing due" {
					t.Fatal(out)
				}
			}
			once("reverse", "proposed pending", func() string { return s.reverse(5, "bot") })
		})
	}
}
