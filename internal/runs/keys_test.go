package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// keyed has a step with an idempotency key of its own.
const keyed = `name: keyed
steps:
  - id: set
    uses: connector.shop.update
    action_type: price_change
    risk: med
    idempotency_key: "${{ input.key }}"
    with: {target: {entity_type: item, entity_ref: X}, change: {price: "2"}}
`

// proposeKeyed proposes a change of the item X under a key, without a run.
func (w *world) proposeKeyed(key string, change gatehouse.JSON) *gatehouse.Action {
	return w.proposeAs("price_change", gatehouse.L3, key, change)
}

func (w *world) proposeAs(
	actionType string, level gatehouse.RiskLevel, key string, change gatehouse.JSON,
) *gatehouse.Action {
	w.Helper()
	a, _, err := w.gate.Propose(w.as("bot"), &gatehouse.Proposal{
		ActionType: actionType, Connector: "shop", Operation: "update", IdempotencyKey: key, RiskLevel: level,
		Target: gatehouse.Target{EntityType: "item", EntityRef: "X"}, ProposedChange: change,
	})
	w.must(err)
	return a
}

// TestKeyOfARefusedAction: an action that ended without an effect does not keep its key. A retry and a later
// run ask people again, and the change is made once.
func TestKeyOfARefusedAction(t *testing.T) { onBoth(t, testKeyOfARefusedAction) }

func testKeyOfARefusedAction(t *testing.T, w *world) {
	w.apply("keyed", keyed)
	for name, key := range map[string]string{"short": "k", "long": strings.Repeat("k", 255)} {
		input := gatehouse.ObjectJSON(gatehouse.Member{Name: "key", Value: gatehouse.StringJSON(key)})
		waiting := func(id string) (*gatehouse.Run, *gatehouse.Action) {
			run := w.status(id, gatehouse.RunWaitingApproval)
			return run, w.action(run, "set")
		}
		run, canceled := waiting(w.start("keyed", input).ID)
		_, err := w.runs.CancelRun(w.as("admin"), run.ID, "not now")
		w.must(err)
		w.status(run.ID, gatehouse.RunCanceled)

		retry, err := w.runs.RetryRun(w.as("admin"), run.ID)
		w.must(err)
		retry, rejected := waiting(retry.ID)
		w.must(w.decide(rejected, "ana", gatehouse.Reject))
		w.status(retry.ID, gatehouse.RunFailed)

		w.ledger.mu.Lock()
		w.ledger.fail["X"] = []*connector.Error{{Kind: connector.Terminal, Code: "refused"}}
		w.ledger.mu.Unlock()
		later, failed := waiting(w.start("keyed", input).ID)
		w.must(w.decide(failed, "ana", gatehouse.Approve))
		w.status(later.ID, gatehouse.RunFailed)
		w.discardFailed()

		before := w.ledger.effects("X")
		first, open := waiting(w.start("keyed", input).ID)
		second, same := waiting(w.start("keyed", input).ID)
		if open.ID != same.ID {
			t.Errorf("%s: two open actions under one key: %s and %s", name, open.ID, same.ID)
		}
		ids := []string{canceled.ID, rejected.ID, failed.ID, open.ID}
		if slices.Sort(ids); len(slices.Compact(ids)) != 4 {
			t.Errorf("%s: actions %q", name, ids)
		}
		w.must(w.decide(open, "ana", gatehouse.Approve))
		w.status(first.ID, gatehouse.RunSucceeded)
		w.status(second.ID, gatehouse.RunSucceeded)
		w.status(w.start("keyed", input).ID, gatehouse.RunSucceeded)
		if n := w.ledger.effects("X") - before; n != 1 {
			t.Errorf("%s: %d effects", name, n)
		}
	}
}

// TestWithdrawnActionKeepsNoKey: an agent that proposes another change under a step's key, and withdraws it,
// does not keep runs from asking.
func TestWithdrawnActionKeepsNoKey(t *testing.T) { onBoth(t, testWithdrawnActionKeepsNoKey) }

func testWithdrawnActionKeepsNoKey(t *testing.T, w *world) {
	w.apply("keyed", keyed)
	for _, key := range []string{"k", "k~2"} {
		a := w.proposeKeyed(key, `{"price":"3"}`)
		_, err := w.gate.Cancel(w.as("bot"), a.ID)
		w.must(err)
	}
	run := w.status(w.start("keyed", `{"key":"k"}`).ID, gatehouse.RunWaitingApproval)
	if a := w.action(run, "set"); a.IdempotencyKey != "k~3" || a.ProposedChange != `{"price":"2"}` {
		t.Errorf("the action has the key %s and the change %s", a.IdempotencyKey, a.ProposedChange)
	}
}

// TestManyWithdrawnActions: a step tries a bounded number of keys, then it fails.
func TestManyWithdrawnActions(t *testing.T) { onBoth(t, testManyWithdrawnActions) }

func testManyWithdrawnActions(t *testing.T, w *world) {
	w.apply("keyed", keyed)
	for n := range 100 {
		key := "k"
		if n > 0 {
			key = fmt.Sprintf("k~%d", n+1)
		}
		_, err := w.gate.Cancel(w.as("bot"), w.proposeKeyed(key, `{"price":"3"}`).ID)
		w.must(err)
	}
	run := w.ended(w.start("keyed", `{"key":"k"}`).ID)
	if run.Status != gatehouse.RunFailed || run.Failure.Code != string(gatehouse.CodeDuplicateKey) {
		t.Errorf("%s", describe(run))
	}
}

// TestAdoptionIsNoWrite: a run that has reached its limit of changes still takes an action that exists already.
func TestAdoptionIsNoWrite(t *testing.T) { onBoth(t, testAdoptionIsNoWrite) }

func testAdoptionIsNoWrite(t *testing.T, w *world) {
	w.apply("keyed", keyed)
	first := w.status(w.start("keyed", `{"key":"k"}`).ID, gatehouse.RunWaitingApproval)
	w.apply("limited", `name: limited
limits: {max_writes_per_run: 1}
steps:
  - id: write
    uses: connector.shop.update
    action_type: price_change
    risk: med
    with: {target: {entity_type: item, entity_ref: Y}, change: {price: "2"}}
  - id: set
    needs: [write]
    uses: connector.shop.update
    action_type: price_change
    risk: med
    idempotency_key: "${{ input.key }}"
    with: {target: {entity_type: item, entity_ref: X}, change: {price: "2"}}
    retry: {max: 0}
`)
	run := w.status(w.start("limited", `{"key":"k"}`).ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(w.action(run, "write"), "ana", gatehouse.Approve))
	run = w.until(run.ID, "waiting for the other action, or final", func(r *gatehouse.Run) bool {
		return r.Status.Final() || r.StepOf("set").ActionID != ""
	})
	if got := run.StepOf("set").ActionID; got != first.StepOf("set").ActionID || run.Writes != 1 {
		t.Fatalf("%d writes: %s", run.Writes, describe(run))
	}
	w.must(w.decide(w.action(run, "set"), "ana", gatehouse.Approve))
	w.status(run.ID, gatehouse.RunSucceeded)
}

// crashing is a store that, while on, drops each Update before its commit, as if the server were killed.
type crashing struct {
	gatehouse.Store
	on atomic.Bool
}

func (c *crashing) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return c.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		if err := fn(tx); err != nil || !c.on.Load() {
			return err
		}
		return errors.New("killed before the commit")
	})
}

// TestCrashProposesOnce: a step that is executed again, after a crash before or after its commit, proposes
// once under the key that follows the refused action's.
func TestCrashProposesOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, store gatehouse.Store) {
		crash := &crashing{Store: store}
		w := newWorld(t, crash)
		w.apply("keyed", keyed)
		w.stop()
		_, err := w.gate.Cancel(w.as("bot"), w.proposeKeyed("k", `{"price":"2"}`).ID)
		w.must(err)
		run := w.start("keyed", `{"key":"k"}`)
		step := claimed(w, "keyed", 1)[0]

		crash.on.Store(true)
		if err := w.runs.Execute(w.Context(), step, "test"); err == nil {
			t.Fatal("a lost transaction has no error")
		}
		crash.on.Store(false)
		for range 2 {
			w.must(w.runs.Execute(w.Context(), step, "test"))
		}
		a := w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "set")
		page, err := w.gate.ListActions(w.as("admin"), gatehouse.ActionFilter{})
		w.must(err)
		if a.IdempotencyKey != "k~2" || len(page.Items) != 2 {
			t.Errorf("the action has the key %s, and there are %d actions", a.IdempotencyKey, len(page.Items))
		}
	})
}

// TestWeakerActionIsNotAdopted: a step does not take over another proposer's action that has another type or a
// lower level, that fewer people decide, or that a contributor to the run may decide. It takes over an applied action
// that no contributor has approved.
func TestWeakerActionIsNotAdopted(t *testing.T) { onBoth(t, testWeakerActionIsNotAdopted) }

func testWeakerActionIsNotAdopted(t *testing.T, w *world) {
	w.person("olga", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	w.apply("keyed", keyed)
	for name, with := range map[string]string{"two": "two_person: true", "high": "risk: high"} {
		w.apply(name, strings.Replace(strings.Replace(keyed, "name: keyed", "name: "+name, 1), "risk: med", with, 1))
	}
	applied := func(key, by string) {
		a := w.proposeKeyed(key, `{"price":"2"}`)
		w.must(w.decide(a, by, gatehouse.Approve))
		w.settled(a, gatehouse.StatusApplied)
	}
	w.proposeKeyed("open", `{"price":"2"}`)
	w.proposeAs("odd_change", gatehouse.L3, "odd", `{"price":"2"}`)
	applied("by ana", "ana")
	applied("by olga", "olga")
	_, err := w.gate.ApplyPolicy(w.as("admin"), `version: 1
risk: {price_change: 2}
rules: [{id: ask, when: 'risk == 2', then: needs_approval}]
`)
	w.must(err)
	w.proposeAs("price_change", gatehouse.L2, "low", `{"price":"2"}`)
	for _, c := range []struct{ workflow, key, why string }{
		{"two", "open", "2 must approve, but the action needed only 1"},
		{"two", "by ana", "2 must approve, but the action needed only 1"},
		{"high", "open", "at L4 approvers retype the value"},
		{"high", "by ana", "at L4 approvers retype the value"},
		{"keyed", "odd", `its type is "odd_change"`},
		{"keyed", "low", "its level is L2, and not L3"},
		{"keyed", "open", "a contributor to the run may decide it"},
		{"keyed", "by olga", "a contributor to the run may decide it"},
		{"keyed", "by ana", ""},
	} {
		run, _, err := w.runs.StartRun(w.as("olga"), c.workflow,
			gatehouse.NewRun{Input: gatehouse.JSON(`{"key":"` + c.key + `"}`)})
		w.must(err)
		run = w.ended(run.ID)
		if c.why == "" && run.Status == gatehouse.RunSucceeded {
			continue
		}
		if f := run.Failure; c.why == "" || f == nil || f.Code != "duplicate_key" || !strings.Contains(f.Detail, c.why) {
			t.Errorf("%s of an action %s: %s", c.workflow, c.key, describe(run))
		}
	}
}

// TestStepWaitsForItsOwnRun: a step whose key is held by a step that waits for this run fails.
func TestStepWaitsForItsOwnRun(t *testing.T) { onBoth(t, testStepWaitsForItsOwnRun) }

func testStepWaitsForItsOwnRun(t *testing.T, w *world) {
	w.apply("loop", `name: loop
steps:
  - {id: again, uses: workflow.loop, idempotency_key: "${{ input.k }}", with: {k: "${{ input.k }}"}}
`)
	run := w.status(w.start("loop", `{"k":"one"}`).ID, gatehouse.RunFailed)
	if !strings.Contains(run.Failure.Detail, "duplicate_key") {
		t.Errorf("%s", describe(run))
	}
}

// TestWorkerProposesUnderAnotherKey: a worker whose proposal fails its step, because the key belongs to another change,
// gets that error, and not the action of the key.
func TestWorkerProposesUnderAnotherKey(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		other := w.proposeKeyed("fix-1", `{"price":"4"}`)
		w.apply("outside", "name: outside\nsteps:\n  - {id: fix, uses: worker.fix, idempotency_key: fix-1}\n")
		run := w.start("outside", `{}`)
		got, err := w.runs.LeaseSteps(w.as("bot"),
			gatehouse.LeaseRequest{Tools: []string{"fix"}, Wait: gatehouse.Duration(30 * time.Second)})
		w.must(err)
		a, err := w.runs.ProposeStep(w.as("bot"), got[0].Step.ID,
			gatehouse.StepProposal{Generation: got[0].Lease.Generation, Action: gatehouse.Proposal{
				ActionType: "price_change", Connector: "shop", Operation: "update",
				Target: gatehouse.Target{EntityType: "item", EntityRef: "X"}, ProposedChange: `{"price":"3"}`,
			}})
		if gatehouse.CodeOf(err) != gatehouse.CodeDuplicateKey || !strings.Contains(fmt.Sprint(err), other.ID) {
			t.Errorf("the worker gets %v, %v", a, err)
		}
		w.status(run.ID, gatehouse.RunFailed)
	})
}

// TestSharedActionIsListedOnce: two steps of a run that wait for the same action list it once.
func TestSharedActionIsListedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("twice", strings.Replace(keyed, "keyed", "twice", 1)+`  - id: again
    uses: connector.shop.update
    needs: []
    action_type: price_change
    risk: med
    idempotency_key: "${{ input.key }}"
    with: {target: {entity_type: item, entity_ref: X}, change: {price: "2"}}
`)
		run := w.status(w.start("twice", `{"key":"k"}`).ID, gatehouse.RunWaitingApproval)
		detail, err := w.runs.RunDetail(w.as("admin"), run.ID)
		w.must(err)
		if len(detail.Actions) != 1 {
			t.Errorf("%d actions are listed, want 1", len(detail.Actions))
		}
	})
}
