package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// FindWorkflowSummary finds the newest version with its source, and counts versions and runs.
func (t *readTx) FindWorkflowSummary(name string, since time.Time) (w *gatehouse.WorkflowSummary, err error) {
	if w, err = t.NewestWorkflow(name); err != nil {
		return nil, err
	}
	err = t.each(`SELECT status, count(*) FROM run
WHERE tenant = $1 AND workflow = $2 AND workflow <> '' AND created_at > $3 GROUP BY status`, func(r *row) error {
		status := gatehouse.RunStatus(r.Text())
		w.Runs[status] = int(r.Int())
		return nil
	}, t.tenant, name, since)
	return w, err
}
