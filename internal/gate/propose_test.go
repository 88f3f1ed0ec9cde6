package gate_test

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestNobodyElseAsksWhetherARunMayGoOn: people would take such a question for the
// run's own.
func TestNobodyElseAsksWhetherARunMayGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	a := w.propose(bot, nil)
	forged := proposal(func(p *gatehouse.Proposal) {
		p.Connector, p.Operation, p.Target = "workflow", "approve", gatehouse.Target{EntityType: "run", EntityRef: "run_1"}
	})
	forgeries := map[string]error{}
	_, _, forgeries["a proposal"] = w.gate.Propose(bot, forged)
	_, forgeries["a revision"] = w.gate.Revise(bot, a.ID, forged)
	for what, err := range forgeries {
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || len(e.Violations) != 1 ||
			e.Violations[0].Pointer != "/connector" {
			t.Errorf("%s with a forged question: %v", what, err)
		}
	}
}
