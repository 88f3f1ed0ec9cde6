package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// FindWorkflowSummary finds the newest version with its source and its counts.
func (t *readTx) FindWorkflowSummary(name string, since time.Time) (w *gatehouse.WorkflowSummary, err error) {
	err = t.one(`SELECT `+workflowColumns+`, w.source, (SELECT count(*) FROM workflow n WHERE n.tenant = w.tenant AND n.name = w.name)
FROM workflow w WHERE w.tenant = ? AND w.name = ? ORDER BY w.version DESC LIMIT 1`, func(r *stmt) error {
		w = &gatehouse.WorkflowSummary{Workflow: scanWorkflow(r), Runs: map[gatehouse.RunStatus]int{}}
		w.Source, w.Versions = r.text(), int(r.int())
		return nil
	}, t.tenant, name)
	if err != nil {
		return nil, err
	}
	err = t.each(runsSince, func(r *stmt) error {
		w.Runs[gatehouse.RunStatus(r.text())] = int(r.int())
		return nil
	}, t.tenant, name, since)
	return w, err
}

// FindReflexion finds the reflexion of a run.
func (t *readTx) FindReflexion(runID string) (x *gatehouse.Reflexion, err error) {
	err = t.one(`SELECT tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at FROM reflexion
WHERE tenant = ? AND run_id = ?`, func(r *stmt) error {
		x = &gatehouse.Reflexion{
			Tenant: r.text(), ID: r.text(), RunID: r.text(), Workflow: r.text(), Version: int(r.int()), Outcome: gatehouse.RunStatus(r.text()),
			Attempted: r.text(), Happened: r.text(), Otherwise: r.text(), At: r.time(),
		}
		return nil
	}, t.tenant, runID)
	return x, err
}
