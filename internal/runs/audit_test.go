package runs_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// Attacks and accidents around runs.

// terminal makes the next call for an entity fail permanently.
func (w *world) terminal(ref string) {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	w.ledger.fail[ref] = []*connector.Error{{Kind: connector.Terminal, Code: "refused"}}
}

// discardFailed closes the dead letters, so that the same changes can be
// proposed again without a person.
func (w *world) discardFailed() {
	w.Helper()
	page, err := w.gate.ListDeadLetters(w.as("admin"), gatehouse.DeadLetterFilter{})
	w.must(err)
	var ids []string
	for _, d := range page.Items {
		ids = append(ids, d.ID)
	}
	out, err := w.gate.DiscardDeadLetters(w.as("admin"), gatehouse.DiscardRequest{
		DeadLetterSelection: gatehouse.DeadLetterSelection{IDs: ids}, Reason: "the run is retried",
	})
	w.must(err)
	if len(ids) == 0 || out.Results[0].Result != "discarded" {
		w.Fatalf("%d dead letters: %+v", len(ids), out)
	}
}

func (w *world) wantEffects(refs ...string) {
	w.Helper()
	for _, ref := range refs {
		if n := w.ledger.effects(ref); n != 1 {
			w.Errorf("%s: %d effects, want 1", ref, n)
		}
	}
}

// TestRetryOfARetryThatDidNothing: successes from before a fruitless retry are still reused by the
// next retry.
func TestRetryOfARetryThatDidNothing(t *testing.T) { onBoth(t, testRetryOfARetryThatDidNothing) }

func testRetryOfARetryThatDidNothing(t *testing.T, w *world) {
	w.apply("child", `name: child
steps:
  - {id: one, uses: connector.shop.update, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: C1}, change: {n: 1}}}
  - {id: two, uses: connector.shop.update, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: C2}, change: {n: 1}}}
`)
	w.apply("parent", `name: parent
steps:
  - id: each
    needs: []
    uses: connector.shop.update
    for_each: input.items
    max_items: 3
    action_type: note
    risk: low
    with: {target: {entity_type: item, entity_ref: "${{ item }}"}, change: {n: 1}}
  - {id: ask, needs: [], uses: approval, with: {rationale: go on}}
  - {id: sub, needs: [ask], uses: workflow.child}
`)
	w.terminal("C2")
	run := w.start("parent", `{"items":["A","B"]}`)
	run = w.until(run.ID, "asking", func(r *gatehouse.Run) bool {
		return r.StepOf("ask").ActionID != "" && r.StepOf("each[0]") != nil &&
			r.StepOf("each[0]").Status == gatehouse.StepSucceeded &&
			r.StepOf("each[1]").Status == gatehouse.StepSucceeded
	})
	w.must(w.decide(w.action(run, "ask"), "ana", gatehouse.Approve))
	run = w.status(run.ID, gatehouse.RunFailed)
	w.wantEffects("A", "B", "C1")
	second := w.retriedInVain(run)
	w.discardFailed()
	third, err := w.runs.RetryRun(w.as("admin"), second.ID)
	w.must(err)
	w.status(third.ID, gatehouse.RunSucceeded)
	w.wantEffects("A", "B", "C1", "C2")
}

// TestRetryOfASkippedFanOut: after a retry that ended before it fanned out a step's
// items, the next retry still reuses the items that succeeded.
func TestRetryOfASkippedFanOut(t *testing.T) { onBoth(t, testRetryOfASkippedFanOut) }

func testRetryOfASkippedFanOut(t *testing.T, w *world) {
	w.apply("parent", `name: parent
steps:
  - id: each
    uses: connector.shop.update
    for_each: input.items
    max_items: 3
    action_type: note
    risk: low
    with: {target: {entity_type: item, entity_ref: "${{ item }}"}, change: {n: 1}}
`)
	w.terminal("B")
	run := w.status(w.start("parent", `{"items":["A","B"]}`).ID, gatehouse.RunFailed)
	w.discardFailed()
	third, err := w.runs.RetryRun(w.as("admin"), w.retriedInVain(run).ID)
	w.must(err)
	w.status(third.ID, gatehouse.RunSucceeded)
	w.wantEffects("A", "B")
}

// retriedInVain retries a run while no runtime works, and cancels the retry.
func (w *world) retriedInVain(run *gatehouse.Run) *gatehouse.Run {
	w.Helper()
	w.stop()
	second, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	_, err = w.runs.CancelRun(w.as("admin"), second.ID, "not now")
	w.must(err)
	second = w.status(second.ID, gatehouse.RunCanceled)
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		runs.NewRuntime(w.store, w.runs, w.hub, runs.RuntimeConfig{Owner: "again", Poll: 50 * time.Millisecond},
			slog.New(slog.DiscardHandler)).Run(ctx)
	})
	w.Cleanup(func() { stop(); work.Wait() })
	return second
}

// TestRetryAfterAReplayedDeadLetter: a replay applies a change after its run
// has failed; the run's retry does not propose the change again.
func TestRetryAfterAReplayedDeadLetter(t *testing.T) { onBoth(t, testRetryAfterAReplayedDeadLetter) }

func testRetryAfterAReplayedDeadLetter(t *testing.T, w *world) {
	w.apply("triage", triage)
	w.terminal("INC1")
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(w.action(run, "update"), "ana", gatehouse.Approve))
	run = w.status(run.ID, gatehouse.RunFailed)
	_, err := w.gate.ReplayDeadLetters(w.as("admin"), gatehouse.ReplayRequest{All: true})
	w.must(err)
	w.until(run.ID, "applied",
		func(r *gatehouse.Run) bool { return w.action(r, "update").Status == gatehouse.StatusApplied })
	again, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	w.status(again.ID, gatehouse.RunSucceeded)
	w.wantEffects("INC1")
}

// TestATimedOutChildSettlesFirst: a step whose child run timed out does not end
// while a push of the child is in flight, so that no retry repeats the effect.
func TestATimedOutChildSettlesFirst(t *testing.T) { onBoth(t, testATimedOutChildSettlesFirst) }

func testATimedOutChildSettlesFirst(t *testing.T, w *world) {
	w.apply("child", `name: child
steps:
  - {id: set, uses: connector.erp.once, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: E1}, change: {n: 1}}}
`)
	w.apply("parent", "name: parent\nsteps:\n  - {id: sub, uses: workflow.child, timeout: 10s}\n")
	run := w.start("parent", `{}`)
	child := w.until(run.ID, "waiting",
		func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" }).StepOf("sub").ChildRun
	a := w.action(w.until(child, "asking", func(r *gatehouse.Run) bool { return r.StepOf("set").ActionID != "" }), "set")
	if a.Status == gatehouse.StatusPending {
		w.must(w.decide(a, "ana", gatehouse.Approve))
	}
	got, err := w.runs.LeasePushes(w.as("bot"),
		gatehouse.PushLeaseRequest{Connectors: []string{"erp"}, Wait: gatehouse.Duration(30 * time.Second)})
	w.must(err)
	if len(got) != 1 {
		t.Fatalf("%d pushes", len(got))
	}
	w.until(child, "stopping", func(r *gatehouse.Run) bool { return r.Stop == gatehouse.RunCanceled || r.Status.Final() })
	if now := w.until(run.ID, "over its time",
		func(r *gatehouse.Run) bool { s := r.StepOf("sub"); return s.DueAt == nil }); now.Status.Final() {
		t.Errorf("the run ended while its child had sent a change: %s", describe(now))
	}
	_, err = w.runs.CompletePush(w.as("bot"), got[0].Push.ID, gatehouse.PushResult{Generation: got[0].Lease.Generation})
	w.must(err)
	w.ended(run.ID)
}

// TestReservedTriggerRefs: nobody can start a run under a trigger_ref reserved
// for the clock, a retry, a webhook or a step, and so block theirs. A trigger_ref
// has at most 512 bytes.
func TestReservedTriggerRefs(t *testing.T) { onBoth(t, testReservedTriggerRefs) }

func testReservedTriggerRefs(t *testing.T, w *world) {
	w.apply("triage", triage)
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	for _, ref := range []string{"retry:" + run.ID, "schedule:2026-01-01T00:00:00Z", "webhook:1",
		"step:" + run.Steps[0].ID, strings.Repeat("x", 513)} {
		_, _, err := w.runs.StartRun(w.as("bot"), "triage",
			gatehouse.NewRun{Input: `{"id":"EVIL","text":"x"}`, TriggerRef: ref})
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s: %v, want invalid", ref, err)
		}
	}
	_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
	w.must(err)
	w.status(run.ID, gatehouse.RunCanceled)
	again, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	if again.RetryOf != run.ID || again.Input != `{"id":"INC1","text":"x"}` {
		t.Errorf("the retry is another run: of %q with %s", again.RetryOf, again.Input)
	}
}

// TestForgedApproval: an agent cannot propose the question of a run first, under
// the run's idempotency key.
func TestForgedApproval(t *testing.T) { onBoth(t, testForgedApproval) }

func testForgedApproval(t *testing.T, w *world) {
	w.person("cleo", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	w.apply("asks", `name: asks
steps:
  - {id: nap, uses: wait, with: {event: go}}
  - {id: ask, uses: approval, risk: high, two_person: true, with: {rationale: really}}
  - {id: after, uses: transform, with: {}}
`)
	probe := w.start("asks", `{}`)
	_, err := w.runs.SignalRun(w.as("bot"), probe.ID, "go", "")
	w.must(err)
	like := w.action(w.until(probe.ID, "asking", func(r *gatehouse.Run) bool { return r.StepOf("ask").ActionID != "" }),
		"ask")
	run, _, err := w.runs.StartRun(w.as("cleo"), "asks", gatehouse.NewRun{Input: `{}`})
	w.must(err)
	_, _, err = w.gate.Propose(w.as("bot"), &gatehouse.Proposal{
		ActionType: like.ActionType, Connector: like.Connector, Operation: like.Operation, RiskLevel: gatehouse.L3,
		Target: gatehouse.Target{EntityType: "run", EntityRef: run.ID}, ProposedChange: like.ProposedChange,
		IdempotencyKey: run.ID + ":ask",
	})
	if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("only a run can ask a run's questions: %v", err)
	}
}

// TestContributorsOfTheStartingRun: the author of a workflow whose runs start
// another run, and the starter of a retried run, cannot decide either.
func TestContributorsOfTheStartingRun(t *testing.T) { onBoth(t, testContributorsOfTheStartingRun) }

func testContributorsOfTheStartingRun(t *testing.T, w *world) {
	w.person("otto", gatehouse.KindPerson, gatehouse.RoleOperator, gatehouse.RoleApprover)
	w.person("cleo", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	w.apply("triage", triage)
	_, _, err := w.runs.ApplyWorkflow(w.as("otto"), "outer",
		"name: outer\nsteps:\n  - {id: sub, uses: workflow.triage, with: {id: EVIL, text: mine}}\n")
	w.must(err)
	run := w.until(w.start("outer", `{}`).ID, "waiting",
		func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" })
	a := w.action(w.status(run.StepOf("sub").ChildRun, gatehouse.RunWaitingApproval), "update")
	if code := gatehouse.CodeOf(w.decide(a, "otto", gatehouse.Approve)); code != gatehouse.CodeSelfApproval {
		t.Errorf("the author of the run that started it: %q, want self_approval", code)
	}

	run, _, err = w.runs.StartRun(w.as("cleo"), "triage", gatehouse.NewRun{Input: `{"id":"INC2","text":"x"}`})
	w.must(err)
	w.status(run.ID, gatehouse.RunWaitingApproval)
	_, err = w.runs.CancelRun(w.as("admin"), run.ID, "")
	w.must(err)
	w.status(run.ID, gatehouse.RunCanceled)
	again, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	a = w.action(w.status(again.ID, gatehouse.RunWaitingApproval), "update")
	if code := gatehouse.CodeOf(w.decide(a, "cleo", gatehouse.Approve)); code != gatehouse.CodeSelfApproval {
		t.Errorf("the starter of the retried run: %q, want self_approval", code)
	}
}

// TestAKeyIsOfOneChange: a step does not adopt the result of another step with
// the same key if that step made another change or none.
func TestAKeyIsOfOneChange(t *testing.T) { onBoth(t, testAKeyIsOfOneChange) }

func testAKeyIsOfOneChange(t *testing.T, w *world) {
	w.apply("keyed", `name: keyed
steps:
  - id: set
    uses: connector.shop.update
    action_type: note
    risk: low
    idempotency_key: "set:${{ input.key }}"
    with: {target: {entity_type: item, entity_ref: "${{ input.ref }}"}, change: {price: "2"}}
`)
	w.apply("squat", `name: squat
steps:
  - {id: set, uses: worker.squat, idempotency_key: "set:${{ input.key }}"}
`)
	w.status(w.start("keyed", `{"key":"k1","ref":"X"}`).ID, gatehouse.RunSucceeded)
	if run := w.ended(w.start("keyed", `{"key":"k1","ref":"Y"}`).ID); run.Status != gatehouse.RunFailed ||
		run.Failure.Code != string(gatehouse.CodeDuplicateKey) {
		t.Errorf("another change under a known key: %s", describe(run))
	}
	squat := w.start("squat", `{"key":"k2"}`)
	got, err := w.runs.LeaseSteps(w.as("bot"),
		gatehouse.LeaseRequest{Tools: []string{"squat"}, Wait: gatehouse.Duration(30 * time.Second)})
	w.must(err)
	_, err = w.runs.CompleteStep(w.as("bot"), got[0].Step.ID,
		gatehouse.StepResult{Generation: got[0].Lease.Generation, Output: `{"external_id":"forged"}`})
	w.must(err)
	w.status(squat.ID, gatehouse.RunSucceeded)
	if run := w.ended(w.start("keyed", `{"key":"k2","ref":"Z"}`).ID); run.Status != gatehouse.RunFailed ||
		w.ledger.effects("Z") != 0 {
		t.Errorf("a change that a worker reported: %s", describe(run))
	}
}

// TestTwoPersonOverAnAllowance: a step that requires two persons gets them even
// where the policy allows the change.
func TestTwoPersonOverAnAllowance(t *testing.T) { onBoth(t, testTwoPersonOverAnAllowance) }

func testTwoPersonOverAnAllowance(t *testing.T, w *world) {
	w.apply("low", `name: low
steps:
  - {id: set, uses: connector.shop.update, action_type: note, risk: low, two_person: true,
      with: {target: {entity_type: item, entity_ref: L}, change: {n: 1}}}
`)
	run := w.start("low", `{}`)
	run = w.until(run.ID, "proposed", func(r *gatehouse.Run) bool { return r.StepOf("set").ActionID != "" })
	if a := w.action(run, "set"); a.Approval == nil || a.Approval.Required < 2 {
		t.Errorf("the action is %s, its approval %v", a.Status, a.Approval)
	}
}

// TestRetryOfAChildOnItsOwn: the results of an operator's retry of a child run are reused when the
// parent run is retried.
func TestRetryOfAChildOnItsOwn(t *testing.T) { onBoth(t, testRetryOfAChildOnItsOwn) }

func testRetryOfAChildOnItsOwn(t *testing.T, w *world) {
	w.apply("child", `name: child
steps:
  - {id: one, uses: connector.shop.update, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: C1}, change: {n: 1}}}
  - {id: two, uses: connector.shop.update, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: C2}, change: {n: 1}}}
`)
	w.apply("parent", "name: parent\nsteps:\n  - {id: sub, uses: workflow.child}\n")
	w.terminal("C2")
	run := w.status(w.start("parent", `{}`).ID, gatehouse.RunFailed)
	w.discardFailed()
	alone, err := w.runs.RetryRun(w.as("admin"), run.StepOf("sub").ChildRun)
	w.must(err)
	w.status(alone.ID, gatehouse.RunSucceeded)
	again, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	w.status(again.ID, gatehouse.RunSucceeded)
	w.wantEffects("C1", "C2")
}

// TestARevisedQuestionIsStillAsked: a revision of a run's action cannot lower
// the number of persons, and a question cannot be revised into a change.
func TestARevisedQuestionIsStillAsked(t *testing.T) { onBoth(t, testARevisedQuestionIsStillAsked) }

func testARevisedQuestionIsStillAsked(t *testing.T, w *world) {
	w.person("cleo", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	w.apply("asks", `name: asks
steps:
  - {id: ask, uses: approval, risk: high, two_person: true, with: {rationale: really}}
`)
	w.apply("sets", `name: sets
steps:
  - id: set
    uses: connector.shop.update
    action_type: price_change
    risk: med
    two_person: true
    with: {target: {entity_type: item, entity_ref: S}, change: {n: 1}}
`)
	harmless := func(ref string) *gatehouse.Proposal {
		return &gatehouse.Proposal{
			ActionType: "note", Connector: "shop", Operation: "update", RiskLevel: gatehouse.L2,
			Target: gatehouse.Target{EntityType: "item", EntityRef: ref}, ProposedChange: `{"n":1}`,
		}
	}
	for name, step := range map[string]string{"asks": "ask", "sets": "set"} {
		run, _, err := w.runs.StartRun(w.as("cleo"), name, gatehouse.NewRun{Input: `{}`})
		w.must(err)
		old := w.action(w.status(run.ID, gatehouse.RunWaitingApproval), step)
		a, err := w.gate.Revise(w.as("cleo"), old.ID, harmless("S"))
		if name == "asks" {
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("a question was made a change: %v", err)
			}
			continue
		}
		w.must(err)
		if a.Status != gatehouse.StatusPending || a.Approval.Required < old.Approval.Required {
			t.Errorf("the revision is %s, its approval %v", a.Status, a.Approval)
		}
		const why = "people were asked about the change before it was revised"
		if !slices.Contains(a.Policy.Reasons, why) {
			t.Errorf("the reasons of the revision: %q", a.Policy.Reasons)
		}
	}
}
