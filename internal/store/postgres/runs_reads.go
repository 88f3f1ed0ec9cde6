package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindWorkflowSummary finds the newest version with its source, and counts versions and runs.
func (t *readTx) FindWorkflowSummary(name string, since time.Time) (w *gatehouse.WorkflowSummary, err error) {
	err = t.one(`SELECT `+shared.WorkflowColumns+`, w.source, (SELECT count(*) FROM workflow n
WHERE n.tenant = w.tenant AND n.name = w.name)
FROM workflow w WHERE w.tenant = $1 AND w.name = $2 ORDER BY w.version DESC LIMIT 1`, func(r *row) error {
		w = &gatehouse.WorkflowSummary{Workflow: shared.ScanWorkflow(r), Runs: map[gatehouse.RunStatus]int{}}
		w.Source, w.Versions = r.Text(), int(r.Int())
		return nil
	}, t.tenant, name)
	if err != nil {
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

// FindReflexion finds the reflexion of a run.
func (t *readTx) FindReflexion(runID string) (x *gatehouse.Reflexion, err error) {
	err = t.one(`SELECT tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at
FROM reflexion
WHERE tenant = $1 AND run_id = $2`, func(r *row) error {
		x = &gatehouse.Reflexion{
			Tenant: r.Text(), ID: r.Text(), RunID: r.Text(), Workflow: r.Text(), Version: int(r.Int()),
			Outcome:   gatehouse.RunStatus(r.Text()),
			Attempted: r.Text(), Happened: r.Text(), Otherwise: r.Text(), At: r.Time(),
		}
		return nil
	}, t.tenant, runID)
	return x, err
}
