package gate_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestABrokenRuleOnlyLengthensTheHold: the hold of a rule that cannot be evaluated counts only if it is longer than the
// configured hold.
func TestABrokenRuleOnlyLengthensTheHold(t *testing.T) {
	t.Parallel()
	for hold, want := range map[string]time.Duration{"1m": time.Hour, "2h": 2 * time.Hour} {
		w := newWorldWith(t, "version: 1\nrules:\n  - {id: vip, when: change.nope, then: needs_approval, hold: "+hold+"}\n",
			func(c *appConfig) { c.Hold = new(time.Hour) })
		a, _, err := w.gate.Propose(w.agent(), proposal(nil))
		must(t, err)
		if a.HoldFor != gatehouse.Duration(want) {
			t.Errorf("with %s: held for %s, want %s", hold, a.HoldFor, want)
		}
	}
}

// TestHoldOfAllowedActions: without a configured hold, only what people approve waits, and the explanation says so.
func TestHoldOfAllowedActions(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t,
		"version: 1\nrisk: {note: 2}\nrules: [{id: notes, when: 'action.type == \"note\"', then: allow}]\n",
		func(c *appConfig) { c.Hold = nil })
	bot := w.agent()
	for kind, want := range map[string]time.Duration{"note": 0, "price_change": 10 * time.Second} {
		p := proposal(func(p *gatehouse.Proposal) { p.ActionType = kind })
		said, err := w.gate.ExplainPolicy(w.admin, p)
		must(t, err)
		a, _, err := w.gate.Propose(bot, p)
		must(t, err)
		if said.Hold.D() != want || a.HoldFor.D() != want {
			t.Errorf("%s (%s): explained with %s, held for %s, want %s", kind, a.Status, said.Hold, a.HoldFor, want)
		}
	}
}
