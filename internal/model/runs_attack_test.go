package model

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// onRunSides runs a test in a tenant of each engine.
func onRunSides(t *testing.T, test func(t *testing.T, s *runSide, c *clock)) {
	t.Helper()
	c := &clock{at: epoch}
	for _, s := range openRunSides(t, c.now) {
		t.Run(s.name, func(t *testing.T) {
			s.enter(t, "tenant")
			test(t, s, c)
			s.checkLog()
			s.checkInvariants()
		})
	}
}

func (s *runSide) apply(f *flow) {
	s.t.Helper()
	_, _, err := s.runs.ApplyWorkflow(s.as("admin"), f.name, f.source())
	s.must(err)
}

// TestServersOwnRefs: a caller cannot start a run under a trigger reference of the
// server's own runs.
func TestServersOwnRefs(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		s.apply(childFlow())
		id, _ := s.start("child", "")
		s.cancel(0)
		for _, ref := range []string{"retry:" + id, "step:stp_1", "webhook:1", "schedule:2026-11-21T00:00:00Z"} {
			_, _, err := s.runs.StartRun(s.as("bot"), "child", gatehouse.NewRun{Input: `{"mine":true}`, TriggerRef: ref})
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("%s: %v, want invalid", ref, err)
			}
		}
		again, err := s.runs.RetryRun(s.as("admin"), id)
		s.must(err)
		if again.Input != runInput || again.RetryOf != id {
			t.Errorf("the retry has the input %s, and retries %q", again.Input, again.RetryOf)
		}
		s.ids = append(s.ids, again.ID)
	})
}

// TestQueuedRunsBeginNothing: a signal does not let a queued run jump the queue, and
// none of its steps is leased.
func TestQueuedRunsBeginNothing(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		s.apply(&flow{name: "lined", perMinute: 1, steps: []flowStep{{id: "a", does: "make", items: -1}}})
		s.start("lined", "")
		if got := s.signal(0); got != "ok" {
			t.Fatal(got)
		}
		if got := s.claim(); got != nil {
			t.Errorf("leased %v of a run in line", got)
		}
		if r := s.run(0); r.Status != gatehouse.RunQueued || r.Steps[0].Status != gatehouse.StepBlocked {
			t.Errorf("the run is %s, its step %s", r.Status, r.Steps[0].Status)
		}
		s.admitQueued()
		if got := s.claim(); len(got) != 1 {
			t.Errorf("leased %v of an admitted run", got)
		}
	})
}

// TestStaleLeasesChangeNothing: with an old generation or an expired lease, no
// call of a worker changes anything.
func TestStaleLeasesChangeNothing(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, c *clock) {
		s.apply(&flow{name: "paged", steps: []flowStep{{id: "a", does: "page", items: -1, retry: 2}}})
		s.start("paged", "")
		old := s.leaseOutside()[0]
		refused := func(when string) {
			t.Helper()
			before := s.snapshot()
			for verb, got := range map[string]string{
				"complete": s.complete(old), "fail": s.fail(old, true), "beat": s.heartbeat(old), "propose": s.propose(old),
			} {
				if got != "lease_lost" {
					t.Errorf("%s, %s: %q", when, verb, got)
				}
			}
			if d := cmp.Diff(before, s.snapshot()); d != "" {
				t.Errorf("%s: %s", when, d)
			}
		}
		c.advance(stepLease)
		refused("its lease is over")
		s.wakeAll()
		refused("it waits for another attempt")
		c.advance(48 * time.Second)
		s.wakeAll()
		now := s.leaseOutside()
		if len(now) != 1 {
			t.Fatalf("leased %v", now)
		}
		refused("another has it")
		if got := s.complete(now[0]); got != "ok" {
			t.Fatal(got)
		}
		refused("another has done it")
	})
}

// TestLostLeases: a built-in step is ready at once after its first lost lease,
// after a growing delay when it loses more, and fails after ten, because it may
// be killing its servers. Each lease leaves its attempt.
func TestLostLeases(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, c *clock) {
		s.apply(&flow{name: "poison",
			steps: []flowStep{{id: "a", does: "make", items: -1}, {id: "b", does: "nap", items: -1}}})
		s.start("poison", "")
		both := func(what string, want gatehouse.StepStatus) {
			t.Helper()
			for _, step := range s.run(0).Steps {
				if step.Status != want {
					t.Fatalf("%s, %s is %s, want %s", what, step.Key, step.Status, want)
				}
			}
		}
		wake := func() { // once: a step that is ready at once needs no other round
			_, err := s.runs.Wake(t.Context())
			s.must(err)
		}
		var want []string
		for n := 1; n <= leasesLost; n++ {
			if got := s.claim(); len(got) != 2 {
				t.Fatalf("lease %d: leased %v", n, got)
			}
			c.advance(stepLease)
			wake()
			outcome := gatehouse.StepRetrying
			switch n {
			case 1:
				both("after the first lease", gatehouse.StepReady)
			case leasesLost:
				outcome = gatehouse.StepFailed
			default:
				shortest := time.Duration(n-1) * time.Second / 2
				c.advance(shortest - time.Millisecond)
				wake()
				both(fmt.Sprintf("before lease %d", n+1), gatehouse.StepRetrying)
				c.advance(2*shortest + time.Millisecond)
				wake()
				both(fmt.Sprintf("before lease %d", n+1), gatehouse.StepReady)
			}
			want = append(want, fmt.Sprintf("%d %d %s lease_expired", n, n, outcome))
		}
		if r := s.run(0); r.Status != gatehouse.RunFailed || r.Failure.Code != "lease_expired" {
			t.Errorf("the run is %s: %+v", r.Status, r.Failure)
		}
		got := map[string][]string{}
		s.must(s.store.View(t.Context(), s.tenant, func(tx gatehouse.ReadTx) error {
			attempts, err := tx.ListAttempts(s.ids[0])
			for _, a := range attempts {
				got[a.StepID] = append(got[a.StepID], fmt.Sprintf("%d %d %s %s", a.Attempt, a.Generation, a.Outcome, a.Code))
			}
			return err
		}))
		steps := s.run(0).Steps
		if d := cmp.Diff(want, got[steps[0].ID]); d != "" {
			t.Errorf("the attempts of %s: %s", steps[0].Key, d)
		}
		// Its sibling had lost as many leases when the run was stopped.
		want[leasesLost-1] = fmt.Sprintf("%d %d %s lease_expired", leasesLost, leasesLost, gatehouse.StepCanceled)
		if d := cmp.Diff(want, got[steps[1].ID]); d != "" {
			t.Errorf("the attempts of %s: %s", steps[1].Key, d)
		}
	})
}

// TestEachLeaseLeavesItsAttempt: even a lease with nothing to do, or nothing
// left to do, for the server and for an external worker.
func TestEachLeaseLeavesItsAttempt(t *testing.T) {
	t.Parallel()
	steps := []flowStep{
		{id: "skipped", does: "make", never: true, items: -1}, {id: "none", does: "make"},
		{id: "each", does: "make", items: 2},
		{id: "nap", does: "nap", items: -1}, {id: "ask", does: "ask", items: -1}, {id: "sub", does: "sub", items: -1},
		{id: "unpaged", does: "page", never: true, items: -1}, {id: "pages", does: "page", items: 1},
		{id: "page", does: "page", items: -1},
	}
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		s.apply(childFlow())
		s.apply(&flow{name: "wide", steps: steps})
		play := func(meanwhile func()) map[string][]string {
			run := len(s.ids)
			s.start("wide", "")
			mine, page := s.claim(), ""
			for _, name := range s.leaseOutside() {
				if strings.Contains(name, "/page/") {
					page = name
				}
			}
			meanwhile()
			for _, name := range mine {
				s.carry(name, 0)
			}
			s.propose(page)
			return s.attempts(run)
		}
		waits := []string{"waiting"}
		want := map[string][]string{
			"skipped": {"succeeded"}, "none": {"succeeded"}, "each": waits, "nap": waits, "ask": {"waiting_approval"},
			"sub":     waits,
			"unpaged": {"succeeded"}, "pages": waits, "page": {"waiting_approval"},
		}
		if d := cmp.Diff(want, play(func() {})); d != "" {
			t.Errorf("other attempts (+) than wanted (-):\n%s", d)
		}
		for _, key := range []string{"each", "nap", "ask", "sub", "page"} {
			want[key] = []string{"canceled"}
		}
		stop := func() { s.cancel(len(s.ids) - 1) }
		if d := cmp.Diff(want, play(stop)); d != "" {
			t.Errorf("other attempts (+) of a run that stops than wanted (-):\n%s", d)
		}
	})
}

// TestAnotherAttemptGoesAlone: if an inline step kills the server, the next attempt
// completes only the step before it.
func TestAnotherAttemptGoesAlone(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, c *clock) {
		s.apply(&flow{name: "row",
			steps: []flowStep{{id: "a", does: "make", items: -1}, {id: "b", does: "make", items: -1, needs: []string{"a"}}}})
		for lost, want := range []gatehouse.StepStatus{gatehouse.StepSucceeded, gatehouse.StepReady} {
			s.start("row", "")
			for range lost {
				s.claim()
				c.advance(stepLease)
				s.wakeAll()
			}
			s.carry(s.claim()[0], 16)
			if steps := s.run(lost).Steps; steps[0].Status != gatehouse.StepSucceeded || steps[1].Status != want {
				t.Errorf("after %d lost leases a is %s, and b %s, want %s", lost, steps[0].Status, steps[1].Status, want)
			}
		}
	})
}

// TestGoneCallerTakesNothing: a caller that disconnected before a step was
// handed to it does not put back a step that another has leased since.
func TestGoneCallerTakesNothing(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, c *clock) {
		s.apply(&flow{name: "paged", steps: []flowStep{{id: "a", does: "page", items: -1, retry: 1}}})
		s.start("paged", "")
		ctx, gone := context.WithCancel(s.as("bot"))
		var others []string
		s.hook.in, s.hook.before = 1, func() { // leased, but not handed out
			gone()
			c.advance(stepLease)
			s.wakeAll()
			c.advance(48 * time.Second)
			s.wakeAll()
			others = s.leaseOutside()
		}
		got, err := s.runs.LeaseSteps(ctx, gatehouse.LeaseRequest{Tools: []string{"page"}, Lease: gatehouse.Span(stepLease)})
		s.must(err)
		if len(got) > 0 || len(others) != 1 {
			t.Fatalf("%v were handed to the caller that had gone, and %v to another", got, others)
		}
		if word := s.complete(others[0]); word != "ok" {
			t.Errorf("the other one's result: %s", word)
		}
	})
}

// TestRetryKeepsSucceededItems: a succeeded item is not executed again.
func TestRetryKeepsSucceededItems(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		s.apply(&flow{name: "items", steps: []flowStep{{id: "a", does: "page", items: 3, retry: 0}}})
		s.start("items", "")
		s.leaseOutside()
		leases := s.leaseOutside()
		if len(leases) != 3 {
			t.Fatalf("leased %v", leases)
		}
		if got := s.complete(lease1(0, "a[0]", 1)) + s.fail(lease1(0, "a[1]", 1),
			false) + s.complete(lease1(0, "a[2]", 1)); got != "okokok" {
			t.Fatal(got)
		}
		if r := s.run(0); r.Status != gatehouse.RunFailed {
			t.Fatalf("the run is %s", r.Status)
		}
		if got := s.retry(0); got != "ok" {
			t.Fatal(got)
		}
		s.leaseOutside()
		if got := s.leaseOutside(); len(got) != 1 || got[0] != lease1(1, "a[1]", 1) {
			t.Fatalf("leased %v for the retry, want its one item that had failed", got)
		}
		if got := s.complete(lease1(1, "a[1]", 1)); got != "ok" || s.run(1).Status != gatehouse.RunSucceeded {
			t.Errorf("%s, the retry is %s", got, s.run(1).Status)
		}
	})
}

// TestUnknownIsNoEnd: a step whose action has an unknown outcome keeps waiting,
// and continues with a person's resolution.
func TestUnknownIsNoEnd(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		s.apply(&flow{name: "tagged", writes: 1, steps: []flowStep{
			{id: "a", does: "tag", items: -1}, {id: "b", does: "tag", items: -1, needs: []string{"a"}},
		}})
		s.start("tagged", "")
		s.carry(s.claim()[0], 0)
		s.dispatch(requestLost)
		s.wakeAll()
		if r := s.run(0); s.action(0, "a").Status != gatehouse.StatusUnknown ||
			r.Steps[0].Status != gatehouse.StepWaitingApproval {
			t.Fatalf("the action is %s, its step %s", s.action(0, "a").Status, r.Steps[0].Status)
		}
		s.resolve(0, "a", true)
		s.wakeAll()
		if r := s.run(0); r.Steps[0].Status != gatehouse.StepSucceeded || r.Steps[1].Status != gatehouse.StepReady {
			t.Fatalf("the steps are %s and %s", r.Steps[0].Status, r.Steps[1].Status)
		}
		s.carry(s.claim()[0], 0) // one write more than the workflow allows
		if r := s.run(0); r.Status != gatehouse.RunFailed || r.Failure.Code != "too_many_writes" || r.Writes != 1 {
			t.Errorf("the run is %s: %+v after %d writes", r.Status, r.Failure, r.Writes)
		}
	})
}

// TestStoppingRunCancelsRevisions: an action that is revised just when its
// run stops is canceled in its new revision, too.
func TestStoppingRunCancelsRevisions(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		s.apply(childFlow())
		for transactions := range 4 {
			s.start("child", "")
			s.carry(s.claim()[0], 0)
			old := s.action(transactions, "a")
			s.cancel(transactions)
			s.hook.in, s.hook.before = transactions, func() {
				_, err := s.gate.Revise(s.as("pia"), old.ID, &gatehouse.Proposal{
					ActionType: old.ActionType, Connector: old.Connector, Operation: old.Operation, Target: old.Target,
					ProposedChange: `{"question":"sure?"}`, RiskLevel: old.RiskLevel,
				})
				s.word(err) // too late if the cancellation came first
			}
			s.wakeAll()
			if s.hook.before != nil {
				t.Errorf("there was no transaction %d to revise before", transactions)
			}
			r := s.run(transactions)
			if now := s.action(transactions, "a"); r.Status != gatehouse.RunCanceled || now.Status != gatehouse.StatusCanceled {
				t.Errorf("revised before transaction %d: the run is %s, its question %s", transactions, r.Status, now.Status)
			}
		}
	})
}

// TestFullLaneKeepsNobodyWaiting: while one workflow is at its limit, a worker
// that asks for one step at a time still gets the steps of others, whatever
// their names.
func TestFullLaneKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		source := func(name, limits string) {
			_, _, err := s.runs.ApplyWorkflow(s.as("admin"), name,
				"name: "+name+"\n"+limits+"steps:\n  - {id: a, uses: worker.page}\n")
			s.must(err)
		}
		source("first", "limits: {max_concurrency: 1}\n")
		source("second", "")
		source("third", "")
		for _, name := range []string{"first", "first", "first", "second", "second", "second", "third", "third", "third"} {
			s.start(name, "")
		}
		got := map[string]int{}
		for range 5 {
			steps, err := s.runs.LeaseSteps(s.as("bot"), gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 1})
			s.must(err)
			for _, l := range steps {
				got[l.Step.Workflow]++
			}
		}
		if d := cmp.Diff(map[string]int{"first": 1, "second": 2, "third": 2}, got); d != "" {
			t.Errorf("five leases of one (-want +got): %s", d)
		}
	})
}

// TestHostileTextIsStoredAlike: any input from outside has the same result on
// every engine, and never an internal error.
func TestHostileTextIsStoredAlike(t *testing.T) {
	t.Parallel()
	onRunSides(t, func(t *testing.T, s *runSide, _ *clock) {
		_, _, err := s.runs.ApplyWorkflow(s.as("admin"), "hostile", `name: hostile
steps:
  - {id: a, uses: worker.page, idempotency_key: "k:${{ input.k }}", with: {k: "${{ input.k }}"}}
output: "${{ steps.a.output }}"
`)
		s.must(err)
		for i, tt := range []struct {
			key  string // in JSON
			want gatehouse.RunStatus
		}{
			{`"\u0000"`, gatehouse.RunFailed}, {`"\u001b[2J"`, gatehouse.RunSucceeded}, {`"a\nb"`, gatehouse.RunSucceeded},
			{`"\u202e\u200b"`, gatehouse.RunSucceeded}, {`"'); DROP TABLE run; --"`, gatehouse.RunSucceeded},
			{`"𝔘😀"`, gatehouse.RunSucceeded},
		} {
			run, _, err := s.runs.StartRun(s.as("bot"), "hostile",
				gatehouse.NewRun{Input: gatehouse.JSON(`{"k":` + tt.key + `}`)})
			s.must(err)
			s.ids = append(s.ids, run.ID)
			for _, name := range s.leaseOutside() {
				step := s.leased[name]
				_, err := s.runs.CompleteStep(s.as("bot"), step.ID, gatehouse.StepResult{
					Generation: step.Generation, Output: gatehouse.JSON(`{"said":` + tt.key + `,"and":"\u0000"}`),
				})
				s.must(err)
			}
			if r := s.run(i); r.Status != tt.want {
				t.Errorf("%s: the run is %s (%+v), want %s", tt.key, r.Status, r.Failure, tt.want)
			}
		}
	})
}
