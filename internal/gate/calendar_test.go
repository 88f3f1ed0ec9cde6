package gate_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const closesAtSix = `version: 1
levels: {3: Medium write}
rules:
  - id: closed
    when: proposed_at.hour("UTC") >= 18
    then: deny
    reason: closed
`

// TestTheTimeOfTheProposalIsKept: an action is always judged by the time that is
// stored with it, also when it is judged again.
func TestTheTimeOfTheProposalIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, closesAtSix)
	ana, bot := w.person("ana"), w.agent()
	w.clock.Advance(6*time.Hour - time.Second) // 17:59:59
	a := w.propose(bot, nil)
	if a.Status != gatehouse.StatusPending || a.ProposedAt.Hour() != 17 {
		t.Fatalf("%s, proposed at %s (%v)", a.Status, a.ProposedAt, a.Policy.Reasons)
	}
	if stored := w.find(a.ID); !stored.ProposedAt.Equal(a.ProposedAt) || stored.RiskName != "Medium write" {
		t.Errorf("stored: proposed at %s, level %q", stored.ProposedAt, stored.RiskName)
	}
	w.clock.Advance(time.Hour)
	if late := w.propose(bot, nil); late.Status != gatehouse.StatusDenied {
		t.Errorf("an hour later: %s", late.Status)
	}
	// Another version judges the stored action again, by the action's own time.
	if _, err := w.gate.ApplyPolicy(w.admin, closesAtSix+"# again\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Errorf("decided after six: %v", err)
	}
}
