package dispatch

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestRemovedConnector: the breaker of a connector, and the time of its last call, go with it. A new connector of the
// same name starts without them, and a call that ends after the removal brings none back.
func TestRemovedConnector(t *testing.T) {
	t.Parallel()
	o := &outage{ledger: newLedger(connector.ClassA), failure: down()}
	b := newBench(t, o)
	var moves []string
	d := b.atClock(breakerConfig(), func(d *Dependencies) {
		d.BreakerChanged = func(name, state string) { moves = append(moves, name+" "+state) }
		d.BreakerRemoved = func(name string) { moves = append(moves, name+" removed") }
	})
	actions := make([]*gatehouse.Action, 6)
	for i := range actions {
		actions[i] = b.approve()
	}
	b.drain(d)
	if !slices.Equal(moves, []string{"shop open"}) || b.targets.LastUsed("shop").IsZero() {
		t.Fatalf("%v, last used at %s", moves, b.targets.LastUsed("shop"))
	}

	b.targets.Replace(nil, []string{"shop"}, nil)
	if !slices.Equal(moves, []string{"shop open", "shop removed"}) || len(d.Breakers("default")) != 0 ||
		!b.targets.LastUsed("shop").IsZero() {
		t.Errorf("after the removal: %v, %+v, last used at %s", moves, d.Breakers("default"),
			b.targets.LastUsed("shop"))
	}
	for range breakerConfig().Breaker.Failures { // calls that began before the removal
		d.breakers.ended("default", "shop", false, signIll, down())
	}
	if failure := b.targets.beginCall("default", "shop"); failure != nil || !b.targets.LastUsed("shop").IsZero() {
		t.Errorf("%v, a removed connector was used at %s", failure, b.targets.LastUsed("shop"))
	}

	b.targets.Replace([]Target{{Name: "shop", Connector: o}}, nil, nil)
	o.say(nil)
	b.settle(d)
	for _, a := range actions {
		assertSettled(t, b.state(a))
		if _, effects := o.count(a.IdempotencyKey); effects != 1 {
			t.Errorf("%s: %d effects", a.ID, effects)
		}
	}
	if !slices.Equal(moves, []string{"shop open", "shop removed"}) {
		t.Errorf("the new connector: %v", moves)
	}
}

// TestRemovedWhileMoving: a breaker whose connector is removed between its change of state and the report of that
// change leaves no state behind.
func TestRemovedWhileMoving(t *testing.T) {
	t.Parallel()
	var b *breakers
	configured, removed := true, 0
	b = newBreakers(Breaker{Failures: 1}, newClock().now, func(string) bool { return configured },
		func(string, string) { configured = false }, func(string) { removed++ })
	b.ended("default", "shop", false, signIll, down())
	if removed != 1 || len(b.states("default")) != 0 {
		t.Errorf("removed %d times, %+v", removed, b.states("default"))
	}
}
