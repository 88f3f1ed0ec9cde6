package runtime_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
	"github.com/gatehouse-dev/gatehouse/internal/engine"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// late lets something happen just before somebody subscribes.
type late struct {
	app.Hints
	before func()
}

func (l *late) Subscribe(topics ...string) (<-chan struct{}, func()) {
	l.before()
	return l.Hints.Subscribe(topics...)
}

// What moves between the first look of a wait and its subscription is seen at
// once, not at the next poll.
func TestWaitSeesWhatMovedMeanwhile(t *testing.T) {
	t.Parallel()
	onBoth(t, testWaitSeesWhatMovedMeanwhile)
}

func testWaitSeesWhatMovedMeanwhile(t *testing.T, w *world) {
	w.apply("idle", "name: idle\nsteps:\n  - id: wait\n    uses: wait\n    with: {event: never}\n")
	run := w.status(w.start("idle", `{}`).ID, gatehouse.RunWaiting)
	registry, err := engine.NewRegistry()
	w.must(err)
	hints := &late{Hints: w.hub, before: func() {
		_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
		w.must(err)
	}}
	log := slog.New(slog.DiscardHandler)
	runs := app.NewRuns(app.New(w.store, registry, hints, app.Config{PolicySource: policy.DefaultSource()}, log), app.RunsConfig{})
	// So short a wait hears no hint: only a look shows it.
	got, err := runs.WaitRun(w.as("admin"), run.ID, time.Nanosecond)
	w.must(err)
	if got.Status != gatehouse.RunCanceled {
		t.Errorf("the run is %s", got.Status)
	}
}
