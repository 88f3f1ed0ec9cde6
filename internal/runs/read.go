package runs

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// head returns a run of the caller's tenant without its steps.
func (r *Runs) head(ctx context.Context, id string) (run *gatehouse.Run, err error) {
	err = r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if run, err = tx.FindRunHead(id); err != nil {
			return err
		}
		return r.gate.CheckMayReadRun(tx, c, run)
	})
	return run, err
}

// refusal returns not_found when the caller may not read the run, else err.
func (r *Runs) refusal(ctx context.Context, id string, err error) error {
	if _, gone := r.head(ctx, id); gone != nil {
		return gone
	}
	return err
}

// FindRun returns a run of the caller's tenant with its steps.
func (r *Runs) FindRun(ctx context.Context, id string) (run *gatehouse.Run, err error) {
	err = r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if run, err = tx.FindRun(id); err != nil {
			return err
		}
		return r.gate.CheckMayReadRun(tx, c, run)
	})
	if err != nil {
		return nil, err
	}
	return run.Positioned(), nil
}

// ListRuns returns a page of the tenant's runs that the caller may read.
func (r *Runs) ListRuns(ctx context.Context, f gatehouse.RunFilter) (page gatehouse.Page[*gatehouse.Run], err error) {
	err = r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		f.ReadBy = r.gate.ReadsAs(c.Principal)
		page, err = tx.ListRuns(f)
		return err
	})
	return page, err
}

// WaitRun returns when the run has ended or its state has changed, or after the given time, with
// the present state of the run.
func (r *Runs) WaitRun(ctx context.Context, id string, wait time.Duration) (*gatehouse.Run, error) {
	return r.WatchRun(ctx, id, "", wait)
}

// maxPosition bounds a caller's position, in bytes.
const maxPosition = 64

// WatchRun is WaitRun starting from a position.
func (r *Runs) WatchRun(ctx context.Context, id, since string, wait time.Duration) (*gatehouse.Run, error) {
	var v gatehouse.Violations
	v.CheckText("/since", since, maxPosition)
	if err := v.Err(); err != nil {
		return nil, err
	}
	first, err := r.FindRun(ctx, id)
	if err != nil || first.Status.Final() || wait <= 0 || since != "" && since != first.Position {
		return first, err
	}
	last := first
	// A change before the subscription sent no hint to this caller: Poll reads at once.
	err = usecase.Poll(ctx, r.Hints, min(wait, gatehouse.MaxWait), []string{first.ID}, func() (bool, error) {
		now, err := r.FindRun(ctx, id)
		if err != nil {
			return true, err
		}
		last = now
		return now.Status.Final() || now.Position != first.Position, nil
	})
	if err != nil {
		return nil, err
	}
	return last, nil
}

// RunDetail returns a run with everything that belongs to it.
func (r *Runs) RunDetail(ctx context.Context, id string) (*gatehouse.RunDetail, error) {
	var out *gatehouse.RunDetail
	err := r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		run, err := tx.FindRun(id)
		if err == nil {
			err = r.gate.CheckMayReadRun(tx, c, run)
		}
		if err != nil {
			return err
		}
		out, err = r.detail(tx, run.Positioned())
		return err
	})
	return out, err
}

func (r *Runs) detail(tx gatehouse.ReadTx, run *gatehouse.Run) (out *gatehouse.RunDetail, err error) {
	out = &gatehouse.RunDetail{Run: run, Needs: make(map[string][]string), Actions: []*gatehouse.Action{}}
	if out.Attempts, err = tx.ListAttempts(run.ID); err != nil {
		return nil, err
	}
	if out.Usage, err = tx.ListUsage(run.ID); err != nil {
		return nil, err
	}
	if out.Signals, err = tx.ListSignals(run.ID); err != nil {
		return nil, err
	}
	listed := make(map[string]bool)
	for _, s := range run.Steps {
		if s.ActionID == "" || listed[s.ActionID] { // steps with the same idempotency key share an action
			continue
		}
		listed[s.ActionID] = true
		a, err := tx.FindAction(s.ActionID)
		if err != nil {
			return nil, err
		}
		out.Actions = append(out.Actions, a)
	}
	def, err := r.definition(tx, run.Tenant, run.Workflow, run.Version)
	if err != nil {
		return nil, err
	}
	for _, s := range def.Steps {
		out.Needs[s.ID] = usecase.OrEmpty(s.Needs)
	}
	out.Attempts, out.Usage = usecase.OrEmpty(out.Attempts), usecase.OrEmpty(out.Usage)
	out.Signals = usecase.OrEmpty(out.Signals)
	return out, nil
}

// StepOfAction returns the step that proposed an action, or adopted it under its key.
// It reads this from the store, since a proposer can forge an action's context. The error has
// code not_found when there is no such step.
func (r *Runs) StepOfAction(ctx context.Context, actionID string) (step *gatehouse.Step, err error) {
	err = r.View(ctx, "step", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if step, err = tx.FindStepByAction(actionID); err != nil {
			return err
		}
		return r.gate.CheckMayReadRunID(tx, c, step.RunID)
	})
	return step, err
}

// ListReflexions returns the lessons of finished runs, newest first.
func (r *Runs) ListReflexions(
	ctx context.Context, workflow, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.Reflexion], err error) {
	err = r.View(ctx, "workflow", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListReflexions(workflow, r.gate.ReadsAs(c.Principal), cursor, limit)
		return err
	})
	return page, err
}

// RunBundle returns the evidence of a finished run.
func (r *Runs) RunBundle(ctx context.Context, id string) (*gatehouse.Bundle, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	run, err := r.FindRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if !run.Status.Final() {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "the run has not ended: it is %s", run.Status).With("current_status",
			run.Status)
	}
	if err := r.bundle(ctx, run); err != nil {
		return nil, err
	}
	var out *gatehouse.Bundle
	err = r.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		out, err = tx.FindBundle(run.ID)
		return err
	})
	return out, usecase.NotFound(err, "evidence")
}
