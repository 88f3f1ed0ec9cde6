package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const listWorkflows = `SELECT w.tenant, w.id, w.name, w.version, w.workspace, w.description, w.digest, w.created_by,
  w.created_at, n.versions, c.status, c.runs
FROM (SELECT tenant, name, max(version) AS version, count(*) AS versions FROM workflow
WHERE tenant = $1 AND name > $2 GROUP BY tenant, name
  ORDER BY tenant, name LIMIT $3) n
JOIN workflow w ON w.tenant = n.tenant AND w.name = n.name AND w.version = n.version
LEFT JOIN LATERAL (SELECT r.status, count(*) AS runs FROM run r
  WHERE r.tenant = n.tenant AND r.workflow = n.name AND r.workflow <> '' AND r.created_at > $4
  GROUP BY r.status) c ON true
ORDER BY n.name`

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
		w, err := shared.ScanWorkflowCount(r)
		if n := len(page.Items); n > 0 && page.Items[n-1].Name == w.Name {
			w = page.Items[n-1]
		} else {
			page.Items = append(page.Items, w)
		}
		if !r.Null() {
			status := gatehouse.RunStatus(r.Text())
			w.Runs[status] = int(r.Int())
		}
		return err
	}, t.tenant, c.ID, limit+1, since)
	return shared.Finish(page, limit,
		func(w *gatehouse.WorkflowSummary) shared.Cursor { return shared.Cursor{ID: w.Name} }, shared.KindWorkflows,
		t.tenant), err
}
