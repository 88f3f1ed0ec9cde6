package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	listWorkflows = `SELECT w.tenant, w.id, w.name, w.version, w.workspace, w.description, w.digest, w.created_by,
  w.created_at, n.versions
FROM (SELECT tenant, name, max(version) AS version, count(*) AS versions FROM workflow
WHERE tenant = ? AND name > ? GROUP BY name ORDER BY name LIMIT ?) n
CROSS JOIN workflow w ON w.tenant = n.tenant AND w.name = n.name AND w.version = n.version ORDER BY n.name`
	runsSince = `SELECT status, count(*) FROM run INDEXED BY run_outcome
WHERE tenant = ? AND workflow = ? AND status IN ('queued', 'running',
  'waiting_approval', 'waiting', 'failed_retryable', 'succeeded', 'failed_terminal', 'canceled') AND trigger_type <> ''
  AND created_at > ? GROUP BY status`
)

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
	err = t.Each(listWorkflows, shared.Append(&page.Items, shared.ScanWorkflowCount), t.tenant, c.ID, limit+1)
	page = shared.Finish(page, limit,
		func(w *gatehouse.WorkflowSummary) shared.Cursor { return shared.Cursor{ID: w.Name} }, shared.KindWorkflows, t.tenant)
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
