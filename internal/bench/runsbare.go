package bench

import (
	"context"
	"time"
)

// stepper executes the steps of runs by bare statements on tables with the gate's indexes, checks and triggers. It
// has the methods of [Queue] except Is.
type stepper interface {
	Store(ctx context.Context, n int) error
	Carry(ctx context.Context, n int) (time.Duration, error)
	Close() error
}

// leased has the columns of a leased step that the later statements need.
type leased struct {
	seq, run, position int64
	id, runID          string
}

// stepLeaf and runLeaf are as long as the gate's leaves.
func stepLeaf(s leased) string {
	return `{"actor":"bench","at":"2026-11-20T12:00:00.000000Z","data":{"attempt":1,"step":"s0","step_id":"` + s.id +
		`"},"from":"running","id":"evt` + s.id[3:] + `","subject":"` + s.runID +
		`","tenant":"default","to":"succeeded","type":"step.succeeded"}`
}

func runLeaf(s leased) string {
	return `{"actor":"bench","at":"2026-11-20T12:00:00.000000Z","from":"running","id":"evt` + s.runID[3:] +
		`","subject":"` + s.runID +
		`","tenant":"default","to":"succeeded","type":"run.succeeded"}`
}

// The sentences of a reflexion, about as long as the gate's.
const (
	bareAttempted = "The workflow line, version 1, with 10 steps."
	bareHappened  = "All steps have succeeded."
	bareOtherwise = "Nothing."
)

// batches executes n steps in batches of size.
func batches(ctx context.Context, n, size int, carry func(size int) (int, error)) (time.Duration, error) {
	start := time.Now()
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		done, err := carry(min(size, n))
		if err != nil {
			return 0, err
		}
		if done == 0 {
			return 0, errNoSteps
		}
		n -= done
	}
	return time.Since(start), nil
}
