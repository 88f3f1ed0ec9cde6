package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// Bounds on what one run or workflow may take of shared resources.

// TestSignalsAreCounted: a run has a maximum number of events.
func TestSignalsAreCounted(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("naps", "name: naps\nsteps:\n  - {id: nap, uses: wait, with: {for: 1h}}\n")
		run := w.start("naps", `{}`)
		w.must(w.store.Update(t.Context(), run.Tenant, func(tx gatehouse.Tx) error {
			for i := range 999 {
				s := &gatehouse.Signal{Tenant: run.Tenant, RunID: run.ID, ID: fmt.Sprint("sig_", i), Name: "noise",
					Data: "null", By: "bot", At: tx.Now()}
				if err := tx.InsertSignal(s); err != nil {
					return err
				}
			}
			return nil
		}))
		_, err := w.runs.SignalRun(w.as("bot"), run.ID, "noise", "")
		w.must(err)
		if _, err = w.runs.SignalRun(w.as("bot"), run.ID, "noise", ""); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
			t.Errorf("the 1001st event: %v", err)
		}
	})
}

// TestSignalsAreBounded: the events of a run are bounded in their total size.
func TestSignalsAreBounded(t *testing.T) { onBoth(t, testSignalsAreBounded) }

func testSignalsAreBounded(t *testing.T, w *world) {
	w.apply("naps", "name: naps\nsteps:\n  - {id: nap, uses: wait, with: {for: 1h}}\n")
	run := w.start("naps", `{}`)
	data := gatehouse.StringJSON(string(make([]byte, 40<<10)))
	for i := range 60 {
		if _, err := w.runs.SignalRun(w.as("bot"), run.ID, "noise", data); err != nil {
			if gatehouse.CodeOf(err) != gatehouse.CodeTooLate || i < 4 {
				t.Errorf("event %d: %v", i, err)
			}
			return
		}
	}
	t.Errorf("a run took 60 events of %d bytes each", len(data))
}

// TestStepsOfARunAreBounded: the items of all steps of a run count together.
func TestStepsOfARunAreBounded(t *testing.T) { onBoth(t, testStepsOfARunAreBounded) }

func testStepsOfARunAreBounded(t *testing.T, w *world) {
	source := "name: wide\nsteps:\n"
	for i := range 6 {
		source += fmt.Sprintf("  - {id: s%d, needs: [], uses: worker.nobody, for_each: input.items, max_items: 1000}\n", i)
	}
	w.apply("wide", source)
	run := w.start("wide", gatehouse.JSON(`{"items":[`+strings.Repeat("1,", 999)+`1]}`))
	_, err := w.runs.LeaseSteps(
		w.as("bot"),
		gatehouse.LeaseRequest{Tools: []string{"nobody"}, Max: 6},
	) // fans out the items
	w.must(err)
	run = w.ended(run.ID)
	if run.Status != gatehouse.RunFailed || run.Failure.Code != "too_many_items" {
		t.Errorf("%d steps: %s", len(run.Steps), run.Status)
	}
}

// TestBudgetOfCallsAtOnce: concurrent calls cannot each claim the whole budget.
func TestBudgetOfCallsAtOnce(t *testing.T) { onBoth(t, testBudgetOfCallsAtOnce) }

func testBudgetOfCallsAtOnce(t *testing.T, w *world) {
	w.models.slow = 300 * time.Millisecond
	source := "name: dear\nlimits: {budget: {amount: \"0.60\", currency: USD, window: 1h}}\nsteps:\n"
	for i := range 8 {
		source += fmt.Sprintf(
			"  - {id: s%d, needs: [], uses: model.local, retry: {max: 0}, with: {model: small, prompt: hi}}\n", i)
	}
	w.apply("dear", source)
	run := w.ended(w.start("dear", `{}`).ID)
	if run.Failure == nil || run.Failure.Code != "budget_exceeded" {
		t.Errorf("%s", describe(run))
	}
	w.models.mu.Lock()
	defer w.models.mu.Unlock()
	if w.models.asked > 2 {
		t.Errorf("%d calls of 0.25 each within a budget of 0.60", w.models.asked)
	}
}

// TestRunsThatCannotStartBlockNobody: a workflow that no longer parses, and a hundred workflows at
// their limits, do not block the runs of others.
func TestRunsThatCannotStartBlockNobody(t *testing.T) { onBoth(t, testRunsThatCannotStartBlockNobody) }

func testRunsThatCannotStartBlockNobody(t *testing.T, w *world) {
	w.stop()
	source := func(name string) string {
		return "name: " + name +
			"\nlimits: {max_runs_per_min: 1}\non: {schedule: {cron: \"0 0 1 1 *\"}}\nsteps:\n  - {id: one, uses: transform, " +
			"with: {}}\n"
	}
	w.apply("zzz", source("zzz"))
	long := time.Now().Add(-time.Hour)
	w.must(w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		for i := range 102 {
			f := &gatehouse.Workflow{
				ID: fmt.Sprintf("wfl_%03d", i), Tenant: gatehouse.DefaultTenant, Name: fmt.Sprintf("a%03d", i), Version: 1,
				Workspace: "default",
				Source:    source(fmt.Sprintf("a%03d", i)), Digest: gatehouse.NewDigest("1"), CreatedBy: "admin",
				CreatedAt: tx.Now(),
			}
			if i == 0 {
				f.Source = "of an older form"
			}
			if err := tx.InsertWorkflow(f); err != nil {
				return err
			}
			if i == 0 {
				if err := tx.PutSchedule(&gatehouse.Schedule{Tenant: f.Tenant, Workflow: f.Name, Version: 1, NextAt: long},
					time.Time{}); err != nil {
					return err
				}
			}
			for n := range 2 {
				id := fmt.Sprintf("%03d_%d", i, n)
				if err := tx.InsertRun(&gatehouse.Run{
					ID: "run_" + id, Tenant: f.Tenant, Workflow: f.Name, Version: 1, Workspace: "default", Status: gatehouse.RunQueued,
					Trigger: gatehouse.TriggerAPI, StartedBy: "bot", Input: "{}", CreatedAt: tx.Now(), Steps: []*gatehouse.Step{{
						ID: "stp_" + id, Tenant: f.Tenant, RunID: "run_" + id, Key: "one", Workflow: f.Name, Workspace: "default",
						Uses: "transform", Status: gatehouse.StepBlocked, CreatedAt: tx.Now(),
					}},
				}); err != nil {
					return err
				}
			}
		}
		return tx.PutSchedule(
			&gatehouse.Schedule{Tenant: gatehouse.DefaultTenant, Workflow: "zzz", Version: 1, NextAt: long.Add(time.Minute)},
			time.Time{})
	}))
	if _, err := w.runs.FireSchedules(t.Context()); err == nil {
		t.Error("the error does not name the schedule that cannot start its run")
	}
	page, err := w.runs.ListRuns(w.as("admin"), gatehouse.RunFilter{Workflow: "zzz"})
	w.must(err)
	if len(page.Items) != 1 {
		t.Fatalf("%d runs of the other schedule", len(page.Items))
	}
	for range 2 { // the second round finds a hundred at their limits
		if _, err := w.runs.Admit(t.Context()); err == nil {
			t.Error("the error does not name the run that cannot start")
		}
	}
	if run, err := w.runs.FindRun(w.as("admin"), page.Items[0].ID); err != nil || run.Status == gatehouse.RunQueued {
		t.Errorf("the run behind them is %s, %v", run.Status, err)
	}
}

// TestBudgetOutlivesItsProcess: the claim of a call stays when its process
// dies, and other processes see the claims of running calls.
func TestBudgetOutlivesItsProcess(t *testing.T) { onBoth(t, testBudgetOutlivesItsProcess) }

func testBudgetOutlivesItsProcess(t *testing.T, w *world) {
	w.stop()
	w.apply("dear", "name: dear\nlimits: {budget: {amount: \"0.40\", currency: USD, window: 1h}}\nsteps:\n"+
		"  - {id: one, uses: model.local, retry: {max: 0}, with: {model: small, prompt: hi}}\n")
	first, second := w.start("dear", `{}`), w.start("dear", `{}`)
	lane := gatehouse.StepShare{
		Lane: gatehouse.Lane{Tenant: gatehouse.DefaultTenant, Workspace: "default", Workflow: "dear"}, Limit: 2}
	steps, err := w.runs.Claim(t.Context(), "one", lane)
	w.must(err)
	if len(steps) != 2 {
		t.Fatalf("leased %d", len(steps))
	}
	dead := make(chan struct{})
	w.models.died = dead // the first call never returns
	go func() { _ = w.runs.Execute(t.Context(), steps[0], "one") }()
	<-dead
	another := runs.New(w.gate, runs.Config{Models: w.models})
	w.must(another.Execute(t.Context(), steps[1], "another"))
	for _, id := range []string{first.ID, second.ID} {
		run, err := w.runs.FindRun(w.as("admin"), id)
		w.must(err)
		if s := run.Steps[0]; s.ID == steps[1].ID && (s.Failure == nil || s.Failure.Code != "budget_exceeded") {
			t.Errorf("beside a call that may cost 0.25, one of 0.25 within 0.40: %s", describe(run))
		}
	}
}

// TestBudgetIsSettled: once the cost of a call is known, only the cost counts.
func TestBudgetIsSettled(t *testing.T) { onBoth(t, testBudgetIsSettled) }

func testBudgetIsSettled(t *testing.T, w *world) {
	w.models.failures = []*gatehouse.StepFailure{
		{Code: "busy", Detail: "later", Retryable: true},
	} // a failed call that costs nothing
	w.apply("two", "name: two\nlimits: {budget: {amount: \"0.60\", currency: USD, window: 1h}}\nsteps:\n"+
		"  - {id: one, uses: model.local, retry: {max: 1, backoff: [1s]}, with: {model: small, prompt: hi}}\n"+
		"  - {id: two, uses: model.local, retry: {max: 0}, with: {model: small, prompt: ho}}\n")
	if run := w.ended(w.start("two", `{}`).ID); run.Status != gatehouse.RunSucceeded {
		t.Errorf("two calls of 0.25 within 0.60: %s", describe(run))
	}
}

// TestBudgetOfACallThatEnds: a call that ends while another call reads the claims and the costs
// still counts.
func TestBudgetOfACallThatEnds(t *testing.T) {
	t.Parallel()
	store, url := slowStore(t)
	w := newWorld(t, store)
	w.apply("dear", "name: dear\nlimits: {budget: {amount: \"0.60\", currency: USD, window: 1h}}\nsteps:\n"+
		"  - {id: s, uses: model.local, retry: {max: 0}, with: {model: small, prompt: hi}}\n")
	w.status(w.start("dear", `{}`).ID, gatehouse.RunSucceeded)
	c, err := pgx.Connect(t.Context(), url)
	w.must(err)
	defer c.Close(t.Context())
	watch, err := pgx.Connect(t.Context(), url)
	w.must(err)
	defer watch.Close(t.Context())
	// One call has ended with its cost, and another is in progress.
	_, err = c.Exec(t.Context(), `
INSERT INTO budget_claim (tenant, workflow, step_id, generation, currency, micros, picos, at)
SELECT tenant, workflow, step_id, 9, currency, micros, picos, at FROM model_usage`)
	w.must(err)
	end, err := c.Begin(t.Context())
	w.must(err)
	_, err = end.Exec(t.Context(), `LOCK TABLE budget_claim`)
	w.must(err)
	run := w.start("dear", `{}`)
	for waiting, late := false, time.Now().Add(time.Minute); !waiting; {
		if time.Now().After(late) {
			t.Fatal("the call does not read the claims")
		}
		w.must(watch.QueryRow(t.Context(), `SELECT count(*) > 0 FROM pg_stat_activity, pg_sleep(0.01)
WHERE datname = current_database() AND wait_event_type = 'Lock'
  AND query LIKE 'SELECT%FROM budget_claim%'`).Scan(&waiting))
	}
	_, err = end.Exec(t.Context(), `DELETE FROM budget_claim;
INSERT INTO model_usage (tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens, cost,
  micros, picos, currency, at)
SELECT tenant, run_id, workflow, step_id, attempt + 1, provider, model, input_tokens, output_tokens, cost,
  micros, picos, currency, at FROM model_usage`)
	w.must(err)
	w.must(end.Commit(t.Context()))
	if ended := w.ended(run.ID); ended.Failure == nil || ended.Failure.Code != "budget_exceeded" {
		t.Errorf("%s", describe(ended))
	}
}
