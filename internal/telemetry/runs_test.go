package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// values returns the metrics of a registry, by name and labels.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			found[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// counting is a store that counts the calls of RunCounts.
type counting struct {
	gatehouse.Store
	counted int
}

type countingQueues struct {
	gatehouse.ReadQueues
	of *counting
}

func (c *counting) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return c.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error { return fn(countingQueues{q, c}) })
}

func (t countingQueues) RunCounts() (map[gatehouse.RunStatus]int, error) {
	t.of.counted++
	return t.ReadQueues.RunCounts()
}

func TestRuns(t *testing.T) {
	t.Parallel()
	s := migratedfile.Open(t, migratedfile.New(t), nil)
	err := s.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
		now := tx.Now()
		w := &gatehouse.Workflow{
			ID: "wfl_1", Tenant: "default", Name: "w", Version: 1, Workspace: "default", Source: "x", Digest: "d",
			CreatedBy: "ana", CreatedAt: now,
		}
		if err := tx.InsertWorkflow(w); err != nil {
			return err
		}
		return tx.InsertRun(&gatehouse.Run{
			ID: "run_1", Tenant: "default", Workflow: "w", Version: 1, Workspace: "default", Status: gatehouse.RunQueued,
			Trigger: gatehouse.TriggerAPI, Input: "{}", StartedBy: "ana", CreatedAt: now,
			Steps: []*gatehouse.Step{{
				ID: "stp_1", Tenant: "default", RunID: "run_1", Key: "a", Workflow: "w", Workspace: "default", Uses: "transform",
				Status: gatehouse.StepReady, CreatedAt: now, ReadyAt: &now,
			}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	r, store := prometheus.NewRegistry(), &counting{Store: s}
	m := telemetry.NewRuns(r, store)
	m.StepEnded(gatehouse.StepSucceeded)
	m.StepEnded(gatehouse.StepSucceeded)
	m.StepLeased(3 * time.Millisecond)
	m.ModelUsed(&gatehouse.ModelUsage{Provider: "openai", InputTokens: 100, OutputTokens: 7, Cost: "0.25",
		Currency: "USD"})
	want := map[string]float64{
		"gatehouse_runs queued": 1, "gatehouse_runs waiting": 0, "gatehouse_steps_ready": 1,
		"gatehouse_steps_total succeeded": 2, "gatehouse_steps_total failed_terminal": 0, "gatehouse_step_wait_seconds": 1,
		"gatehouse_model_tokens_total input openai": 100, "gatehouse_model_tokens_total output openai": 7,
		"gatehouse_model_cost_total USD openai": 0.25,
	}
	for range 2 {
		found := values(t, r)
		for name, n := range want {
			if got, ok := found[name]; !ok || got != n {
				t.Errorf("%s is %v (%v), want %v", name, got, ok, n)
			}
		}
		for name := range found {
			if strings.HasPrefix(name, "gatehouse_runs ") && gatehouse.RunStatus(strings.Fields(name)[1]).Final() {
				t.Errorf("%s: ended runs are not counted", name)
			}
		}
	}
	if store.counted != 1 {
		t.Errorf("two scrapes counted the open runs %d times", store.counted)
	}
}

// noRuns is a store without runs, whose RunCounts may fail.
type noRuns struct {
	gatehouse.Store
	err error
}

type noQueues struct {
	gatehouse.ReadQueues
	of *noRuns
}

func (s *noRuns) ViewQueues(_ context.Context, fn func(gatehouse.ReadQueues) error) error {
	return fn(noQueues{of: s})
}

func (noQueues) DueLanes(_, _ string, _ gatehouse.Lane, _, _ int) ([]gatehouse.DueLane, error) {
	return nil, nil
}

func (q noQueues) RunCounts() (map[gatehouse.RunStatus]int, error) {
	return map[gatehouse.RunStatus]int{}, q.of.err
}

// TestRunsThatCannotBeCounted: after a failed count, old counts are not reported as present ones.
func TestRunsThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, r := &noRuns{}, prometheus.NewRegistry()
		telemetry.NewRuns(r, store)
		counted := func() bool {
			_, ok := values(t, r)["gatehouse_runs queued"]
			return ok
		}
		if !counted() {
			t.Error("the runs are not counted")
		}
		time.Sleep(time.Minute)
		store.err = errors.New("the store is away")
		if _, err := r.Gather(); err == nil {
			t.Error("the failure is not reported")
		}
		if counted() {
			t.Error("counts of the minute before are reported")
		}
	})
}
