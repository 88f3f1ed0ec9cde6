package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestAgentsReadTheirRuns: an agent reads the run that it started, the child
// run, and what both proposed; another agent reads none of it.
func TestAgentsReadTheirRuns(t *testing.T) { onBoth(t, testAgentsReadTheirRuns) }

func testAgentsReadTheirRuns(t *testing.T, w *world) {
	w.person("scout", gatehouse.KindAgent, gatehouse.RoleProposer)
	w.person("rival", gatehouse.KindAgent, gatehouse.RoleProposer)
	w.apply("triage", triage)
	w.apply("outer", "name: outer\nsteps:\n  - {id: sub, uses: workflow.triage, with: {id: INC7, text: mine}}\n")
	run, _, err := w.runs.StartRun(w.as("scout"), "outer", gatehouse.NewRun{Input: `{}`, TriggerRef: "ref-1"})
	w.must(err)
	run = w.until(run.ID, "waiting", func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" })
	child := w.status(run.StepOf("sub").ChildRun, gatehouse.RunWaitingApproval)
	a := w.action(child, "update")

	scout, rival := w.as("scout"), w.as("rival")
	for _, id := range []string{run.ID, child.ID} {
		if _, err := w.runs.FindRun(scout, id); err != nil {
			t.Errorf("its own run: %v", err)
		}
		if _, err := w.runs.FindRun(rival, id); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("the other's run: %v, want not_found", err)
		}
		if _, err := w.runs.RunDetail(rival, id); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("the other's run in detail: %v, want not_found", err)
		}
		if _, err := w.runs.CancelRun(rival, id, "mine"); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("canceling the other's run: %v, want not_found", err)
		}
	}
	if _, err := w.gate.FindAction(scout, a.ID); err != nil {
		t.Errorf("the action of its run's child run: %v", err)
	}
	if _, err := w.gate.FindAction(rival, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("the action of the other's run: %v, want not_found", err)
	}
	if page, err := w.runs.ListRuns(scout, gatehouse.RunFilter{}); err != nil || len(page.Items) != 2 {
		t.Errorf("its own runs: %d, %v", len(page.Items), err)
	}
	if page, err := w.runs.ListRuns(rival, gatehouse.RunFilter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("the other's runs: %d, %v", len(page.Items), err)
	}
	if _, _, err := w.runs.StartRun(rival, "outer",
		gatehouse.NewRun{Input: `{}`, TriggerRef: "ref-1"}); gatehouse.CodeOf(err) != gatehouse.CodeDuplicateKey {
		t.Errorf("the other's trigger_ref: %v, want duplicate_key", err)
	}
}

// TestScheduleBeganItsRun: a server died after it began a scheduled run and
// before it advanced the schedule. The time of that run is therefore still due.
// The next server finds the run, begins no second one, and advances the schedule.
func TestScheduleBeganItsRun(t *testing.T) { onBoth(t, testScheduleBeganItsRun) }

func testScheduleBeganItsRun(t *testing.T, w *world) {
	w.stop()
	w.apply("nightly",
		"name: nightly\non: {schedule: {cron: \"0 3 * * *\"}}\nsteps:\n  - {id: one, uses: transform, with: {done: true}}\n")
	due := time.Date(2020, 1, 1, 3, 0, 0, 0, time.UTC)
	for range 2 {
		w.must(w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			return tx.PutSchedule(
				&gatehouse.Schedule{Tenant: gatehouse.DefaultTenant, Workflow: "nightly", Version: 1, NextAt: due}, time.Time{})
		}))
		_, err := w.runs.FireSchedules(t.Context())
		w.must(err)
	}
	page, err := w.runs.ListRuns(w.as("admin"), gatehouse.RunFilter{Workflow: "nightly"})
	w.must(err)
	if len(page.Items) != 1 {
		t.Errorf("%d runs of one time of the schedule, want 1", len(page.Items))
	}
	w.must(w.store.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		still, err := q.DueSchedules(10)
		if len(still) != 0 {
			t.Errorf("the schedule stays at %s", still[0].NextAt)
		}
		return err
	}))
}

// TestApplyKeepsADueRun: a new version does not drop the run of the schedule that is due.
func TestApplyKeepsADueRun(t *testing.T) { onBoth(t, testApplyKeepsADueRun) }

func testApplyKeepsADueRun(t *testing.T, w *world) {
	w.stop()
	const source = "name: nightly\non: {schedule: {cron: \"0 3 * * *\"}}\n" +
		"steps:\n  - {id: one, uses: transform, with: {n: N}}\n"
	w.apply("nightly", strings.Replace(source, "N", "1", 1))
	w.must(w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		due := time.Date(2020, 1, 1, 3, 0, 0, 0, time.UTC)
		return tx.PutSchedule(
			&gatehouse.Schedule{Tenant: gatehouse.DefaultTenant, Workflow: "nightly", Version: 1, NextAt: due}, time.Time{})
	}))
	w.apply("nightly", strings.Replace(source, "N", "2", 1))
	_, err := w.runs.FireSchedules(t.Context())
	w.must(err)
	page, err := w.runs.ListRuns(w.as("admin"), gatehouse.RunFilter{Workflow: "nightly"})
	w.must(err)
	if len(page.Items) != 1 || page.Items[0].Version != 2 {
		t.Errorf("%d runs, want one of version 2", len(page.Items))
	}
	w.must(w.store.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		due, err := q.DueSchedules(10)
		if len(due) != 0 {
			t.Errorf("the schedule stays at %s", due[0].NextAt)
		}
		return err
	}))
}

// TestStepsOfOtherWorkers: a worker sees the steps that it holds or has held.
// Another worker's step looks as if it did not exist.
func TestStepsOfOtherWorkers(t *testing.T) { onBoth(t, testStepsOfOtherWorkers) }

func testStepsOfOtherWorkers(t *testing.T, w *world) {
	w.apply("page", "name: page\nsteps:\n  - {id: one, uses: worker.page, retry: {max: 0}}\n")
	w.start("page", "{}")
	held := w.leaseStep("bot")
	w.person("other", gatehouse.KindAgent, gatehouse.RoleWorker)
	calls := func(who string, want gatehouse.Code) {
		t.Helper()
		ctx, id, g := w.as(who), held.Step.ID, held.Lease.Generation
		_, beat := w.runs.HeartbeatStep(ctx, id, gatehouse.Heartbeat{Generation: g})
		_, failed := w.runs.FailStep(ctx, id, gatehouse.StepFailure{Generation: g, Code: "x", Detail: "y"})
		_, completed := w.runs.CompleteStep(ctx, id, gatehouse.StepResult{Generation: g, Output: "{}"})
		for verb, err := range map[string]error{"heartbeat": beat, "fail": failed, "complete": completed} {
			if code := gatehouse.CodeOf(err); code != want {
				t.Errorf("%s of %s: %q, want %q", verb, who, code, want)
			}
			if want == gatehouse.CodeNotFound && !strings.Contains(err.Error(), id) {
				t.Errorf("%s of %s does not name the step: %v", verb, who, err)
			}
		}
	}
	calls("other", gatehouse.CodeNotFound)
	_, err := w.runs.CompleteStep(w.as("bot"), held.Step.ID,
		gatehouse.StepResult{Generation: held.Lease.Generation, Output: "{}"})
	w.must(err)
	calls("other", gatehouse.CodeNotFound)
	calls("bot", gatehouse.CodeLeaseLost)
}
