package runs_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

const quick = "name: quick\nsteps:\n  - {id: make, uses: transform, with: {n: 1}}\n"

const slow = "name: slow\nsteps:\n  - {id: ask, uses: model.acme, with: {model: small, prompt: hello}}\n"

func claimed(w *world, workflow string, n int) []*gatehouse.Step {
	w.Helper()
	steps, err := w.runs.Claim(w.Context(), "test", gatehouse.StepShare{
		Lane: gatehouse.Lane{Tenant: gatehouse.DefaultTenant, Workspace: "default", Workflow: workflow}, Limit: n,
	})
	w.must(err)
	if len(steps) != n {
		w.Fatalf("leased %d steps of %s, want %d", len(steps), workflow, n)
	}
	return steps
}

// TestStoringIsCalledOnce: each step reports once that it is being stored, however it ends, and a lost lease
// is not an error.
func TestStoringIsCalledOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("quick", quick)
		w.status(w.start("quick", `{}`).ID, gatehouse.RunSucceeded)
		w.stop()
		for range 3 {
			w.start("quick", `{}`)
		}
		steps := claimed(w, "quick", 3)
		steps[1].Generation-- // a lease that another worker holds
		steps[2].Head, steps[2].RunID = nil, "run_none"
		for i, want := range []error{nil, nil, gatehouse.ErrNotFound} {
			storing := 0
			err := w.runs.ExecuteChain(t.Context(), steps[i], "test", 0, func() { storing++ })
			if !errors.Is(err, want) || storing != 1 {
				t.Errorf("step %d came to %v and was stored %d times, want %v, once", i, err, storing, want)
			}
		}
		w.status(steps[0].RunID, gatehouse.RunSucceeded)
		run, err := w.runs.FindRun(w.as("admin"), steps[1].RunID)
		w.must(err)
		if s := run.StepOf("make"); s.Status != gatehouse.StepRunning || s.Generation != 1 {
			t.Errorf("a lost lease left the step %s under generation %d", s.Status, s.Generation)
		}
	})
}

// TestTimeoutOfAModel: a model step whose call ends by the step's timeout fails with the failure of the call, even
// after its lease was renewed.
func TestTimeoutOfAModel(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("timed", "name: timed\nsteps:\n  - {id: ask, uses: model.acme, timeout: 1s, retry: {max: 0},\n"+
			"     with: {model: small, prompt: hello}}\n")
		started := make(chan string, 1)
		w.models.slow = time.Hour
		w.models.before = func() { w.hub.Notify(<-started) } // renews the lease
		run := w.start("timed", `{}`)
		started <- run.ID
		run = w.status(run.ID, gatehouse.RunFailed)
		if run.Failure.Code != "stopped" {
			t.Errorf("%s", describe(run))
		}
	})
}

// TestWorkersAreBounded: however many steps are leased ahead, no more execute
// at a time than there are workers.
func TestWorkersAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var at atomic.Int64
		come, release := make(chan struct{}, 12), make(chan struct{})
		w.models.before = func() {
			at.Add(1)
			come <- struct{}{}
			<-release
		}
		w.apply("slow", slow)
		var rs []*gatehouse.Run
		for range 12 {
			rs = append(rs, w.start("slow", `{}`))
		}
		<-come
		<-come
		select {
		case <-come:
			t.Error("a third model is called besides two")
		case <-time.After(150 * time.Millisecond): // time for one too many
		}
		close(release)
		for _, r := range rs {
			w.status(r.ID, gatehouse.RunSucceeded)
		}
		if at.Load() != 12 {
			t.Errorf("%d models were asked", at.Load())
		}
	}, func(_ *runs.Config, c *runs.RuntimeConfig) { c.Workers = 2 })
}

// slowStore is a store that a test can block with a lock while all allowed
// steps are leased: no lock times out, and blocked transactions leave
// connections for further leases.
func slowStore(t *testing.T) (gatehouse.Store, string) {
	t.Helper()
	url := migrated.Database(t)
	store, err := postgres.Open(t.Context(), postgres.Config{URL: url + "&lock_timeout=5min", MaxConns: 92,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return store, pgtest.Superuser(url)
}

// TestLeasesGoAhead: while the store is slow, steps are leased ahead of those
// that are not stored yet, up to a bound.
func TestLeasesGoAhead(t *testing.T) {
	t.Parallel()
	store, url := slowStore(t)
	w := newWorld(t, store)
	w.apply("quick", quick)
	w.status(w.start("quick", `{}`).ID, gatehouse.RunSucceeded)
	w.stop()
	const workers, most = 16, 16 + 64
	var rs []*gatehouse.Run
	for range most + 20 {
		rs = append(rs, w.start("quick", `{}`))
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
	r := runs.NewRuntime(store, w.runs, w.hub, runs.RuntimeConfig{Workers: workers, Owner: "test"},
		slog.New(slog.DiscardHandler))
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer halt()
	leased := func() (n int) {
		w.must(hold.QueryRow(t.Context(), `SELECT count(*) FROM step WHERE status = 'running'`).Scan(&n))
		return n
	}
	for end := time.Now().Add(time.Minute); leased() < most && time.Now().Before(end); {
		_, err := hold.Exec(t.Context(), `SELECT pg_sleep(0.01)`)
		w.must(err)
	}
	_, err = hold.Exec(t.Context(), `SELECT pg_sleep(0.2)`) // time for one too many
	w.must(err)
	if n := leased(); n != most {
		t.Errorf("%d steps are leased while none can be stored, want %d", n, most)
	}
	w.must(hold.Rollback(t.Context()))
	for _, r := range rs {
		w.status(r.ID, gatehouse.RunSucceeded)
	}
}
