package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// FindWorkflowSummary finds the newest version with its source and its counts.
func (t *readTx) FindWorkflowSummary(name string, since time.Time) (w *gatehouse.WorkflowSummary, err error) {
	if w, err = t.NewestWorkflow(name); err != nil {
		return nil, err
	}
	err = t.each(runsSince, func(r *stmt) error {
		w.Runs[gatehouse.RunStatus(r.Text())] = int(r.Int())
		return nil
	}, t.tenant, name, since)
	return w, err
}
