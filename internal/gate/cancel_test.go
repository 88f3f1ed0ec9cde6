package gate_test

import (
	"context"
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

// TestCancelAfterAHeldRejection: a cancel cannot replace a rejection, not even before its hold ends; if a run or
// a workflow does not wait any more, the rejection takes effect.
func TestCancelAfterAHeldRejection(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	a := w.propose(bot, nil)
	w.mustDecide(ana, a, holdRejection(a))
	for name, who := range map[string]context.Context{"its proposer": bot, "an approver": ben} {
		if _, err := w.gate.Cancel(who, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided {
			t.Errorf("%s cancels: %v", name, err)
		}
	}
	must(t, w.gate.CancelForRun(t.Context(), a.Tenant, a.ID))
	b := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "abandoned" })
	w.mustDecide(ana, b, holdRejection(b))
	must(t, w.gate.WithdrawGone(t.Context(), b.Tenant, b.ID, "the workflow is gone"))
	for _, id := range []string{a.ID, b.ID} {
		if got := w.find(id); got.Status != gatehouse.StatusRejected || got.DecidedBy != "ana" || got.CanceledBy != "" {
			t.Errorf("%s by %q, canceled by %q", got.Status, got.DecidedBy, got.CanceledBy)
		}
	}
}
