package runs_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestRetryFromAStep: the step and the steps that need it are executed again, other steps are
// copied, and a change that was already made is not repeated.
func TestRetryFromAStep(t *testing.T) { onBoth(t, testRetryFromAStep) }

func testRetryFromAStep(t *testing.T, w *world) {
	w.apply("parent", `name: parent
steps:
  - {id: one, uses: connector.shop.update, action_type: note, risk: low,
     with: {target: {entity_type: item, entity_ref: A}, change: {n: 1}}}
  - {id: ask, needs: [one], uses: approval, with: {rationale: go on}}
  - id: each
    needs: [ask]
    uses: connector.shop.update
    for_each: input.items
    max_items: 3
    action_type: note
    risk: low
    with: {target: {entity_type: item, entity_ref: "${{ item }}"}, change: {n: 1}}
  - {id: beside, needs: [one], uses: connector.shop.update, action_type: note, risk: low,
     with: {target: {entity_type: item, entity_ref: D}, change: {n: 1}}}
`)
	asked := func(run *gatehouse.Run) *gatehouse.Run {
		run = w.until(run.ID, "asking", func(r *gatehouse.Run) bool { return r.StepOf("ask").ActionID != "" })
		if _, err := w.runs.RetryRunFrom(w.as("admin"), run.ID, "ask"); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
			t.Errorf("a retry of a run that has not ended: %v", err)
		}
		w.must(w.decide(w.action(run, "ask"), "ana", gatehouse.Approve))
		return w.status(run.ID, gatehouse.RunSucceeded)
	}
	first := asked(w.start("parent", `{"items":["B","C"]}`))
	w.wantEffects("A", "B", "C", "D")
	for _, step := range []string{"", "none"} {
		if _, err := w.runs.RetryRunFrom(w.as("admin"), first.ID, step); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("a retry from %q: %v", step, err)
		}
	}
	second, err := w.runs.RetryRunFrom(w.as("admin"), first.ID, "ask")
	w.must(err)
	for step, copied := range map[string]bool{"one": true, "beside": true, "ask": false, "each": false} {
		if got := second.StepOf(step).Status == gatehouse.StepSucceeded; got != copied {
			t.Errorf("%s is copied: %t", step, got)
		}
	}
	// A proposer retries the runs that the proposer has started, and no others.
	w.person("other", gatehouse.KindService, gatehouse.RoleProposer)
	if _, err := w.runs.RetryRunFrom(w.as("other"), first.ID, "ask"); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("a retry of another proposer's run: %v", err)
	}
	again, err := w.runs.RetryRunFrom(w.as("bot"), first.ID, "ask")
	w.must(err)
	if again.ID != second.ID {
		t.Error("the same retry has begun two runs")
	}
	second = asked(second)
	w.wantEffects("A", "B", "C", "D")
	if second.StepOf("ask").ActionID == first.StepOf("ask").ActionID {
		t.Error("nobody was asked again")
	}
	third, err := w.runs.RetryRunFrom(w.as("admin"), second.ID, "each")
	w.must(err)
	if third.StepOf("ask").Status != gatehouse.StepSucceeded || third.StepOf("each").Status == gatehouse.StepSucceeded {
		t.Errorf("the third run begins with %+v", third.Steps)
	}
	w.status(third.ID, gatehouse.RunSucceeded)
	w.wantEffects("A", "B", "C", "D")
}
