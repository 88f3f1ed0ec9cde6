package proof

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestVeto applies a stricter policy after the proposal and after the approval: it can only forbid,
// at decide and at dispatch.
func TestVeto(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 16, "")
	ana := w.admin.create(t, "ana", "person", "approver")
	undecided := w.agent.propose(t, price(w.sku(), "12.50"))
	untouched := w.agent.propose(t, contact("untouched", "update", "new"))
	resting := w.agent.propose(t, price(w.sku(), "12.50", object{"action_type": "rested"}))
	must(t, ana.decide(resting, "approved"), 200, "decided")

	strict := strings.Replace(rules, "rules:\n",
		"rules:\n  - {id: frozen, when: 'action.connector == \"shop\"', then: deny, reason: the shop is frozen}\n", 1)
	applied := w.admin.post("/policies", object{"source": strict})
	if applied.status != 201 {
		t.Fatal(applied)
	}
	must(t, ana.decide(undecided, "approved"), 409, "authority_revoked")
	must(t, ana.short(undecided, "approve"), 409, "authority_revoked")
	if res := bulk(ana, undecided, "approved"); res.word() != "authority_revoked" {
		t.Errorf("bulk: %s", res)
	}
	if got := w.admin.action(t, undecided.ID); len(got.Approval.Votes) != 0 || got.Policy.Version != 1 {
		t.Errorf("%d votes, policy %d", len(got.Approval.Votes), got.Policy.Version)
	}
	end := w.admin.finished(t, resting.ID)
	if end.Status != gatehouse.StatusFailed || end.Failure.Code != "authority_revoked" || w.effects(t, resting) != 0 {
		t.Fatalf("the resting one is %s: %+v", end.Status, end.Failure)
	}
	must(t, ana.decide(untouched, "approved"), 200, "decided")
	w.oneEffect(t, untouched)

	var out gatehouse.ReplayAnswer
	w.admin.post("/dead-letters/replay", object{"all": true}).decode(t, &out)
	if len(out.Results) != 1 || out.Results[0].Skipped != "authority_revoked" {
		t.Errorf("replayed against the policy: %+v", out)
	}
	if res := w.admin.post("/policies/1/activate", nil); res.status != 200 {
		t.Fatal(res)
	}
	w.admin.post("/dead-letters/replay", object{"all": true}).decode(t, &out)
	if out.Replayed != 1 {
		t.Errorf("not replayed: %+v", out)
	}
	w.oneEffect(t, resting)
	must(t, ana.decide(undecided, "approved"), 200, "decided")
	w.oneEffect(t, undecided)

	// A looser policy changes nothing for actions judged before.
	loose := strings.Replace(rules, "rules:\n",
		"rules:\n  - {id: open, when: 'risk <= 3', then: allow, reason: all is well}\n", 1)
	waiting := w.agent.propose(t, price(w.sku(), "12.50"))
	if res := w.admin.post("/policies", object{"source": loose}); res.status != 201 {
		t.Fatal(res)
	}
	if got := w.admin.action(t, waiting.ID); got.Status != gatehouse.StatusPending {
		t.Errorf("it is %s", got.Status)
	}
	if got := w.agent.propose(t, price(w.sku(), "12.50")); got.Status != gatehouse.StatusPending ||
		got.Policy.Outcome != gatehouse.OutcomeNeedsApproval {
		t.Errorf("an L3 without a person: %s", got.Status)
	}
	w.check(t, newJournal())
}
