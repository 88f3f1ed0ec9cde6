package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// scanWorkflow reads a version without its source, in the order of the table's columns.
func scanWorkflow(r Row) (*gatehouse.Workflow, error) {
	return &gatehouse.Workflow{
		Tenant: r.Text(), ID: r.Text(), Name: r.Text(), Version: int(r.Int()), Workspace: r.Text(),
		Description: r.Text(), Digest: gatehouse.Digest(r.Text()), CreatedBy: r.Text(), CreatedAt: r.Time(),
	}, nil
}

func scanWorkflowSource(r Row) (*gatehouse.Workflow, error) {
	w, err := scanWorkflow(r)
	w.Source = r.Text()
	return w, err
}

// FindWorkflow finds a version; version 0 means the newest.
func (t Reads) FindWorkflow(name string, version int) (*gatehouse.Workflow, error) {
	if version == 0 {
		return find(t, scanWorkflowSource, `
SELECT tenant, id, name, version, workspace, description, digest, created_by, created_at, source FROM workflow
WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1`, t.Tenant(), name)
	}
	return find(t, scanWorkflowSource, `
SELECT tenant, id, name, version, workspace, description, digest, created_by, created_at, source FROM workflow
WHERE tenant = $1 AND name = $2 AND version = $3`, t.Tenant(), name, version)
}

// NewestWorkflow finds the newest version with its source, and counts the versions.
func (t Reads) NewestWorkflow(name string) (*gatehouse.WorkflowSummary, error) {
	return find(t, func(r Row) (*gatehouse.WorkflowSummary, error) {
		w, err := scanWorkflowSource(r)
		return &gatehouse.WorkflowSummary{
			Workflow: w, Versions: int(r.Int()), Runs: map[gatehouse.RunStatus]int{},
		}, err
	}, `
SELECT tenant, id, name, version, workspace, description, digest, created_by, created_at, source, (
    SELECT count(*) FROM workflow n WHERE n.tenant = w.tenant AND n.name = w.name)
FROM workflow w WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1`, t.Tenant(), name)
}

// ListWorkflowVersions lists versions, newest first.
func (t Reads) ListWorkflowVersions(name string) ([]*gatehouse.Workflow, error) {
	return list(t, scanWorkflow, `
SELECT tenant, id, name, version, workspace, description, digest, created_by, created_at FROM workflow
WHERE tenant = $1 AND name = $2 ORDER BY version DESC`, t.Tenant(), name)
}

// InsertWorkflow stores a version.
func (t Writes) InsertWorkflow(w *gatehouse.Workflow) error {
	if err := t.Owns(w.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO workflow (tenant, id, name, version, workspace, description, digest, created_by, created_at, source)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		w.Tenant, w.ID, w.Name, w.Version, w.Workspace, w.Description, string(w.Digest), w.CreatedBy, w.CreatedAt,
		w.Source)
}

// PutSchedule stores or replaces a schedule, or deletes it if NextAt is zero. With from, it does so only while
// the stored time equals from.
func (t Writes) PutSchedule(s *gatehouse.Schedule, from time.Time) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	switch {
	case from.IsZero() && s.NextAt.IsZero():
		return t.Write(`DELETE FROM schedule WHERE tenant = $1 AND workflow = $2`, s.Tenant, s.Workflow)
	case from.IsZero():
		return t.Write(`
INSERT INTO schedule (tenant, workflow, version, next_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, workflow) DO UPDATE SET version = excluded.version, next_at = excluded.next_at`,
			s.Tenant, s.Workflow, s.Version, s.NextAt)
	case s.NextAt.IsZero():
		return t.WriteOrFail(gatehouse.ErrConflict, `
DELETE FROM schedule WHERE tenant = $1 AND workflow = $2 AND next_at = $3`, s.Tenant, s.Workflow, from)
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE schedule SET version = $1, next_at = $2 WHERE tenant = $3 AND workflow = $4 AND next_at = $5`,
		s.Version, s.NextAt, s.Tenant, s.Workflow, from)
}

// ScanWorkflowCount reads a version without its source, and the number of versions.
func ScanWorkflowCount(r Row) (*gatehouse.WorkflowSummary, error) {
	w, err := scanWorkflow(r)
	return &gatehouse.WorkflowSummary{Workflow: w, Versions: int(r.Int()), Runs: map[gatehouse.RunStatus]int{}}, err
}

// ListSchedules lists the tenant's schedules by workflow.
func (t Reads) ListSchedules(limit int) ([]*gatehouse.Schedule, error) {
	return list(t, func(r Row) (*gatehouse.Schedule, error) {
		return &gatehouse.Schedule{Tenant: t.Tenant(), Workflow: r.Text(), Version: int(r.Int()), NextAt: r.Time()}, nil
	}, `SELECT workflow, version, next_at FROM schedule WHERE tenant = $1 ORDER BY workflow LIMIT $2`, t.Tenant(), limit)
}
