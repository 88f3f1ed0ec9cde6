package runs_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// hungUp is a store whose caller disconnects after the given number of stored
// Updates.
type hungUp struct {
	gatehouse.Store
	after int
	gone  context.CancelFunc
}

func (l *hungUp) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	err := l.Store.Update(ctx, tenant, fn)
	if l.after--; l.after == 0 {
		l.gone()
	}
	return err
}

func (l *hungUp) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	err := l.Store.UpdateQueues(ctx, fn)
	if l.after--; l.after == 0 {
		l.gone()
	}
	return err
}

// endings records the outcomes that are counted.
type endings []gatehouse.StepStatus

func (e *endings) StepEnded(outcome gatehouse.StepStatus) { *e = append(*e, outcome) }
func (*endings) StepLeased(time.Duration)                 {}
func (*endings) ModelUsed(*gatehouse.ModelUsage)          {}

// TestCallerGoesBeforeItsSteps: steps that were leased to an external worker
// but not handed out, because the server stopped or the worker disconnected,
// are ready again at once. That counts as no attempt.
func TestCallerGoesBeforeItsSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("page",
			"name: page\nsteps:\n  - {id: one, uses: worker.page, retry: {max: 0}}\n  - {id: two, needs: [], uses: "+
				"worker.page, retry: {max: 0}}\n")
		for name, after := range map[string]int{"with the lease": 1, "with the second of two": 3} {
			run := w.status(w.start("page", `{}`).ID, gatehouse.RunRunning)
			ctx, gone := context.WithCancel(w.as("bot"))
			g := gate.New(&hungUp{w.store, after, gone}, nil, w.hub, gate.Config{}, slog.New(slog.DiscardHandler))
			var counted endings
			leaving := runs.New(g, runs.Config{})
			leaving.SetMetrics(&counted)
			got, err := leaving.LeaseSteps(ctx, gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 2})
			w.must(err)
			if len(counted) != 0 {
				t.Errorf("%s: counted as ended: %v", name, counted)
			}
			if ctx.Err() == nil || len(got) != 0 {
				t.Fatalf("%s: %d steps were handed out to a caller that has gone", name, len(got))
			}
			again, err := w.runs.LeaseSteps(w.as("bot"), gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 2})
			w.must(err)
			if len(again) != 2 {
				t.Errorf("%s: %d steps are ready, want 2", name, len(again))
			}
			for _, l := range again {
				if l.Lease.Generation != 2 || l.Step.Attempts != 1 {
					t.Errorf("%s: %s has the generation %d and the attempt %d, want 2 and 1", name, l.Step.Key, l.Lease.Generation,
						l.Step.Attempts)
				}
			}
			for _, l := range again {
				_, err := w.runs.CompleteStep(w.as("bot"), l.Step.ID, gatehouse.StepResult{Generation: l.Lease.Generation})
				w.must(err)
			}
			w.status(run.ID, gatehouse.RunSucceeded)
		}
		run := w.status(w.start("page", `{}`).ID, gatehouse.RunRunning)
		ctx, gone := context.WithCancel(w.as("bot"))
		g := gate.New(&hungUp{w.store, 1, func() {
			_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
			w.must(err)
			gone()
		}}, nil, w.hub, gate.Config{}, slog.New(slog.DiscardHandler))
		got, err := runs.New(g, runs.Config{}).LeaseSteps(ctx, gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 2})
		w.must(err)
		if run = w.status(run.ID, gatehouse.RunCanceled); len(got) > 0 || run.StepOf("one").Status != gatehouse.StepCanceled {
			t.Errorf("%v of a run that was canceled meanwhile were handed out: %s", got, describe(run))
		}
	})
}

// TestStopKeepsNoLease: a server that stops finishes all leased steps,
// including those leased ahead of a slow store, and begins nothing more. So a
// restart costs no step an attempt or a lease's time.
func TestStopKeepsNoLease(t *testing.T) {
	t.Parallel()
	store, url := slowStore(t)
	w := newWorld(t, store)
	w.apply("quick", quick)
	w.status(w.start("quick", `{}`).ID, gatehouse.RunSucceeded)
	w.stop()
	const workers, more = 4, 20
	for range workers + 64 + more {
		w.start("quick", `{}`)
	}
	c, err := pgx.Connect(t.Context(), url)
	w.must(err)
	defer c.Close(t.Context())
	hold, err := c.Begin(t.Context())
	w.must(err)
	_, err = hold.Exec(t.Context(), `LOCK TABLE reflexion`)
	w.must(err)
	ctx, halt := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		runs.NewRuntime(store, w.runs, w.hub, runs.RuntimeConfig{Workers: workers, Owner: "test"},
			slog.New(slog.DiscardHandler)).Run(ctx)
	})
	defer running.Wait()
	defer halt()
	counted := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}, what string) (n int) {
		w.must(q.QueryRow(t.Context(), `SELECT count(*) FROM step WHERE `+what).Scan(&n))
		return n
	}
	for end := time.Now().Add(time.Minute); counted(hold, `status = 'running'`) < workers+64; {
		if time.Now().After(end) {
			t.Fatalf("%d steps are leased, want %d", counted(hold, `status = 'running'`), workers+64)
		}
		_, err := hold.Exec(t.Context(), `SELECT pg_sleep(0.01)`)
		w.must(err)
	}
	halt()
	w.must(hold.Rollback(t.Context()))
	running.Wait()
	for what, want := range map[string]int{
		`status = 'running'`: 0, `status = 'ready' AND attempts = 0`: more,
		`status = 'succeeded' AND attempts = 1`: 1 + workers + 64,
	} {
		if n := counted(c, what); n != want {
			t.Errorf("%s: %d steps, want %d", what, n, want)
		}
	}
}

// failsClaim is a store whose nth read of queues fails, after a call of before.
type failsClaim struct {
	gatehouse.Store
	n      int
	before func()
}

func (f *failsClaim) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	if f.n--; f.n == 0 {
		f.before()
		return errors.New("the store is not reached")
	}
	return f.Store.ViewQueues(ctx, fn)
}

// TestClaimOfTheSecondToolFails: a caller gets the steps of the first tool. If the caller has gone, they are
// ready again.
func TestClaimOfTheSecondToolFails(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("both", "name: both\nsteps:\n  - {id: one, uses: worker.page}\n  - {id: two, needs: [], uses: worker.mail}\n")
		run := w.status(w.start("both", `{}`).ID, gatehouse.RunRunning)
		tools := gatehouse.LeaseRequest{Tools: []string{"page", "mail"}, Max: 2}
		lease := func(ctx context.Context, before func()) []gatehouse.LeasedStep {
			t.Helper()
			g := gate.New(&failsClaim{w.store, 2, before}, nil, w.hub, gate.Config{}, slog.New(slog.DiscardHandler))
			got, err := runs.New(g, runs.Config{}).LeaseSteps(ctx, tools)
			w.must(err)
			return got
		}
		ctx, gone := context.WithCancel(w.as("bot"))
		if got := lease(ctx, gone); len(got) != 0 {
			t.Errorf("%d steps were handed out to a caller that has gone", len(got))
		}
		got := lease(w.as("bot"), func() {})
		if len(got) != 1 || got[0].Step.Key != "one" || got[0].Step.Attempts != 1 {
			t.Fatalf("the caller got %+v, want the step of the first tool", got)
		}
		rest, err := w.runs.LeaseSteps(w.as("bot"), tools)
		w.must(err)
		for _, l := range append(got, rest...) {
			_, err := w.runs.CompleteStep(w.as("bot"), l.Step.ID, gatehouse.StepResult{Generation: l.Lease.Generation})
			w.must(err)
		}
		w.status(run.ID, gatehouse.RunSucceeded)
	})
}
