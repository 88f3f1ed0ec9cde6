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
	_, _, err := w.gate.Propose(w.agent(), proposal(func(p *gatehouse.Proposal) {
		p.Connector, p.Operation, p.Target = "workflow", "approve", gatehouse.Target{EntityType: "run", EntityRef: "run_1"}
	}))
	var e *gatehouse.Error
	if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || len(e.Violations) != 1 ||
		e.Violations[0].Pointer != "/connector" {
		t.Errorf("a forged question: %v", err)
	}
}
