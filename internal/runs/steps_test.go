package runs_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

func TestConditionSkipsAndGraphJoins(t *testing.T) { onBoth(t, testConditionSkipsAndGraphJoins) }

func testConditionSkipsAndGraphJoins(t *testing.T, w *world) {
	w.apply("graph", `name: graph
steps:
  - {id: a, uses: transform, with: {n: "${{ input.n }}"}}
  - {id: b, needs: [], uses: transform, with: {m: 2}}
  - {id: big, needs: [a], if: 'steps.a.output.n > 10', uses: transform, with: {big: true}}
  - {id: join, needs: [b, big], uses: transform, with: {n: "${{ steps.a.output.n }}", m: "${{ steps.b.output.m }}"}}
output: "${{ steps.join.output }}"
`)
	run := w.status(w.start("graph", `{"n":9007199254740993.10}`).ID, gatehouse.RunSucceeded)
	if run.StepOf("big").Skipped || run.Output != `{"m":2,"n":9007199254740993.10}` {
		t.Errorf("output %s\n%s", run.Output, describe(run))
	}
	run = w.status(w.start("graph", `{"n":1}`).ID, gatehouse.RunSucceeded)
	if !run.StepOf("big").Skipped || run.Output != `{"m":2,"n":1}` {
		t.Errorf("output %s\n%s", run.Output, describe(run))
	}
}

func TestForEachHasAnActionForEachItem(t *testing.T) { onBoth(t, testForEachHasAnActionForEachItem) }

func testForEachHasAnActionForEachItem(t *testing.T, w *world) {
	w.apply("each", `name: each
steps:
  - id: tag
    uses: connector.shop.update
    for_each: input.items
    max_items: 3
    action_type: note
    risk: low
    with: {target: {entity_type: item, entity_ref: "${{ item }}"}, change: {place: "${{ index }}"}}
output: "${{ steps.tag.output }}"
`)
	run := w.status(w.start("each", `{"items":["A","B","C"]}`).ID, gatehouse.RunSucceeded)
	for _, ref := range []string{"A", "B", "C"} {
		if n := w.ledger.effects(ref); n != 1 {
			t.Errorf("%s: %d effects", ref, n)
		}
	}
	if list, err := run.Output.Elements(); err != nil || len(list) != 3 ||
		!strings.Contains(string(list[2]), `"place":2`) {
		t.Errorf("output %s", run.Output)
	}
	if run.Writes != 3 {
		t.Errorf("%d writes", run.Writes)
	}
	run = w.status(w.start("each", `{"items":[]}`).ID, gatehouse.RunSucceeded)
	if run.Output != "[]" {
		t.Errorf("no items: %s", run.Output)
	}
	run = w.status(w.start("each", `{"items":["A","B","C","D"]}`).ID, gatehouse.RunFailed)
	if run.Failure.Code != "expression" {
		t.Errorf("%s", describe(run))
	}
}

func TestOutputsOfItemsAreBounded(t *testing.T) { onBoth(t, testOutputsOfItemsAreBounded) }

func testOutputsOfItemsAreBounded(t *testing.T, w *world) {
	w.apply("many",
		"name: many\nsteps:\n  - {id: all, uses: transform, for_each: input.items, with: \"${{ input.text }}\"}\n")
	text := strings.Repeat("x", 200_000)
	for n, want := range map[int]gatehouse.RunStatus{20: gatehouse.RunSucceeded, 21: gatehouse.RunFailed} {
		items := strings.TrimSuffix(strings.Repeat("1,", n), ",")
		run := w.status(w.start("many", gatehouse.JSON(`{"items":[`+items+`],"text":"`+text+`"}`)).ID, want)
		if want == gatehouse.RunFailed && (run.Failure.Code != "output_too_large" || run.StepOf("all").Output != "") {
			t.Error(describe(run))
		}
	}
}

func TestWaits(t *testing.T) { onBoth(t, testWaits) }

func testWaits(t *testing.T, w *world) {
	w.apply("waits", `name: waits
steps:
  - {id: nap, uses: wait, with: {for: 20ms}}
  - {id: word, uses: wait, with: {event: go, timeout: 1h}}
output: {word: "${{ steps.word.output.data }}"}
`)
	// The event comes while its step waits, and before that.
	run := w.until(w.start("waits", `{}`).ID, "waiting for the event", func(r *gatehouse.Run) bool {
		return r.StepOf("word").Status == gatehouse.StepWaiting
	})
	if run.Status != gatehouse.RunWaiting {
		t.Errorf("the run is %s", run.Status)
	}
	_, err := w.runs.SignalRun(w.as("bot"), run.ID, "go", `{"n":1}`)
	w.must(err)
	if run = w.status(run.ID, gatehouse.RunSucceeded); run.Output != `{"word":{"n":1}}` {
		t.Errorf("output %s", run.Output)
	}
	early := w.start("waits", `{}`)
	_, err = w.runs.SignalRun(w.as("bot"), early.ID, "go", `"early"`)
	w.must(err)
	if run = w.status(early.ID, gatehouse.RunSucceeded); run.Output != `{"word":"early"}` {
		t.Errorf("output %s", run.Output)
	}
	if _, err := w.runs.SignalRun(w.as("bot"), run.ID, "go", ""); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
		t.Errorf("a signal to a run that has ended: %v", err)
	}
	_, err = w.runs.SignalRun(w.as("bot"), run.ID, "", "")
	_, long := w.runs.CancelRun(w.as("bot"), run.ID, strings.Repeat("x", gatehouse.MaxNotesBytes+1))
	if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || gatehouse.CodeOf(long) != gatehouse.CodeInvalid {
		t.Errorf("a signal without a name: %v; a reason that is too long: %v", err, long)
	}
	w.apply("late", `name: late
steps:
  - {id: word, uses: wait, with: {event: go, timeout: 20ms}}
`)
	if run = w.status(w.start("late", `{}`).ID, gatehouse.RunFailed); run.Failure.Code != "timeout" {
		t.Errorf("%s", describe(run))
	}
}

func TestChildRun(t *testing.T) { onBoth(t, testChildRun) }

func testChildRun(t *testing.T, w *world) {
	w.apply("child", `name: child
steps:
  - {id: ask, uses: approval, action_type: workflow_approval, with: {rationale: "go on?"}}
output: {answer: "${{ input.n }}"}
`)
	w.apply("parent", `name: parent
steps:
  - {id: sub, uses: workflow.child, with: {n: 7}}
output: "${{ steps.sub.output }}"
`)
	parent := w.until(w.start("parent", `{}`).ID, "waiting",
		func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" })
	child := w.status(parent.StepOf("sub").ChildRun, gatehouse.RunWaitingApproval)
	if child.ParentRun != parent.ID || child.Trigger != gatehouse.TriggerRun {
		t.Errorf("the child's parent is %q", child.ParentRun)
	}
	w.must(w.decide(w.action(child, "ask"), "ana", gatehouse.Approve))
	if parent = w.status(parent.ID, gatehouse.RunSucceeded); parent.Output != `{"answer":7}` {
		t.Errorf("output %s", parent.Output)
	}
	// Canceling the parent cancels the child and the action that the child waits for.
	parent = w.until(w.start("parent", `{}`).ID, "waiting",
		func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" })
	child = w.status(parent.StepOf("sub").ChildRun, gatehouse.RunWaitingApproval)
	_, err := w.runs.CancelRun(w.as("admin"), parent.ID, "")
	w.must(err)
	w.status(parent.ID, gatehouse.RunCanceled)
	child = w.status(child.ID, gatehouse.RunCanceled)
	if a := w.action(child, "ask"); a.Status != gatehouse.StatusCanceled {
		t.Errorf("the child's action is %s", a.Status)
	}
}

func TestRunsThatBeginThemselvesEnd(t *testing.T) { onBoth(t, testRunsThatBeginThemselvesEnd) }

func testRunsThatBeginThemselvesEnd(t *testing.T, w *world) {
	w.apply("loop", "name: loop\nsteps:\n  - {id: again, uses: workflow.loop}\n")
	run := w.status(w.start("loop", `{}`).ID, gatehouse.RunFailed)
	if !strings.Contains(run.Failure.Detail, "too_deep") {
		t.Errorf("%s", describe(run))
	}
}

func TestTwoPersonNeedsTwo(t *testing.T) { onBoth(t, testTwoPersonNeedsTwo) }

func testTwoPersonNeedsTwo(t *testing.T, w *world) {
	w.apply("two", `name: two
steps:
  - id: set
    uses: connector.shop.update
    action_type: price_change
    risk: high
    two_person: true
    with: {target: {entity_type: item, entity_ref: X}, change: {price: "2"}}
`)
	run := w.status(w.start("two", `{}`).ID, gatehouse.RunWaitingApproval)
	a := w.action(run, "set")
	if a.Approval.Required != 2 || a.RiskLevel != gatehouse.L4 {
		t.Fatalf("%d must approve at %s", a.Approval.Required, a.RiskLevel)
	}
	w.must(w.decide(a, "ana", gatehouse.Approve))
	if n := w.ledger.effects("X"); n != 0 || w.action(run, "set").Status != gatehouse.StatusPending {
		t.Fatal("one person was enough")
	}
	w.must(w.decide(a, "ben", gatehouse.Approve))
	w.status(run.ID, gatehouse.RunSucceeded)
	if n := w.ledger.effects("X"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// TestKeyDedupesAcrossRuns: a step with the same key and change takes the
// existing receipt as its result.
func TestKeyDedupesAcrossRuns(t *testing.T) { onBoth(t, testKeyDedupesAcrossRuns) }

func testKeyDedupesAcrossRuns(t *testing.T, w *world) {
	w.apply("keyed", `name: keyed
steps:
  - id: set
    uses: connector.shop.update
    action_type: note
    risk: low
    idempotency_key: "set:${{ input.key }}"
    with: {target: {entity_type: item, entity_ref: X}, change: {price: "${{ input.price }}"}}
`)
	for range 3 {
		w.status(w.start("keyed", `{"key":"k1","price":"2"}`).ID, gatehouse.RunSucceeded)
	}
	if n := w.ledger.effects("X"); n != 1 {
		t.Errorf("%d effects under one key", n)
	}
	run := w.ended(w.start("keyed", `{"key":"k1","price":"3"}`).ID)
	if n := w.ledger.effects("X"); n != 1 {
		t.Errorf("%d effects: another change was made under a known key: %s", n, describe(run))
	}
}

// TestLongCalls: a call that outlasts its lease keeps it through heartbeats,
// and the call of a canceled run is ended.
func TestLongCalls(t *testing.T) {
	onBoth(t, testLongCalls, func(c *runs.Config, _ *runs.RuntimeConfig) { c.Lease = 6 * time.Second })
}

func testLongCalls(t *testing.T, w *world) {
	w.apply("ask", "name: ask\nsteps:\n  - {id: ask, uses: model.local, with: {model: small, prompt: hi}, timeout: 5m}\n")
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	w.models.before = func() { <-held }
	asking := func(r *gatehouse.Run) bool { return r.StepOf("ask").Status == gatehouse.StepRunning }
	run := w.until(w.start("ask", `{}`).ID, "asking", asking)
	first := *run.StepOf("ask").LeaseUntil
	w.until(run.ID, "at work past its first lease", func(r *gatehouse.Run) bool {
		return asking(r) && r.StepOf("ask").LeaseUntil.Sub(first) > 6*time.Second
	})
	release()
	run = w.status(run.ID, gatehouse.RunSucceeded)
	if n := run.StepOf("ask").Attempts; n != 1 {
		t.Errorf("%d attempts: the lease was not kept", n)
	}
	w.models.slow = time.Hour
	run = w.until(w.start("ask", `{}`).ID, "asking", asking)
	_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
	w.must(err)
	if run = w.status(run.ID, gatehouse.RunCanceled); run.StepOf("ask").Status != gatehouse.StepCanceled {
		t.Errorf("%s", describe(run))
	}
}

// TestExternalWorker: leases, heartbeats and fencing.
func TestExternalWorker(t *testing.T) { onBoth(t, testExternalWorker) }

func testExternalWorker(t *testing.T, w *world) {
	w.apply("outside", `name: outside
steps:
  - {id: page, uses: worker.page, with: {who: "${{ input.who }}"}, retry: {max: 1, backoff: [10ms]}}
output: "${{ steps.page.output }}"
`)
	run := w.start("outside", `{"who":"ana"}`)
	lease := func(d time.Duration) gatehouse.LeasedStep {
		t.Helper()
		got, err := w.runs.LeaseSteps(w.as("bot"), gatehouse.LeaseRequest{
			Tools: []string{"page"}, Wait: gatehouse.Duration(30 * time.Second), Lease: gatehouse.Span(d), Worker: "w1",
		})
		w.must(err)
		if len(got) != 1 {
			t.Fatalf("leased %d steps", len(got))
		}
		return got[0]
	}
	first := lease(time.Second)
	if first.Step.Input != `{"who":"ana"}` {
		t.Errorf("input %s", first.Step.Input)
	}
	// Its lease ends; the step is ready again, and the first holder is fenced
	// off.
	second := lease(time.Minute)
	if second.Lease.Generation <= first.Lease.Generation {
		t.Fatalf("generation %d after %d", second.Lease.Generation, first.Lease.Generation)
	}
	_, err := w.runs.CompleteStep(w.as("bot"), first.Step.ID,
		gatehouse.StepResult{Generation: first.Lease.Generation, Output: `"stale"`})
	if gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
		t.Fatalf("a stale holder: %v", err)
	}
	state, err := w.runs.HeartbeatStep(w.as("bot"), second.Step.ID,
		gatehouse.Heartbeat{Generation: second.Lease.Generation})
	w.must(err)
	if state.Cancel {
		t.Error("told to stop")
	}
	w.person("other", gatehouse.KindAgent, gatehouse.RoleWorker)
	_, err = w.runs.CompleteStep(w.as("other"), second.Step.ID, gatehouse.StepResult{Generation: second.Lease.Generation})
	if gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Fatalf("another principal's worker: %v", err)
	}
	_, err = w.runs.CompleteStep(w.as("bot"), second.Step.ID,
		gatehouse.StepResult{Generation: second.Lease.Generation, Output: `{"paged":true}`})
	w.must(err)
	if run = w.status(run.ID, gatehouse.RunSucceeded); run.Output != `{"paged":true}` {
		t.Errorf("output %s", run.Output)
	}
}

func TestExternalWorkerProposes(t *testing.T) { onBoth(t, testExternalWorkerProposes) }

func testExternalWorkerProposes(t *testing.T, w *world) {
	w.apply("outside", "name: outside\nsteps:\n  - {id: fix, uses: worker.fix}\n")
	run := w.start("outside", `{}`)
	got, err := w.runs.LeaseSteps(w.as("bot"),
		gatehouse.LeaseRequest{Tools: []string{"fix"}, Wait: gatehouse.Duration(30 * time.Second), Worker: "w1"})
	w.must(err)
	a, err := w.runs.ProposeStep(w.as("bot"), got[0].Step.ID,
		gatehouse.StepProposal{Generation: got[0].Lease.Generation, Action: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target: gatehouse.Target{EntityType: "item", EntityRef: "X"}, ProposedChange: `{"price":"3"}`,
		}})
	w.must(err)
	w.status(run.ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(a, "ben", gatehouse.Approve))
	w.status(run.ID, gatehouse.RunSucceeded)
	if n := w.ledger.effects("X"); n != 1 {
		t.Errorf("%d effects", n)
	}
	w.must(w.store.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		attempts, err := tx.ListAttempts(run.ID)
		if want := w.people["bot"].ID + "/w1"; len(attempts) != 1 || attempts[0].Worker != want {
			t.Errorf("%d attempts, want one by %s", len(attempts), want)
		}
		return err
	}))
}

func TestTriggerRefDedupes(t *testing.T) { onBoth(t, testTriggerRefDedupes) }

func testTriggerRefDedupes(t *testing.T, w *world) {
	w.apply("triage", triage)
	first, _, err := w.runs.StartRun(w.as("bot"), "triage",
		gatehouse.NewRun{Input: `{"id":"1","text":"x"}`, TriggerRef: "r1"})
	w.must(err)
	again, replayed, err := w.runs.StartRun(w.as("bot"), "triage",
		gatehouse.NewRun{Input: `{"id":"2","text":"y"}`, TriggerRef: "r1"})
	w.must(err)
	if !replayed || again.ID != first.ID {
		t.Errorf("the run %s, want %s", again.ID, first.ID)
	}
}

// TestBundle: the evidence is built once, after the run has ended, and does not
// contain the run's input.
func TestBundle(t *testing.T) { onBoth(t, testBundle) }

func testBundle(t *testing.T, w *world) {
	w.apply("triage", triage)
	run := w.status(w.start("triage", `{"id":"INC1","text":"my secret word"}`).ID, gatehouse.RunWaitingApproval)
	if _, err := w.runs.RunBundle(w.as("admin"), run.ID); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
		t.Errorf("evidence of a run that has not ended: %v", err)
	}
	w.must(w.decide(w.action(run, "update"), "ana", gatehouse.Approve))
	w.status(run.ID, gatehouse.RunSucceeded)
	run = w.until(run.ID, "bundled", func(r *gatehouse.Run) bool { return r.Evidence != "" })
	b, err := w.runs.RunBundle(w.as("admin"), run.ID)
	w.must(err)
	if sum := sha256.Sum256(b.Archive); b.SHA256 != run.Evidence || b.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("bundle %s, run %s, archive %x", b.SHA256, run.Evidence, sum)
	}
	archive, err := zip.NewReader(bytes.NewReader(b.Archive), int64(len(b.Archive)))
	w.must(err)
	read := 0
	for _, f := range archive.File {
		r, err := f.Open()
		w.must(err)
		text, err := io.ReadAll(r)
		w.must(err)
		read += len(text)
		if strings.Contains(string(text), "my secret word") {
			t.Errorf("%s has the run's input", f.Name)
		}
	}
	if read == 0 {
		t.Error("the bundle is empty")
	}
}

// TestRetryRepeatsNoEffect: succeeded items of a step, and succeeded steps of a child run, are
// reused.
func TestRetryRepeatsNoEffect(t *testing.T) { onBoth(t, testRetryRepeatsNoEffect) }

func testRetryRepeatsNoEffect(t *testing.T, w *world) {
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
    uses: connector.shop.update
    for_each: input.items
    max_items: 3
    action_type: note
    risk: low
    with: {target: {entity_type: item, entity_ref: "${{ item }}"}, change: {n: 1}}
  - {id: sub, uses: workflow.child}
`)
	terminal := func(ref string) {
		w.ledger.mu.Lock()
		defer w.ledger.mu.Unlock()
		w.ledger.fail[ref] = []*connector.Error{{Kind: connector.Terminal, Code: "refused"}}
	}
	terminal("B")
	run := w.status(w.start("parent", `{"items":["A","B","C"]}`).ID, gatehouse.RunFailed)
	terminal("C2")
	w.discardFailed()
	again, err := w.runs.RetryRun(w.as("admin"), run.ID)
	w.must(err)
	again = w.status(again.ID, gatehouse.RunFailed)
	w.discardFailed()
	last, err := w.runs.RetryRun(w.as("admin"), again.ID)
	w.must(err)
	w.status(last.ID, gatehouse.RunSucceeded)
	for _, ref := range []string{"A", "B", "C", "C1", "C2"} {
		if n := w.ledger.effects(ref); n != 1 {
			t.Errorf("%s: %d effects, want 1", ref, n)
		}
	}
}

// TestReplayedDeadLetter: a run that failed with its change is not revived by a
// replay of the change.
func TestReplayedDeadLetter(t *testing.T) { onBoth(t, testReplayedDeadLetter) }

func testReplayedDeadLetter(t *testing.T, w *world) {
	w.apply("triage", triage)
	w.ledger.fail["INC1"] = []*connector.Error{{Kind: connector.Terminal, Code: "refused"}}
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(w.action(run, "update"), "ana", gatehouse.Approve))
	run = w.status(run.ID, gatehouse.RunFailed)
	if run.Failure.Code != "refused" {
		t.Errorf("%s", describe(run))
	}
	_, err := w.gate.ReplayDeadLetters(w.as("admin"), gatehouse.ReplayRequest{All: true})
	w.must(err)
	w.until(run.ID, "applied",
		func(r *gatehouse.Run) bool { return w.action(r, "update").Status == gatehouse.StatusApplied })
	w.status(run.ID, gatehouse.RunFailed)
}

// TestKeyOfAnotherQuestion: the answer to an approval step counts for another step with its key only if that step asks
// the same, and demands no more of the people who decide.
func TestKeyOfAnotherQuestion(t *testing.T) { onBoth(t, testKeyOfAnotherQuestion) }

func testKeyOfAnotherQuestion(t *testing.T, w *world) {
	ask := func(name, demands string) {
		w.apply(name, "name: "+name+"\nsteps:\n  - {id: ask, uses: approval, "+demands+
			"idempotency_key: \"ship:${{ input.version }}\", with: {title: \"Ship to ${{ input.region }}?\"}}\n")
	}
	ask("ship", "")
	ask("lunch", "")
	first := w.status(w.start("ship", `{"version":"1","region":"staging"}`).ID, gatehouse.RunWaitingApproval)
	w.must(w.decide(w.action(first, "ask"), "ana", gatehouse.Approve))
	w.status(first.ID, gatehouse.RunSucceeded)

	same := w.status(w.start("ship", `{"version":"1","region":"staging"}`).ID, gatehouse.RunSucceeded)
	if got := same.StepOf("ask").ActionID; got != "" {
		t.Errorf("the same question was asked again: %s", got)
	}
	refused := func(workflow string, input gatehouse.JSON) {
		t.Helper()
		run := w.status(w.start(workflow, input).ID, gatehouse.RunFailed)
		if f := run.StepOf("ask").Failure; f == nil || f.Code != string(gatehouse.CodeDuplicateKey) {
			t.Errorf("%s %s: %s", workflow, input, describe(run))
		}
	}
	refused("ship", `{"version":"1","region":"production"}`)
	refused("lunch", `{"version":"1","region":"staging"}`)
	ask("ship", "two_person: true, ")
	refused("ship", `{"version":"1","region":"staging"}`)
	ask("ship", "risk: high, ")
	refused("ship", `{"version":"1","region":"staging"}`)
}

// TestTimeouts: of a child run, and of an external worker that keeps its lease
// longer than the step may take. The time for which a retried step waits for a worker does not count.
func TestTimeouts(t *testing.T) { onBoth(t, testTimeouts) }

func testTimeouts(t *testing.T, w *world) {
	w.apply("child", "name: child\nsteps:\n  - {id: nap, uses: wait, with: {for: 1h}}\n")
	w.apply("parent", "name: parent\nsteps:\n  - {id: sub, uses: workflow.child, timeout: 1s}\n")
	run := w.status(w.start("parent", `{}`).ID, gatehouse.RunFailed)
	if run.Failure.Code != "timeout" {
		t.Errorf("%s", describe(run))
	}
	w.status(run.StepOf("sub").ChildRun, gatehouse.RunCanceled)

	w.apply("outside", "name: outside\nsteps:\n  - {id: page, uses: worker.page, timeout: 2s, retry: {max: 0}}\n")
	run = w.start("outside", `{}`)
	got, err := w.runs.LeaseSteps(w.as("bot"),
		gatehouse.LeaseRequest{Tools: []string{"page"}, Wait: gatehouse.Duration(30 * time.Second)})
	w.must(err)
	if until := time.Until(got[0].Lease.ExpiresAt); until > 2*time.Second {
		t.Errorf("the lease holds for %s", until)
	}
	run = w.status(run.ID, gatehouse.RunFailed)
	if run.Failure.Code != "lease_expired" {
		t.Errorf("%s", describe(run))
	}

	w.apply("again",
		"name: again\nsteps:\n  - {id: page, uses: worker.again, timeout: 1s, retry: {max: 1, backoff: [10ms]}}\n")
	run = w.start("again", `{}`)
	lease := gatehouse.LeaseRequest{Tools: []string{"again"}, Wait: gatehouse.Duration(30 * time.Second)}
	got, err = w.runs.LeaseSteps(w.as("bot"), lease)
	w.must(err)
	_, err = w.runs.FailStep(w.as("bot"), got[0].Step.ID,
		gatehouse.StepFailure{Generation: got[0].Lease.Generation, Code: "busy", Detail: "busy", Retryable: true})
	w.must(err)
	w.until(run.ID, "ready again", func(r *gatehouse.Run) bool { return r.StepOf("page").Status == gatehouse.StepReady })
	time.Sleep(1100 * time.Millisecond) // longer than the timeout
	before := time.Now()
	got, err = w.runs.LeaseSteps(w.as("bot"), lease)
	w.must(err)
	if until := got[0].Lease.ExpiresAt.Sub(before); until < 900*time.Millisecond {
		t.Errorf("the second lease holds for %s", until)
	}
	_, err = w.runs.HeartbeatStep(w.as("bot"), got[0].Step.ID, gatehouse.Heartbeat{Generation: got[0].Lease.Generation})
	w.must(err)
	_, err = w.runs.CompleteStep(w.as("bot"), got[0].Step.ID,
		gatehouse.StepResult{Generation: got[0].Lease.Generation, Output: `1`})
	w.must(err)
	detail, err := w.runs.RunDetail(w.as("admin"), run.ID)
	w.must(err)
	if a := detail.Attempts; len(a) != 2 || a[1].StartedAt.Before(before.Add(-100*time.Millisecond)) {
		t.Errorf("attempts %+v", a)
	}
}
