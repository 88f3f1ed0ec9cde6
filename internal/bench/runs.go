package bench

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// lineSteps is the number of consecutive steps in a run of the workflow "line".
const lineSteps = 10

// lineName is the name of the workflow whose steps do nothing.
const lineName = "line"

// lineSource is a workflow of n consecutive steps that do nothing.
func lineSource(n int) string {
	var b strings.Builder
	b.WriteString("name: " + lineName + "\nsteps:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: s%d\n    uses: transform\n    with: {n: %d}\n", i, i)
	}
	return b.String()
}

// insertWorkflow stores a workflow directly, without the use case and its checks.
func insertWorkflow(tx gatehouse.Tx, tenant, name, source string) error {
	return tx.InsertWorkflow(&gatehouse.Workflow{
		ID: gate.NewID("wfl"), Tenant: tenant, Name: name, Version: 1, Workspace: "default", Source: source,
		Digest: gatehouse.NewDigest(gatehouse.StringJSON(source)), CreatedBy: "bench", CreatedAt: tx.Now(),
	})
}

// lineRun is a new run of the workflow "line" as it is stored: its first step is ready.
func lineRun(tenant string, steps int, now time.Time) *gatehouse.Run {
	run := &gatehouse.Run{
		ID: gate.NewID("run"), Tenant: tenant, Workflow: lineName, Version: 1, Workspace: "default",
		Status:  gatehouse.RunQueued,
		Trigger: gatehouse.TriggerAPI, Input: "{}", StartedBy: "bench", CreatedAt: now,
	}
	for i := range steps {
		s := &gatehouse.Step{
			ID: gate.NewID("stp"), Tenant: tenant, RunID: run.ID, Key: fmt.Sprintf("s%d", i), Index: i,
			Workflow:  lineName,
			Workspace: "default", Uses: "transform", Status: gatehouse.StepBlocked, CreatedAt: now,
		}
		if i == 0 {
			s.Status, s.ReadyAt = gatehouse.StepReady, &now
		}
		run.Steps = append(run.Steps, s)
	}
	return run
}

// begin stores a new run and moves it to running.
func begin(tx gatehouse.Tx, run *gatehouse.Run) error {
	run.Status = gatehouse.RunQueued
	if err := tx.InsertRun(run); err != nil {
		return err
	}
	now := tx.Now()
	run.Status, run.StartedAt = gatehouse.RunRunning, &now
	return tx.MoveRun(run, gatehouse.RunQueued)
}

// fillLines stores n runs of the workflow "line" and, the first time, the workflow.
func fillLines(ctx context.Context, store gatehouse.Store, n int) error {
	const tenant = gatehouse.DefaultTenant
	err := store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		if _, err := tx.FindWorkflow(lineName, 0); err == nil {
			return nil
		}
		return insertWorkflow(tx, tenant, lineName, lineSource(lineSteps))
	})
	return inBatches(n, func(size int) error {
		if err != nil {
			return err
		}
		return store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			for range size {
				if err := begin(tx, lineRun(tenant, lineSteps, tx.Now())); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// inBatches calls fn with batch sizes whose sum is n.
func inBatches(n int, fn func(size int) error) error {
	for n > 0 {
		size := min(fillBatch, n)
		if err := fn(size); err != nil {
			return err
		}
		n -= size
	}
	return nil
}

// endCounter counts the runs that have ended, by the hints on [runs.TopicRuns].
type endCounter struct {
	usecase.Hints
	left atomic.Int64
	done atomic.Pointer[chan struct{}]
}

// Notify counts the hint of an ended run, and passes each hint on.
func (e *endCounter) Notify(topic string) {
	if topic == runs.TopicRuns && e.left.Add(-1) == 0 {
		if done := e.done.Load(); done != nil {
			close(*done)
		}
	}
	e.Hints.Notify(topic)
}

// expect returns a channel that is closed when n runs have ended. No run may start meanwhile,
// because a start causes the same hint.
func (e *endCounter) expect(n int) <-chan struct{} {
	done := make(chan struct{})
	e.done.Store(&done)
	e.left.Store(int64(n))
	return done
}

// carryLines runs a runtime until n runs have ended. inFlight is the number of concurrent steps; inlineLimit is the
// InlineLimit of [runs.RuntimeConfig].
func (w *world) carryLines(ctx context.Context, e *endCounter, inFlight, inlineLimit, n int) (*outcome, error) {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	config := runs.RuntimeConfig{Workers: inFlight, InlineLimit: inlineLimit, Owner: "bench"}
	r := runs.NewRuntime(w.Store, w.Runs, e, config, w.Log)
	done, stopped := e.expect(n), make(chan struct{})
	cpu, start := cpuTime(), time.Now()
	go func() { defer close(stopped); r.Run(run) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	o := &outcome{done: n * lineSteps, elapsed: time.Since(start), cpu: cpuTime() - cpu}
	cancel()
	<-stopped
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return o, nil
}

// bundle finishes the background work, which is not measured: it numbers the waiting leaves and
// makes the evidence of ended runs.
func (w *world) bundle(ctx context.Context) error {
	if err := w.sequence(ctx); err != nil {
		return err
	}
	for {
		if n, err := w.Runs.Bundle(ctx); err != nil || n == 0 {
			return err
		}
	}
}
