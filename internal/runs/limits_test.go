package runs_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestLimits(t *testing.T) { onBoth(t, testLimits) }

func testLimits(t *testing.T, w *world) {
	w.apply("writes", `name: writes
limits: {max_writes_per_run: 1}
steps:
  - {id: one, uses: connector.shop.update, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: A}, change: {n: 1}}}
  - {id: two, uses: connector.shop.update, action_type: note, risk: low, with: {target: {entity_type: item,
      entity_ref: B}, change: {n: 1}}}
`)
	run := w.status(w.start("writes", `{}`).ID, gatehouse.RunFailed)
	if run.Failure.Code != "too_many_writes" || w.ledger.effects("B") != 0 {
		t.Errorf("%s", describe(run))
	}
	w.apply("slow", `name: slow
limits: {max_runs_per_min: 2}
steps:
  - {id: one, uses: transform, with: {}}
`)
	var runs []*gatehouse.Run
	for range 4 {
		runs = append(runs, w.start("slow", `{}`))
	}
	for _, r := range runs[:2] {
		w.status(r.ID, gatehouse.RunSucceeded)
	}
	for _, r := range runs[2:] {
		if got, err := w.runs.FindRun(w.as("admin"), r.ID); err != nil || got.Status != gatehouse.RunQueued {
			t.Errorf("the run is %s, %v", got.Status, err)
		}
	}
	// A retry of an older version obeys the newest version's limit.
	w.apply("older", "name: older\nlimits: {deadline: 1s}\nsteps:\n  - {id: nap, uses: wait, with: {for: 1h}}\n")
	late := w.status(w.start("older", `{}`).ID, gatehouse.RunFailed)
	w.apply("older", "name: older\nlimits: {max_runs_per_min: 1}\nsteps:\n  - {id: one, uses: transform, with: {}}\n")
	again, err := w.runs.RetryRun(w.as("admin"), late.ID)
	w.must(err)
	if again.Version != 1 || again.Status != gatehouse.RunQueued {
		t.Errorf("a retry of version %d beside a start within the minute is %s, want queued", again.Version, again.Status)
	}
	// A run that misses its deadline in the queue has never started, and uses up no start.
	w.apply("late", `name: late
limits: {max_runs_per_min: 1, deadline: 1s}
steps:
  - {id: one, uses: transform, with: {}}
`)
	w.start("late", `{}`)
	run = w.status(w.start("late", `{}`).ID, gatehouse.RunFailed)
	if run.StartedAt != nil || run.Failure.Code != "deadline_exceeded" {
		t.Errorf("started at %v: %s", run.StartedAt, describe(run))
	}
	w.apply("short", `name: short
limits: {deadline: 1s}
steps:
  - {id: nap, uses: wait, with: {for: 1h}}
`)
	if run = w.status(w.start("short", `{}`).ID, gatehouse.RunFailed); run.Failure.Code != "deadline_exceeded" {
		t.Errorf("%s", describe(run))
	}
	w.apply("dear", `name: dear
limits: {budget: {amount: "0.30", currency: USD, window: 1h}}
steps:
  - {id: one, uses: model.local, with: {model: small, prompt: hi}}
`)
	w.status(w.start("dear", `{}`).ID, gatehouse.RunSucceeded)
	if run = w.status(w.start("dear", `{}`).ID, gatehouse.RunFailed); run.Failure.Code != "budget_exceeded" ||
		w.models.asked != 1 {
		t.Errorf("asked %d times: %s", w.models.asked, describe(run))
	}
}
