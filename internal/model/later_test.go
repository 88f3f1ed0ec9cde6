package model

import "testing"

// TestNameIsKeptUntilItIsSomebodys: the person on whose behalf a change is
// proposed is excluded by name, in any case, even if the name does not exist
// yet and somebody takes it later.
func TestNameIsKeptUntilItIsSomebodys(t *testing.T) {
	t.Parallel()
	for name, open := range engines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{at: epoch}
			s := newSide(t, newGround(t, name, open, c.now), "later")
			p := proposal{kind: price, connector: "mute", operation: "a", entity: "x", by: "bot", behalf: "Olga", amount: 1}
			if got := s.propose(p); got != "proposed pending" {
				t.Fatal(got)
			}
			s.create(&principal{name: "olga", person: "olga", kind: population()[1].kind, roles: population()[1].roles})
			b := ballot{by: "olga", approve: true, digest: "right", stepUp: true}
			if got := s.decide(0, b); got != "self_approval" {
				t.Errorf("olga: %q, want self_approval", got)
			}
			b.by = "ben"
			if got := s.decide(0, b); got != "decided 1/1" {
				t.Errorf("ben: %q", got)
			}
		})
	}
}
