package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	newestWorkflow = `SELECT ` + shared.WorkflowColumns +
		`, w.source FROM workflow w WHERE w.tenant = $1 AND w.name = $2 ORDER BY w.version DESC LIMIT 1`
	findWorkflow = `SELECT ` + shared.WorkflowColumns +
		`, w.source FROM workflow w WHERE w.tenant = $1 AND w.name = $2 AND w.version = $3`
	listWorkflows = `SELECT ` + shared.WorkflowColumns + `, n.versions, c.status, c.runs
FROM (SELECT tenant, name, max(version) AS version, count(*) AS versions FROM workflow
WHERE tenant = $1 AND name > $2 GROUP BY tenant, name
  ORDER BY tenant, name LIMIT $3) n
JOIN workflow w ON w.tenant = n.tenant AND w.name = n.name AND w.version = n.version
LEFT JOIN LATERAL (SELECT r.status, count(*) AS runs FROM run r
WHERE r.tenant = n.tenant AND r.workflow = n.name AND r.workflow <> '' AND r.created_at > $4 GROUP BY r.status) c ON true
ORDER BY n.name`
)

// FindWorkflow finds a version; version 0 means the newest.
func (t *readTx) FindWorkflow(name string, version int) (w *gatehouse.Workflow, err error) {
	row := func(r *row) error {
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

// ListWorkflows lists workflows by name.
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
	err = t.each(listWorkflows, func(r *row) error {
		w := &gatehouse.WorkflowSummary{Workflow: shared.ScanWorkflow(r), Versions: int(r.Int()),
			Runs: map[gatehouse.RunStatus]int{}}
		if n := len(page.Items); n > 0 && page.Items[n-1].Name == w.Name {
			w = page.Items[n-1]
		} else {
			page.Items = append(page.Items, w)
		}
		if !r.Null() {
			status := gatehouse.RunStatus(r.Text())
			w.Runs[status] = int(r.Int())
		}
		return nil
	}, t.tenant, c.ID, limit+1, since)
	return shared.Finish(page, limit, func(w *gatehouse.WorkflowSummary) shared.Cursor { return shared.Cursor{ID: w.Name} }, shared.KindWorkflows, t.tenant), err
}

// ListWorkflowVersions lists versions, newest first.
func (t *readTx) ListWorkflowVersions(name string) (list []*gatehouse.Workflow, err error) {
	err = t.each(`SELECT `+shared.WorkflowColumns+` FROM workflow w WHERE w.tenant = $1 AND w.name = $2
ORDER BY w.version DESC`,
		func(r *row) error { list = append(list, shared.ScanWorkflow(r)); return nil }, t.tenant, name)
	return list, err
}

// InsertWorkflow stores a version.
func (t *tx) InsertWorkflow(w *gatehouse.Workflow) error {
	if err := t.checkTenant(w.Tenant); err != nil {
		return err
	}
	err := t.write(`INSERT INTO workflow (tenant, id, name, version, workspace, description, digest, created_by, created_at, source)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		w.Tenant, w.ID, w.Name, w.Version, w.Workspace, w.Description, string(w.Digest), w.CreatedBy, w.CreatedAt, w.Source)
	return err
}

// PutSchedule stores or replaces a schedule, or deletes it if NextAt is zero. With from, it
// does so only while the stored time equals from.
func (t *tx) PutSchedule(s *gatehouse.Schedule, from time.Time) error {
	if err := t.checkTenant(s.Tenant); err != nil {
		return err
	}
	switch {
	case from.IsZero() && s.NextAt.IsZero():
		return t.write(`DELETE FROM schedule WHERE tenant = $1 AND workflow = $2`, s.Tenant, s.Workflow)
	case from.IsZero():
		return t.write(`INSERT INTO schedule (tenant, workflow, version, next_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, workflow) DO UPDATE SET version = excluded.version, next_at = excluded.next_at`, s.Tenant, s.Workflow, s.Version, s.NextAt)
	case s.NextAt.IsZero():
		return t.write(`
WITH w AS (
  DELETE FROM schedule
  WHERE tenant = $1 AND workflow = $2 AND next_at = $3
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`, s.Tenant, s.Workflow, from)
	}
	return t.write(`
WITH w AS (
  UPDATE schedule SET version = $4, next_at = $5
  WHERE tenant = $1 AND workflow = $2 AND next_at = $3
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		s.Tenant, s.Workflow, from, s.Version, s.NextAt)
}
