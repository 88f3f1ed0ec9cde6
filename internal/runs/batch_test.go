package runs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

const quick = "name: quick\nsteps:\n  - {id: make, uses: transform, with: {n: 1}}\n"

const slow = "name: slow\nsteps:\n  - {id: ask, uses: model.acme, with: {model: small, prompt: hello}}\n"

// announced records the group sizes that are announced to the store.
type announced struct {
	gatehouse.Announcer
	mu    sync.Mutex
	sizes []int
}

func (a *announced) Announce(n int) func(context.Context) context.Context {
	a.mu.Lock()
	a.sizes = append(a.sizes, n)
	a.mu.Unlock()
	return a.Announcer.Announce(n)
}

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

// TestLeasedAtOnceAreStoredTogether: of steps leased together, those that only
// compute a value are stored together and do not wait for slow ones. Each step
// reports once that it is being stored, and then that it is done.
func TestLeasedAtOnceAreStoredTogether(t *testing.T) {
	t.Parallel()
	store, err := engines["postgres"](t)
	if err != nil {
		t.Fatal(err)
	}
	counted := &announced{Announcer: store.(gatehouse.Announcer)}
	w := newWorld(t, counted)
	w.apply("quick", quick)
	w.apply("slow", slow)
	w.status(w.start("quick", `{}`).ID, gatehouse.RunSucceeded) // from here on the workflow is cached
	w.status(w.start("slow", `{}`).ID, gatehouse.RunSucceeded)
	w.stop()
	const n = 5
	for range n {
		w.start("quick", `{}`)
	}
	w.start("slow", `{}`)
	steps := append(claimed(w, "quick", n), claimed(w, "slow", 1)...)
	counted.sizes = nil
	others := make(chan struct{})
	w.models.answer = func(gatehouse.JSON) gatehouse.JSON {
		select {
		case <-others:
		case <-time.After(20 * time.Second):
			t.Error("a transform waits for a model step")
		}
		return `{"text":"late"}`
	}
	var mu sync.Mutex
	told := map[string]string{}
	done := 0
	w.runs.ExecuteAll(t.Context(), steps, runs.ExecuteOptions{
		Worker:  "test",
		Storing: func(s *gatehouse.Step) { mu.Lock(); told[s.ID] += "storing "; mu.Unlock() },
		Done: func(s *gatehouse.Step, err error) {
			mu.Lock()
			defer mu.Unlock()
			told[s.ID] += fmt.Sprint("done ", err)
			if done++; done == n {
				close(others)
			}
		},
	})
	for _, s := range steps {
		if told[s.ID] != "storing done <nil>" {
			t.Errorf("a step of %s reported %q", s.Workflow, told[s.ID])
		}
		w.status(s.RunID, gatehouse.RunSucceeded)
	}
	if len(counted.sizes) != 1 || counted.sizes[0] != n {
		t.Errorf("announced to the store were %v, want %d at once", counted.sizes, n)
	}
}

// TestLeasedAtOnceFailApart: steps that are stored together fail separately, and a lost lease is
// not an error.
func TestLeasedAtOnceFailApart(t *testing.T) {
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
		came := map[string]error{}
		var mu sync.Mutex
		w.runs.ExecuteAll(t.Context(), steps, runs.ExecuteOptions{
			Worker: "test", Storing: func(*gatehouse.Step) {},
			Done: func(s *gatehouse.Step, err error) { mu.Lock(); came[s.ID] = err; mu.Unlock() },
		})
		if came[steps[0].ID] != nil || came[steps[1].ID] != nil || !errors.Is(came[steps[2].ID], gatehouse.ErrNotFound) {
			t.Errorf("came to %v", came)
		}
		w.status(steps[0].RunID, gatehouse.RunSucceeded)
		run, err := w.runs.FindRun(w.as("admin"), steps[1].RunID)
		w.must(err)
		if s := run.StepOf("make"); s.Status != gatehouse.StepRunning || s.Generation != 1 {
			t.Errorf("a lost lease left the step %s under generation %d", s.Status, s.Generation)
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
	cluster := pgtest.New(t)
	url := cluster.DSN("postgres")
	store, err := postgres.Open(t.Context(), postgres.Config{URL: url + "&lock_timeout=5min", MaxConns: 92, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return store, url
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
