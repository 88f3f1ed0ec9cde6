package gate_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestCanceledBy: an action says who canceled it: its proposer while it was pending, an approver in its hold.
func TestCanceledBy(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	pending := w.propose(bot, nil)
	_, err := w.gate.Cancel(bot, pending.ID)
	must(t, err)
	held := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "held" })
	w.wantCode("approve", w.code(ana, held, gatehouse.Approve), "")
	answer, err := w.gate.Cancel(ben, held.ID)
	must(t, err)
	w.number()
	got := [3]string{w.find(pending.ID).CanceledBy, answer.Action.CanceledBy, w.find(held.ID).CanceledBy}
	if want := [3]string{"bot", "ben", "ben"}; got != want {
		t.Errorf("canceled by %q, want %q", got, want)
	}
}
