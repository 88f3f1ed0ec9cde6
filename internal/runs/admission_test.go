package runs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// TestFairness: hundreds of ready steps do not delay another workspace's single
// step.
func TestFairness(t *testing.T) {
	onBoth(t, testFairness, func(_ *runs.Config, c *runs.RuntimeConfig) { c.Workers = 2 })
}

func testFairness(t *testing.T, w *world) {
	w.apply("busy", `name: busy
steps:
  - {id: one, uses: model.local, for_each: input.items, max_items: 500, with: {model: small,
      prompt: "about ${{ item }}"}}
`)
	w.apply("quick", "name: quick\nworkspace: other\nsteps:\n  - {id: one, uses: transform, with: {}}\n")
	items := make([]string, 500)
	for i := range items {
		items[i] = fmt.Sprint(i)
	}
	// The noisy steps block until the quick run has been started; all but the first hundred block until
	// the quick run has ended.
	there, ended := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(there) })
	defer close(ended)
	defer release()
	var since atomic.Int64
	w.models.before = func() {
		<-there
		if since.Add(1) > 100 {
			<-ended
		}
	}
	noisy := w.start("busy", gatehouse.JSON(`{"items":[`+strings.Join(items, ",")+`]}`))
	w.until(noisy.ID, "fanned out", func(r *gatehouse.Run) bool { return len(r.Steps) > 100 })
	one := w.start("quick", `{}`)
	release()
	w.status(one.ID, gatehouse.RunSucceeded)
	if got, err := w.runs.FindRun(w.as("admin"), noisy.ID); err != nil || got.Status.Final() {
		t.Errorf("the noisy run is %s before the quick one: nothing was measured (%v)", got.Status, err)
	}
}

// TestAdmissionOverReplicas: whatever the number of concurrent admissions, a
// tenant starts no more runs per minute than allowed.
func TestAdmissionOverReplicas(t *testing.T) {
	onBoth(t, testAdmissionOverReplicas, func(c *runs.Config, _ *runs.RuntimeConfig) {
		c.Limits = func(string) runs.Limits { return runs.Limits{MaxRunsPerMin: 5} }
	})
}

func testAdmissionOverReplicas(t *testing.T, w *world) {
	w.stop() // the runtime, which would admit as well
	for _, name := range []string{"a", "b", "c", "d"} {
		w.apply(name, "name: "+name+"\nsteps:\n  - {id: one, uses: transform, with: {}}\n")
		for range 5 {
			w.start(name, `{}`)
		}
	}
	var admitters sync.WaitGroup
	for range 8 {
		admitters.Go(func() {
			for range 5 {
				if _, err := w.runs.Admit(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	admitters.Wait()
	page, err := w.runs.ListRuns(w.as("admin"), gatehouse.RunFilter{Status: gatehouse.RunQueued, Limit: 100})
	w.must(err)
	if len(page.Items) != 15 {
		t.Errorf("%d runs are queued, want 15", len(page.Items))
	}
}

// TestWokenInVain: the action of a waiting step had ended, but a replay of its
// dead letter continued it before the runtime looked. The runtime looks only
// once.
func TestWokenInVain(t *testing.T) { onBoth(t, testWokenInVain) }

func testWokenInVain(t *testing.T, w *world) {
	w.apply("triage", triage)
	later := &connector.Error{Kind: connector.NotSent, Code: "busy", RetryAfter: time.Hour}
	w.ledger.fail["INC1"] = []*connector.Error{{Kind: connector.Terminal, Code: "refused"}, later}
	run := w.status(w.start("triage", `{"id":"INC1","text":"x"}`).ID, gatehouse.RunWaitingApproval)
	w.stop()
	w.must(w.decide(w.action(run, "update"), "ana", gatehouse.Approve))
	w.until(run.ID, "failed",
		func(r *gatehouse.Run) bool { return w.action(r, "update").Status == gatehouse.StatusFailed })
	_, err := w.gate.ReplayDeadLetters(w.as("admin"), gatehouse.ReplayRequest{All: true})
	w.must(err)
	if n, err := w.runs.Wake(t.Context()); n != 1 || err != nil {
		t.Fatalf("woke %d, %v", n, err)
	}
	w.status(run.ID, gatehouse.RunWaitingApproval)
	if n, err := w.runs.Wake(t.Context()); n != 0 || err != nil {
		t.Errorf("woke %d in vain again, %v", n, err)
	}
}
