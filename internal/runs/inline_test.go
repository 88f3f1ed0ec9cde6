package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// leaseCount counts the leased steps.
type leaseCount struct {
	gatehouse.Store
	n *atomic.Int64
}

func (l leaseCount) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	taken := 0
	err := l.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(claiming{q, &taken}) })
	if err == nil {
		l.n.Add(int64(taken))
	}
	return err
}

// onwards runs a test on each engine, without a runtime. run executes one run
// of a workflow to its end and counts the leases that it took.
func onwards(t *testing.T, test func(w *world, run func(name string, onward int) (*gatehouse.Run, int64))) {
	t.Helper()
	onEngines(t, func(t *testing.T, store gatehouse.Store) {
		leases := &atomic.Int64{}
		w := newWorld(t, leaseCount{store, leases})
		w.stop()
		test(w, func(name string, onward int) (*gatehouse.Run, int64) {
			t.Helper()
			before := leases.Load()
			ctx, stop := context.WithCancel(t.Context())
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				c := runs.RuntimeConfig{Owner: "test", InlineLimit: onward, Poll: 50 * time.Millisecond}
				runs.NewRuntime(w.store, w.runs, w.hub, c, slog.New(slog.DiscardHandler)).Run(ctx)
			}()
			run := w.until(w.start(name, `{"x":7}`).ID, "bundled", func(r *gatehouse.Run) bool { return r.Evidence != "" })
			stop()
			<-stopped
			return run, leases.Load() - before
		})
	})
}

const row = `name: row
steps:
  - {id: a, uses: transform, with: {n: 1}}
  - {id: b, uses: transform, with: {n: "${{ steps.a.output.n + 1 }}"}}
  - {id: c, if: steps.b.output.n > 5, uses: transform, with: {}}
  - {id: d, uses: transform, with: {c: "${{ has(steps.c.output) }}"}}
  - {id: ask, uses: model.acme, with: {model: small, prompt: hello}}
  - {id: e, uses: transform, with: {said: "${{ steps.ask.output.text }}"}}
  - {id: f, needs: [e, b], uses: transform, with: {n: "${{ steps.b.output.n }}"}}
  - {id: g, uses: transform, with: {f: "${{ steps.f.output.n }}", b: "${{ steps.b.output.n }}"}}
  - {id: h, needs: [f, g], uses: transform, with: {f: "${{ steps.f.output.n }}"}}
  - {id: i, uses: transform, with: {x: "${{ input.x }}"}}
  - {id: j, uses: transform, with: {x: "${{ input.x + steps.i.output.x }}"}}
  - {id: k, uses: transform, with: {at: "${{ now < timestamp('2000-01-01T00:00:00Z') }}"}}
output: {n: "${{ steps.g.output.f }}"}
`

// TestOnward: a run with inline steps shows everything that separate leases
// would have left: rows, attempts, outputs, and log entries in order.
func TestOnward(t *testing.T) {
	onwards(t, func(w *world, run func(string, int) (*gatehouse.Run, int64)) {
		w.Helper()
		w.apply("row", row)
		apart, of := run("row", -1)
		if of != 12 {
			w.Errorf("%d leases for twelve steps, each under its own", of)
		}
		joined, few := run("row", 0)
		// a with b, c, d; the model with e; f, which reads an earlier step,
		// with g and h; i, which reads the input, with j; k, which reads the
		// clock.
		if few != 5 {
			w.Errorf("%d leases, want 5", few)
		}
		if d := cmp.Diff(w.seen(apart), w.seen(joined)); d != "" {
			w.Errorf("with a lease each (-), and carried on (+):\n%s", d)
		}
		if joined.Status != gatehouse.RunSucceeded || joined.Output != `{"n":2}` || !joined.StepOf("c").Skipped {
			w.Errorf("%s\noutput %s", describe(joined), joined.Output)
		}
		for _, s := range joined.Steps {
			if s.ReadyAt == nil || s.StartedAt == nil || s.FinishedAt == nil || s.StartedAt.Before(*s.ReadyAt) ||
				s.FinishedAt.Before(*s.StartedAt) {
				w.Errorf("the times of %s: %v, %v, %v", s.Key, s.ReadyAt, s.StartedAt, s.FinishedAt)
			}
		}
	})
}

// seen lists everything visible of a run, except ids and times.
func (w *world) seen(run *gatehouse.Run) (lines []string) {
	w.Helper()
	plain := strings.NewReplacer(run.ID, "run")
	keys := map[string]string{}
	for _, s := range run.Steps {
		keys[s.ID] = s.Key
		lines = append(lines,
			plain.Replace(
				fmt.Sprint(s.Key, s.Status, s.Attempts, s.Generation, s.IdempotencyKey, s.Input, s.Output, s.Skipped, s.Failure,
					s.LeaseOwner, s.LeaseUntil)))
	}
	w.must(w.store.View(w.Context(), run.Tenant, func(tx gatehouse.ReadTx) error {
		attempts, err := tx.ListAttempts(run.ID)
		for _, a := range attempts {
			lines = append(lines,
				fmt.Sprint("attempt at ", keys[a.StepID], a.Attempt, a.Generation, a.Worker, a.Outcome, a.Code, a.Detail))
		}
		if err != nil {
			return err
		}
		entries, err := tx.ListRunEntries(run.ID)
		for _, e := range entries {
			var leaf struct {
				Type, From, To, Actor string
				Data                  map[string]any
			}
			if err := json.Unmarshal([]byte(e.Body), &leaf); err != nil {
				return err
			}
			delete(leaf.Data, "step_id")
			lines = append(lines, fmt.Sprint(leaf))
		}
		return err
	}))
	return lines
}

// TestOnwardIsBounded: one lease carries at most the configured number of
// inline steps.
func TestOnwardIsBounded(t *testing.T) {
	onwards(t, func(w *world, run func(string, int) (*gatehouse.Run, int64)) {
		w.Helper()
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, "  - {id: s%d, uses: transform, with: {n: %d}}\n", i, i)
		}
		w.apply("line", "name: line\nlimits: {max_concurrency: 1}\nsteps:\n"+b.String())
		for onward, want := range map[int]int64{-1: 20, 1: 10, 4: 4, 16: 2, 0: 2} {
			if ended, n := run("line", onward); n != want || ended.Status != gatehouse.RunSucceeded {
				w.Errorf("%d leases with %d steps onward, want %d: %s", n, onward, want, ended.Status)
			}
		}
	})
}

// TestOnwardIsBoundedInSize: the inline steps of one transaction together are
// no larger than one step may be.
func TestOnwardIsBoundedInSize(t *testing.T) {
	onwards(t, func(w *world, run func(string, int) (*gatehouse.Run, int64)) {
		w.Helper()
		var b strings.Builder
		for i := range 8 {
			fmt.Fprintf(&b, "  - {id: s%d, uses: transform, with: {t: \"${{ steps.s%d.output.t + steps.s%[2]d.output.t }}\"}}\n",
				i+1, i)
		}
		w.apply("twice",
			"name: twice\nsteps:\n  - {id: s0, uses: transform, with: {t: "+strings.Repeat("x", 1000)+"}}\n"+b.String()+
				"  - {id: end, uses: transform, with: {n: 1}}\n")
		ended, n := run("twice", 16)
		if size := len(ended.StepOf("s8").Output); n != 2 || size != 256_008 || ended.Status != gatehouse.RunSucceeded {
			w.Errorf("%d leases, want one for 254,000 bytes and one for the rest; the last output has %d; %s", n, size,
				describe(ended))
		}
	})
}

// TestOnwardKeepsNobodyBack: an inline step that cannot be stored, because
// another step holds its key, does not affect the step before it.
func TestOnwardKeepsNobodyBack(t *testing.T) {
	onwards(t, func(w *world, _ func(string, int) (*gatehouse.Run, int64)) {
		w.Helper()
		w.apply("line",
			"name: line\nsteps:\n  - {id: one, uses: transform, with: {}}\n  - {id: two, uses: transform, with: {}}\n")
		w.apply("thief",
			"name: thief\nsteps:\n  - {id: one, uses: model.acme, with: {model: small, prompt: hello}, idempotency_key: \"${{ "+
				"input.key }}\"}\n")
		first := w.start("line", `{}`)
		other := w.start("thief", gatehouse.JSON(`{"key":"`+first.ID+`:two"}`))
		carry := func(workflow string) {
			w.Helper()
			steps, err := w.runs.Claim(w.Context(), "test", gatehouse.StepShare{
				Lane: gatehouse.Lane{Tenant: gatehouse.DefaultTenant, Workspace: "default", Workflow: workflow}, Limit: 1,
			})
			w.must(err)
			if len(steps) != 1 {
				w.Fatalf("leased %d steps of %s", len(steps), workflow)
			}
			w.must(w.runs.ExecuteChain(w.Context(), steps[0], "test", 16, func() {}))
		}
		carry("thief")
		w.status(other.ID, gatehouse.RunSucceeded)
		carry("line")
		run, err := w.runs.FindRun(w.as("admin"), first.ID)
		w.must(err)
		if one, two := run.StepOf("one"), run.StepOf("two"); one.Status != gatehouse.StepSucceeded ||
			two.Status != gatehouse.StepReady {
			w.Errorf("one is %s, two %s: %s", one.Status, two.Status, describe(run))
		}
	})
}
