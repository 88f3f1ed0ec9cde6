package runs_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// insertFlow stores a workflow; the source need not parse.
func insertFlow(tx gatehouse.Tx, name, source string) error {
	return tx.InsertWorkflow(&gatehouse.Workflow{
		ID: "wfl_" + name, Tenant: gatehouse.DefaultTenant, Name: name, Version: 1, Workspace: "default",
		Source: source, Digest: gatehouse.NewDigest("1"), CreatedBy: "admin", CreatedAt: tx.Now(),
	})
}

// insertRun stores a run of a workflow with one ready step.
func insertRun(tx gatehouse.Tx, flow, id, uses, tool string) (*gatehouse.Run, error) {
	now := tx.Now()
	run := &gatehouse.Run{
		ID: "run_" + id, Tenant: gatehouse.DefaultTenant, Workflow: flow, Version: 1, Workspace: "default",
		Status:  gatehouse.RunQueued,
		Trigger: gatehouse.TriggerAPI, StartedBy: "bot", Input: "{}", CreatedAt: now, Steps: []*gatehouse.Step{{
			ID: "stp_" + id, Tenant: gatehouse.DefaultTenant, RunID: "run_" + id, Key: "one", Workflow: flow,
			Workspace: "default",
			Uses:      uses, Tool: tool, Status: gatehouse.StepReady, CreatedAt: now, ReadyAt: &now,
		}},
	}
	if err := tx.InsertRun(run); err != nil {
		return nil, err
	}
	run.Status, run.StartedAt = gatehouse.RunRunning, &now
	return run, tx.MoveRun(run, gatehouse.RunQueued)
}

// TestStuckStepsBlockNobody: more than a hundred waiting steps that cannot be
// woken are set aside and do not block the steps behind them.
func TestStuckStepsBlockNobody(t *testing.T) { onBoth(t, testStuckStepsBlockNobody) }

func testStuckStepsBlockNobody(t *testing.T, w *world) {
	w.stop()
	w.apply("child", "name: child\nsteps:\n  - {id: one, uses: transform, with: {}}\n")
	w.apply("good", "name: good\nsteps:\n  - {id: one, uses: workflow.child}\n")
	const broken = 110
	w.must(w.store.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
		tx := q.In(gatehouse.DefaultTenant)
		if err := insertFlow(tx, "broken", "of an older form"); err != nil {
			return err
		}
		ended, err := insertRun(tx, "child", "ended", "transform", "")
		if err != nil {
			return err
		}
		now := tx.Now()
		ended.Status, ended.FinishedAt = gatehouse.RunFailed, &now
		if err := tx.MoveRun(ended, gatehouse.RunRunning); err != nil {
			return err
		}
		for i := range broken + 1 {
			flow := "broken"
			if i == broken {
				flow = "good"
			}
			if _, err := insertRun(tx, flow, fmt.Sprintf("%03d", i), "workflow.child", ""); err != nil {
				return err
			}
		}
		for _, flow := range []string{"broken", "good"} {
			steps, err := q.ClaimSteps("test", time.Minute, gatehouse.StepShare{
				Lane: gatehouse.Lane{Tenant: gatehouse.DefaultTenant, Workspace: "default", Workflow: flow}, Limit: broken,
			})
			if err != nil {
				return err
			}
			for _, s := range steps {
				s.Status, s.LeaseOwner, s.LeaseUntil, s.ChildRun = gatehouse.StepWaiting, "", nil, ended.ID
				if err := tx.UpdateStep(s, gatehouse.StepRunning, s.Generation); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	for round := range 2 {
		if _, err := w.runs.Wake(t.Context()); err == nil {
			t.Errorf("round %d: the error does not name the step that cannot be woken", round)
		}
	}
	run, err := w.runs.FindRun(w.as("admin"), fmt.Sprintf("run_%03d", broken))
	w.must(err)
	if run.Status != gatehouse.RunFailed || run.Failure.Code != "child_failed" {
		t.Errorf("the run behind them: %s", describe(run))
	}
	if n := w.runs.BackedOff(); n != broken {
		t.Errorf("%d are set aside, want %d", n, broken)
	}
}

// TestStuckSchedulesBlockNobody: more schedules than a round fires cannot start their runs; those behind them do.
func TestStuckSchedulesBlockNobody(t *testing.T) { onBoth(t, testStuckSchedulesBlockNobody) }

func testStuckSchedulesBlockNobody(t *testing.T, w *world) {
	w.stop()
	w.apply("good",
		"name: good\non: {schedule: {cron: \"0 0 1 1 *\"}}\nsteps:\n  - {id: one, uses: transform, with: {}}\n")
	w.must(w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		at := tx.Now().Add(-time.Hour)
		for i := range 60 {
			name := fmt.Sprintf("broken%02d", i)
			if err := insertFlow(tx, name, "of an older form"); err != nil {
				return err
			}
			due := &gatehouse.Schedule{Tenant: gatehouse.DefaultTenant, Workflow: name, Version: 1, NextAt: at}
			if err := tx.PutSchedule(due, time.Time{}); err != nil {
				return err
			}
		}
		return tx.PutSchedule(&gatehouse.Schedule{
			Tenant: gatehouse.DefaultTenant, Workflow: "good", Version: 1, NextAt: at.Add(time.Minute)}, time.Time{})
	}))
	for round := range 2 {
		if _, err := w.runs.FireSchedules(t.Context()); err == nil {
			t.Errorf("round %d: the error does not name the schedule that cannot start its run", round)
		}
	}
	page, err := w.runs.ListRuns(w.as("admin"), gatehouse.RunFilter{Workflow: "good"})
	w.must(err)
	if len(page.Items) != 1 {
		t.Errorf("%d runs of the schedule behind them, want 1", len(page.Items))
	}
	if n := w.runs.BackedOff(); n != 60 {
		t.Errorf("%d are set aside, want 60", n)
	}
}

// TestStuckBundlesBlockNobody: the evidence of more runs than a round bundles cannot be gathered; that of a run
// which ended later can.
func TestStuckBundlesBlockNobody(t *testing.T) { onBoth(t, testStuckBundlesBlockNobody) }

func testStuckBundlesBlockNobody(t *testing.T, w *world) {
	w.stop()
	w.must(w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		if err := insertFlow(tx, "broken", "of an older form"); err != nil {
			return err
		}
		if err := insertFlow(tx, "sound", "name: sound\nsteps:\n  - {id: one, uses: transform, with: {}}\n"); err != nil {
			return err
		}
		now := tx.Now()
		for i := range 25 {
			flow := "broken"
			if i == 24 {
				flow = "sound"
			}
			run, err := insertRun(tx, flow, fmt.Sprintf("%02d", i), "transform", "")
			if err != nil {
				return err
			}
			run.Status, run.FinishedAt = gatehouse.RunFailed, new(now.Add(time.Duration(i)))
			if err := tx.MoveRun(run, gatehouse.RunRunning); err != nil {
				return err
			}
			end := &gatehouse.Leaf{Tenant: run.Tenant, Type: "run.failed", Subject: run.ID, Actor: "system"}
			if err := tx.AppendLeaf(end); err != nil {
				return err
			}
		}
		return nil
	}))
	if _, err := w.runs.Bundle(t.Context()); err == nil {
		t.Error("the error does not name the run whose evidence cannot be gathered")
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_, _ = w.runs.Bundle(t.Context())
		err := w.store.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			_, err := tx.FindBundle("run_24") // RunBundle would make it
			return err
		})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run behind them has no bundle: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestUnreadableWorkflowStopsItsLanesAlone: steps of the tenant's other
// workflows are still leased.
func TestUnreadableWorkflowStopsItsLanesAlone(t *testing.T) {
	onBoth(t, testUnreadableWorkflowStopsItsLanesAlone)
}

func testUnreadableWorkflowStopsItsLanesAlone(t *testing.T, w *world) {
	source := "name: sound\nsteps:\n  - {id: one, uses: worker.page}\n"
	w.apply("sound", source)
	w.must(w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		if err := insertFlow(tx, "broken", "of an older form"); err != nil {
			return err
		}
		if _, err := insertRun(tx, "broken", "bad", "worker.page", "page"); err != nil {
			return err
		}
		if _, err := insertRun(tx, "broken", "worse", "transform", ""); err != nil {
			return err
		}
		_, err := insertRun(tx, "sound", "good", "worker.page", "page")
		return err
	}))
	leased, err := w.runs.LeaseSteps(w.as("bot"), gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 10})
	w.must(err)
	if len(leased) != 1 || leased[0].Step.ID != "stp_good" {
		t.Errorf("leased %+v", leased)
	}
	w.apply("built", "name: built\nsteps:\n  - {id: one, uses: transform, with: {}}\n")
	w.ended(w.start("built", `{}`).ID)
	w.must(w.store.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		for _, id := range []string{"stp_bad", "stp_worse"} {
			s, err := tx.FindStep(id)
			if err != nil {
				return err
			}
			if s.Status != gatehouse.StepReady {
				t.Errorf("the step of the unreadable workflow is %s", s.Status)
			}
		}
		return nil
	}))
}

// leaving is a store whose client disconnects once it has leased.
type leaving struct {
	gatehouse.Store
	leave context.CancelFunc
}

func (l leaving) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	err := l.Store.Update(ctx, tenant, fn)
	l.leave()
	return err
}

func (l leaving) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	err := l.Store.UpdateQueues(ctx, fn)
	l.leave()
	return err
}

// TestClientThatHasGoneIsNoError: the step that the client had leased is put
// back.
func TestClientThatHasGoneIsNoError(t *testing.T) { onBoth(t, testClientThatHasGoneIsNoError) }

func testClientThatHasGoneIsNoError(t *testing.T, w *world) {
	w.apply("sound", "name: sound\nsteps:\n  - {id: one, uses: worker.page}\n")
	run := w.start("sound", `{}`)
	ctx, cancel := context.WithCancel(w.as("bot"))
	defer cancel()
	var said strings.Builder
	g := gate.New(leaving{w.store, cancel}, nil, w.hub, gate.Config{}, slog.New(slog.NewTextHandler(&said, nil)))
	leased, err := runs.New(g, runs.Config{}).LeaseSteps(ctx, gatehouse.LeaseRequest{Tools: []string{"page"}})
	if len(leased) > 0 || err != nil {
		t.Errorf("leased %v, %v", leased, err)
	}
	if strings.Contains(said.String(), "ERROR") {
		t.Errorf("it is said: %s", said.String())
	}
	run, err = w.runs.FindRun(w.as("admin"), run.ID)
	w.must(err)
	if s := run.Steps[0]; s.Status != gatehouse.StepReady || s.Generation != 1 || s.Attempts != 0 {
		t.Errorf("the step is %s after %d leases and %d attempts, want ready after one and none", s.Status, s.Generation,
			s.Attempts)
	}
}

// TestWritesOfATree: a proposal of a child run also counts for each run above
// it.
func TestWritesOfATree(t *testing.T) { onBoth(t, testWritesOfATree) }

func testWritesOfATree(t *testing.T, w *world) {
	w.apply("leaf", `name: leaf
steps:
  - id: write
    uses: connector.shop.update
    action_type: note
    risk: low
    with: {target: {entity_type: item, entity_ref: "${{ run.id }}"}, change: {n: "1"}}
`)
	w.apply("branch",
		"name: branch\nsteps:\n  - {id: a, uses: workflow.leaf}\n  - {id: b, uses: workflow.leaf, retry: {max: 0}}\n")
	w.apply("root", "name: root\nlimits: {max_writes_per_run: 3}\nsteps:\n"+
		"  - {id: x, uses: workflow.branch}\n  - {id: y, uses: workflow.branch}\n  - {id: z, uses: workflow.branch}\n")
	run := w.start("root", `{}`)
	deadline := time.Now().Add(time.Minute)
	for !run.Status.Final() && time.Now().Before(deadline) {
		page, err := w.gate.ListActions(w.as("admin"), gatehouse.ActionFilter{Status: gatehouse.StatusPending})
		w.must(err)
		for _, a := range page.Items {
			w.must(w.decide(a, "ana", gatehouse.Approve))
		}
		run, err = w.runs.WaitRun(w.as("admin"), run.ID, 100*time.Millisecond)
		w.must(err)
	}
	if run.Status != gatehouse.RunFailed || run.Writes != 3 || !strings.Contains(run.Failure.Detail, "too_many_writes") {
		t.Errorf("%d writes: %s", run.Writes, describe(run))
	}
	branch, err := w.runs.FindRun(w.as("admin"), run.StepOf("x").ChildRun)
	w.must(err)
	if branch.Writes != 2 || branch.Status != gatehouse.RunSucceeded {
		t.Errorf("the first branch, %d writes: %s", branch.Writes, describe(branch))
	}
}

// TestLastItemFails: when the last item fails, so do the step and the run.
func TestLastItemFails(t *testing.T) { onBoth(t, testLastItemFails) }

func testLastItemFails(t *testing.T, w *world) {
	w.apply("each",
		"name: each\nsteps:\n  - {id: all, uses: worker.page, for_each: input.items, retry: {max: 0}, with: {}}\n")
	for _, n := range []int{1, 3} {
		run := w.start("each", gatehouse.JSON(`{"items":[`+strings.Repeat("1,", n-1)+`1]}`))
		var leased []gatehouse.LeasedStep
		for len(leased) < n {
			more, err := w.runs.LeaseSteps(w.as("bot"),
				gatehouse.LeaseRequest{Tools: []string{"page"}, Max: n, Wait: gatehouse.Duration(30 * time.Second)})
			w.must(err)
			leased = append(leased, more...)
		}
		for i, l := range leased {
			var err error
			if i == n-1 {
				_, err = w.runs.FailStep(w.as("bot"), l.Step.ID,
					gatehouse.StepFailure{Generation: l.Lease.Generation, Code: "broken", Detail: "it"})
			} else {
				_, err = w.runs.CompleteStep(w.as("bot"), l.Step.ID, gatehouse.StepResult{Generation: l.Lease.Generation})
			}
			w.must(err)
		}
		run = w.ended(run.ID)
		if s := run.StepOf("all"); s.Status != gatehouse.StepFailed || s.Failure == nil || s.Failure.Code != "broken" {
			t.Errorf("of %d items: %s", n, describe(run))
		}
	}
}
