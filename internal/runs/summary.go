package runs

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// WorkflowSummary returns the newest version of a workflow with its source, and the
// outcomes of its runs in the last 30 days.
func (r *Runs) WorkflowSummary(ctx context.Context, name string) (w *gatehouse.WorkflowSummary, err error) {
	err = r.View(ctx, "workflow", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		w, err = tx.FindWorkflowSummary(name, tx.Now().Add(-summarized))
		return err
	})
	return w, err
}

// RunReflexion returns the lesson of a finished run.
func (r *Runs) RunReflexion(ctx context.Context, id string) (x *gatehouse.Reflexion, err error) {
	err = r.View(ctx, "reflexion", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if err := r.gate.CheckMayReadRunID(tx, c, id); err != nil {
			return err
		}
		x, err = tx.FindReflexion(id)
		return err
	})
	return x, err
}
