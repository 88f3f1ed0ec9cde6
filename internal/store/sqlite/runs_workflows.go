package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	newestWorkflow = `SELECT ` + shared.WorkflowColumns +
		`, w.source FROM workflow w WHERE w.tenant = ? AND w.name = ? ORDER BY w.version DESC LIMIT 1`
	findWorkflow = `SELECT ` + shared.WorkflowColumns +
		`, w.source FROM workflow w WHERE w.tenant = ? AND w.name = ? AND w.version = ?`
	listWorkflows = `SELECT ` + shared.WorkflowColumns + `, n.versions
FROM (SELECT tenant, name, max(version) AS version, count(*) AS versions FROM workflow
WHERE tenant = ? AND name > ? GROUP BY name ORDER BY name LIMIT ?) n
CROSS JOIN workflow w ON w.tenant = n.tenant AND w.name = n.name AND w.version = n.version ORDER BY n.name`
	runsSince = `SELECT status, count(*) FROM run INDEXED BY run_outcome
WHERE tenant = ? AND workflow = ? AND status IN ('queued', 'running',
  'waiting_approval', 'waiting', 'failed_retryable', 'succeeded', 'failed_terminal', 'canceled') AND trigger_type <> '' AND created_at > ? GROUP BY status`
)

// FindWorkflow finds a version; 0 means the newest.
func (t *readTx) FindWorkflow(name string, version int) (w *gatehouse.Workflow, err error) {
	row := func(r *stmt) error {
		w = shared.ScanWorkflow(r)
		w.Source = r.Text()
		return nil
	}
	if version == 0 {
		err = t.one(newestWorkflow, row, t.tenant, name)
	} else {
		err = t.one(findWorkflow, row, t.tenant, name, version)
	}
	return w, err
}

// ListWorkflows lists by name.
func (t *readTx) ListWorkflows(
	since time.Time,
	cursor string,
	limit int,
) (page gatehouse.Page[*gatehouse.WorkflowSummary], err error) {
	c, err := shared.ParseCursor(cursor, shared.KindWorkflows, t.tenant)
	if err != nil {
		return page, err
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.WorkflowSummary{}
	err = t.each(listWorkflows, func(r *stmt) error {
		page.Items = append(page.Items, &gatehouse.WorkflowSummary{
			Workflow: shared.ScanWorkflow(r), Versions: int(r.Int()), Runs: map[gatehouse.RunStatus]int{},
		})
		return nil
	}, t.tenant, c.ID, limit+1)
	page = shared.Finish(page, limit, func(w *gatehouse.WorkflowSummary) shared.Cursor { return shared.Cursor{ID: w.Name} }, shared.KindWorkflows, t.tenant)
	for _, w := range page.Items {
		if err != nil {
			return page, err
		}
		err = t.each(runsSince, func(r *stmt) error {
			w.Runs[gatehouse.RunStatus(r.Text())] = int(r.Int())
			return nil
		}, t.tenant, w.Name, since)
	}
	return page, err
}

// ListWorkflowVersions lists newest first.
func (t *readTx) ListWorkflowVersions(name string) (list []*gatehouse.Workflow, err error) {
	err = t.each(`SELECT `+shared.WorkflowColumns+` FROM workflow w WHERE w.tenant = ? AND w.name = ?
ORDER BY w.version DESC`,
		func(r *stmt) error { list = append(list, shared.ScanWorkflow(r)); return nil }, t.tenant, name)
	return list, err
}

// InsertWorkflow stores a version.
func (t *tx) InsertWorkflow(w *gatehouse.Workflow) error {
	if err := t.owns(w.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO workflow (tenant, id, name, version, workspace, description, digest, created_by, created_at, source)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.Tenant, w.ID, w.Name, w.Version, w.Workspace, w.Description, string(w.Digest), w.CreatedBy, w.CreatedAt, w.Source)
	return err
}

// PutSchedule stores, replaces or removes a schedule. With from set, the stored
// schedule must still have that time.
func (t *tx) PutSchedule(s *gatehouse.Schedule, from time.Time) error {
	if err := t.owns(s.Tenant); err != nil {
		return err
	}
	switch {
	case from.IsZero() && s.NextAt.IsZero():
		_, err := t.exec(`DELETE FROM schedule WHERE tenant = ? AND workflow = ?`, s.Tenant, s.Workflow)
		return err
	case from.IsZero():
		_, err := t.exec(`INSERT INTO schedule (tenant, workflow, version, next_at) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, workflow) DO UPDATE SET version = excluded.version, next_at = excluded.next_at`, s.Tenant, s.Workflow, s.Version, s.NextAt)
		return err
	case s.NextAt.IsZero():
		return t.guarded(`DELETE FROM schedule
WHERE tenant = ? AND workflow = ? AND next_at = ?`, s.Tenant, s.Workflow, from)
	}
	return t.guarded(`UPDATE schedule SET version = ?, next_at = ? WHERE tenant = ? AND workflow = ? AND next_at = ?`,
		s.Version, s.NextAt, s.Tenant, s.Workflow, from)
}
