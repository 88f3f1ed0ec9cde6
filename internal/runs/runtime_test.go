package runs_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

const triage = `name: triage
description: Classify, then reassign
steps:
  - id: classify
    uses: model.local
    with: {model: small, prompt: "Incident: ${{ input.text }}"}
  - id: update
    uses: connector.shop.update
    action_type: price_change
    risk: med
    with:
      target: {entity_type: incident, entity_ref: "${{ input.id }}"}
      change: {group: "${{ steps.classify.output.text }}"}
      rationale: "classified by a model"
  - id: done
    uses: transform
    with: {external: "${{ steps.update.output.external_id }}"}
output: {group: "${{ steps.classify.output.text }}"}
`

// TestRunPausesAtTheGate is the main use: a run is parked while people decide, continues with the
// approved change, and ends with its output, its usage and its action.
func TestRunPausesAtTheGate(t *testing.T) { onBoth(t, testRunPausesAtTheGate) }

func testRunPausesAtTheGate(t *testing.T, w *world) {
	w.apply("triage", triage)
	run := w.status(w.start("triage", `{"id":"INC1","text":"no network"}`).ID, gatehouse.RunWaitingApproval)
	if s := run.StepOf("update"); s.Status != gatehouse.StepWaitingApproval || s.LeaseUntil != nil {
		t.Fatalf("the step is %s with the lease %v", s.Status, s.LeaseUntil)
	}
	if n := w.ledger.effects("INC1"); n != 0 {
		t.Fatalf("%d effects before anybody decided", n)
	}
	a := w.action(run, "update")
	if a.ProposedBy != "workflow:triage" || a.RiskLevel != gatehouse.L3 {
		t.Errorf("proposed by %s at %s", a.ProposedBy, a.RiskLevel)
	}
	w.must(w.decide(a, "ana", gatehouse.Approve))
	run = w.status(run.ID, gatehouse.RunSucceeded)
	if run.Output != `{"group":"network"}` {
		t.Errorf("output %s", run.Output)
	}
	if got := run.StepOf("done").Output; got != `{"external":"ext-INC1"}` {
		t.Errorf("the step after the gate made %s", got)
	}
	if n := w.ledger.effects("INC1"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
	d, err := w.runs.RunDetail(w.as("admin"), run.ID)
	w.must(err)
	if len(d.Usage) != 1 || d.Usage[0].Cost != "0.25" || len(d.Actions) != 1 {
		t.Errorf("usage %v, %d actions", d.Usage, len(d.Actions))
	}
}

// TestContributorsCannotDecide: neither the workflow's author nor the run's starter can.
func TestContributorsCannotDecide(t *testing.T) { onBoth(t, testContributorsCannotDecide) }

func testContributorsCannotDecide(t *testing.T, w *world) {
	w.person("cleo", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	w.apply("triage", triage)
	run, _, err := w.runs.StartRun(w.as("cleo"), "triage", gatehouse.NewRun{Input: `{"id":"INC1","text":"x"}`})
	w.must(err)
	a := w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "update")
	for _, who := range []string{"admin", "cleo"} {
		if code := gatehouse.CodeOf(w.decide(a, who, gatehouse.Approve)); code != gatehouse.CodeSelfApproval {
			t.Errorf("%s: %q, want self_approval", who, code)
		}
	}
	w.must(w.decide(a, "ana", gatehouse.Approve))
	w.status(run.ID, gatehouse.RunSucceeded)
}

func TestRefusalEndsTheRun(t *testing.T) { onBoth(t, testRefusalEndsTheRun) }

func testRefusalEndsTheRun(t *testing.T, w *world) {
	w.apply("triage", triage)
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(w.action(run, "update"), "ana", gatehouse.Reject))
	run = w.status(run.ID, gatehouse.RunFailed)
	if run.Failure == nil || run.Failure.Code != "rejected" || !strings.Contains(run.Failure.Detail, "seen by ana") {
		t.Errorf("failure %+v", run.Failure)
	}
	if s := run.StepOf("done").Status; s != gatehouse.StepCanceled {
		t.Errorf("the step after it is %s", s)
	}
	page, err := w.runs.ListReflexions(w.as("bot"), "triage", "", 10)
	w.must(err)
	if len(page.Items) != 1 || !strings.Contains(page.Items[0].Otherwise, "rejected") {
		t.Errorf("reflexions %+v", page.Items)
	}
}

// TestUnknownKeepsTheStepWaiting until an operator resolves the action.
func TestUnknownKeepsTheStepWaiting(t *testing.T) { onBoth(t, testUnknownKeepsTheStepWaiting) }

func testUnknownKeepsTheStepWaiting(t *testing.T, w *world) {
	w.apply("triage", triage)
	w.ledger.fail["INC1"] = []*connector.Error{
		{Kind: connector.Ambiguous, Code: "timeout"}, {Kind: connector.Ambiguous, Code: "timeout"},
		{Kind: connector.Ambiguous, Code: "timeout"},
	}
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	a := w.action(run, "update")
	w.must(w.decide(a, "ana", gatehouse.Approve))
	w.until(run.ID, "unknown",
		func(*gatehouse.Run) bool { return w.action(run, "update").Status == gatehouse.StatusUnknown })
	w.status(run.ID, gatehouse.RunWaitingApproval)
	_, err := w.gate.ResolvePush(w.as("admin"), w.action(run, "update").Push.ID,
		gatehouse.Resolution{Outcome: "applied", Reason: "seen there"})
	w.must(err)
	w.status(run.ID, gatehouse.RunSucceeded)
}

func TestCancelWithdrawsPendingActions(t *testing.T) { onBoth(t, testCancelWithdrawsPendingActions) }

func testCancelWithdrawsPendingActions(t *testing.T, w *world) {
	w.apply("triage", triage)
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	a := w.action(run, "update")
	_, err := w.runs.CancelRun(w.as("admin"), run.ID, "not needed")
	w.must(err)
	run = w.status(run.ID, gatehouse.RunCanceled)
	if got := w.action(run, "update").Status; got != gatehouse.StatusCanceled {
		t.Errorf("the action is %s", got)
	}
	if code := gatehouse.CodeOf(w.decide(a, "ana", gatehouse.Approve)); code != gatehouse.CodeAlreadyDecided {
		t.Errorf("a late approval: %q", code)
	}
	if _, err := w.runs.CancelRun(w.as("admin"), run.ID, ""); err != nil {
		t.Errorf("canceled twice: %v", err)
	}
}

// TestRetryKeepsSucceededSteps: the model is not called again.
func TestRetryKeepsSucceededSteps(t *testing.T) { onBoth(t, testRetryKeepsSucceededSteps) }

func testRetryKeepsSucceededSteps(t *testing.T, w *world) {
	w.apply("triage", triage)
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(w.action(run, "update"), "ana", gatehouse.Reject))
	w.status(run.ID, gatehouse.RunFailed)
	again, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	again = w.status(again.ID, gatehouse.RunWaitingApproval)
	if again.RetryOf != run.ID || w.models.asked != 1 {
		t.Errorf("retry of %q, asked %d times", again.RetryOf, w.models.asked)
	}
	w.must(w.decide(w.action(again, "update"), "ben", gatehouse.Approve))
	w.status(again.ID, gatehouse.RunSucceeded)
	if n := w.ledger.effects("INC1"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestTransientFailuresAreTriedAgain(t *testing.T) { onBoth(t, testTransientFailuresAreTriedAgain) }

func testTransientFailuresAreTriedAgain(t *testing.T, w *world) {
	w.apply("ask", `name: ask
steps:
  - id: ask
    uses: model.local
    with: {model: small, prompt: hi}
    retry: {max: 2, backoff: [10ms]}
`)
	w.models.failures = []*gatehouse.StepFailure{{Code: "http_503", Retryable: true}, {Code: "http_503", Retryable: true}}
	run := w.status(w.start("ask", `{}`).ID, gatehouse.RunSucceeded)
	if n := run.StepOf("ask").Attempts; n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
	w.models.failures = []*gatehouse.StepFailure{{Code: "http_400"}}
	run = w.status(w.start("ask", `{}`).ID, gatehouse.RunFailed)
	if run.StepOf("ask").Attempts != 1 || run.Failure.Code != "http_400" {
		t.Errorf("%s", describe(run))
	}
}
