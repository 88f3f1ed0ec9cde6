package runs_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// late runs a hook just before a subscription.
type late struct {
	usecase.Hints
	before func()
}

func (l *late) Subscribe(topics ...string) (<-chan struct{}, func()) {
	l.before()
	return l.Hints.Subscribe(topics...)
}

// A change between the first look of a wait and its subscription is seen at
// once, not at the next poll.
func TestWaitSeesChangesMeanwhile(t *testing.T) { onBoth(t, testWaitSeesChangesMeanwhile) }

// still waits until no step of a run executes.
func (w *world) still(id string) *gatehouse.Run {
	w.Helper()
	return w.until(id, "still", func(r *gatehouse.Run) bool { return r.Status == gatehouse.RunWaiting })
}

func (w *world) signal(id string) {
	w.Helper()
	_, err := w.runs.SignalRun(w.as("bot"), id, "go", "")
	w.must(err)
}

func testWaitSeesChangesMeanwhile(t *testing.T, w *world) {
	w.apply("idle",
		"name: idle\nsteps:\n  - {id: wait, uses: wait, with: {event: never}}\n  - {id: hear, needs: [], uses: wait, with: "+
			"{event: go}}\n")
	run := w.still(w.start("idle", `{}`).ID)
	registry, err := dispatch.NewRegistry()
	w.must(err)
	hints := &late{Hints: w.hub, before: func() {
		_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
		w.must(err)
	}}
	log := slog.New(slog.DiscardHandler)
	rs := runs.New(gate.New(w.store, registry, hints, gate.Config{PolicySource: policy.DefaultSource()}, log),
		runs.Config{})
	// A watch sees at once what changed after the position that it is given.
	at, err := w.runs.FindRun(w.as("admin"), run.ID)
	w.must(err)
	w.signal(run.ID)
	began := time.Now()
	moved, err := w.runs.WatchRun(w.as("admin"), run.ID, at.Position, time.Minute)
	w.must(err)
	if moved.Position == at.Position || moved.StepOf("hear").Status == gatehouse.StepWaiting ||
		time.Since(began) > 30*time.Second {
		t.Errorf("after %s: %s", time.Since(began), describe(moved))
	}
	if same, err := w.runs.WatchRun(w.as("admin"), run.ID, w.still(run.ID).Position, 50*time.Millisecond); err != nil ||
		same.Status.Final() {
		t.Errorf("where nothing moved: %v, %v", same, err)
	}
	// So short a wait gets no hint: only a look finds the change.
	got, err := rs.WaitRun(w.as("admin"), run.ID, time.Nanosecond)
	w.must(err)
	if got.Status != gatehouse.RunCanceled {
		t.Errorf("the run is %s", got.Status)
	}
}

// An event that came before its step was leased leaves the same attempt as
// every other lease, in the evidence too, and no waiting time.
func TestEventBeforeItsStepIsAnAttempt(t *testing.T) { onBoth(t, testEventBeforeItsStepIsAnAttempt) }

func testEventBeforeItsStepIsAnAttempt(t *testing.T, w *world) {
	w.apply("early",
		"name: early\nsteps:\n  - {id: first, uses: wait, with: {event: begin}}\n  - {id: hear, uses: wait, with: {event: "+
			"go}}\n")
	run := w.still(w.start("early", `{}`).ID)
	w.signal(run.ID)
	_, err := w.runs.SignalRun(w.as("bot"), run.ID, "begin", "")
	w.must(err)
	run = w.ended(run.ID)
	w.until(run.ID, "bundled", func(r *gatehouse.Run) bool { return r.Evidence != "" })
	d, err := w.runs.RunDetail(w.as("admin"), run.ID)
	w.must(err)
	b, err := w.runs.RunBundle(w.as("admin"), run.ID)
	w.must(err)
	archive, err := zip.NewReader(bytes.NewReader(b.Archive), int64(len(b.Archive)))
	w.must(err)
	file, err := archive.Open("attempts.json")
	w.must(err)
	var kept []*gatehouse.StepAttempt
	w.must(json.NewDecoder(file).Decode(&kept))
	for where, attempts := range map[string][]*gatehouse.StepAttempt{"the run": d.Attempts, "its evidence": kept} {
		got := make(map[string]string)
		for _, a := range attempts {
			got[a.StepID] += fmt.Sprintf("%d by %s: %s;", a.Attempt, a.Worker, a.Outcome)
		}
		for step, want := range map[string]string{"first": "1 by test: waiting;", "hear": "1 by test: succeeded;"} {
			if s := run.StepOf(step); s.Attempts != 1 || got[s.ID] != want {
				t.Errorf("%s has %q of the step %s, which had %d attempts; want %q", where, got[s.ID], step, s.Attempts, want)
			}
		}
	}
	for _, span := range runline.Spans(d, []*gatehouse.Step{run.StepOf("hear")}, time.Now())[0] {
		if span.Phase == runline.Waits {
			t.Errorf("the step is drawn as one that waited: %+v", span)
		}
	}
}

// TestRevisedWhileItsRunStops: an action is revised while its run's stop cancels it. The stop cancels the revision too.
func TestRevisedWhileItsRunStops(t *testing.T) { onBoth(t, testRevisedWhileItsRunStops) }

func testRevisedWhileItsRunStops(t *testing.T, w *world) {
	w.person("cleo", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	w.apply("asks", "name: asks\nsteps:\n  - {id: ask, uses: approval, with: {rationale: really}}\n")
	run := w.status(w.start("asks", `{}`).ID, gatehouse.RunWaitingApproval)
	old := w.action(run, "ask")
	w.stop()
	_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
	w.must(err)
	wake := func(ctx context.Context, stored func()) { // calls stored after its first transaction
		g := gate.New(&hungUp{w.store, 1, stored}, nil, w.hub, gate.Config{}, slog.New(slog.DiscardHandler))
		_, _ = runs.New(g, runs.Config{}).Wake(ctx)
	}
	var revised *gatehouse.Action
	wake(t.Context(), func() {
		p := old.Proposal
		p.Rationale, p.IdempotencyKey = "Surely.", ""
		revised, err = w.gate.Revise(w.as("cleo"), old.ID, &p)
		w.must(err)
		ctx, gone := context.WithCancel(t.Context())
		wake(ctx, gone) // ends once the step waits for the revision
	})
	for range 2 { // cancels the revision, then ends the run
		_, err := w.runs.Wake(t.Context())
		w.must(err)
	}
	if run, err = w.runs.FindRun(w.as("admin"), run.ID); err != nil || run.Status != gatehouse.RunCanceled {
		t.Errorf("%v: %s", err, describe(run))
	}
	if a, err := w.gate.FindAction(w.as("admin"), revised.ID); err != nil || a.Status != gatehouse.StatusCanceled {
		t.Errorf("the revision is %s, %v", a.Status, err)
	}
}

// dueTimes records the due time of each step that its transactions park.
type dueTimes struct {
	gatehouse.Store
	mu     sync.Mutex
	parked map[string]time.Duration // how long after the transaction's time the step is due, by key
}

func (d *dueTimes) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return d.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error { return fn(dueTimesTx{tx, d}) })
}

type dueTimesTx struct {
	gatehouse.Tx
	d *dueTimes
}

func (t dueTimesTx) UpdateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	if s.Status == gatehouse.StepWaiting && s.DueAt != nil {
		t.d.mu.Lock()
		defer t.d.mu.Unlock()
		t.d.parked[s.Key] = s.DueAt.Sub(t.Now())
	}
	return t.Tx.UpdateStep(s, from, generation)
}

// TestWaitUntilPastTime: a wait until a past time ends, and is stored as due now: the polls of a store may skip
// steps that are due before the transaction that parked them.
func TestWaitUntilPastTime(t *testing.T) {
	onEngines(t, func(t *testing.T, store gatehouse.Store) {
		d := &dueTimes{Store: store, parked: map[string]time.Duration{}}
		w := newWorld(t, d)
		w.apply("past", "name: past\nsteps:\n  - {id: wait, uses: wait, with: {until: \"2000-01-01T00:00:00Z\"}}\n")
		if run := w.ended(w.start("past", `{}`).ID); run.Status != gatehouse.RunSucceeded {
			t.Errorf("the run is %s", describe(run))
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if after, parked := d.parked["wait"]; !parked || after != 0 {
			t.Errorf("the step was parked: %t, and due %s after the transaction; want at once", parked, after)
		}
	})
}
