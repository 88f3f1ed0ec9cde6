package sqlite

import (
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

var (
	_ gatehouse.RunReader = (*readTx)(nil)
	_ gatehouse.RunWriter = (*tx)(nil)
)

const runColumns = `r.seq, r.tenant, r.id, r.workflow, r.version, r.workspace, r.status, r.stop, r.trigger_type,
  coalesce(r.trigger_ref, ''), r.started_by, r.starter_id, r.parent_run, r.parent_step, r.retry_of, r.writes,
  r.failure_code, r.failure_detail, r.created_at, r.started_at, r.finished_at, r.deadline, r.evidence`

const (
	findRun = `SELECT ` + runColumns +
		`, b.input, b.output FROM run r JOIN run_body b ON b.seq = r.seq WHERE r.tenant = ? AND r.id = ?`
	runRef = `SELECT ` + runColumns + `, b.input, b.output FROM run r JOIN run_body b ON b.seq = r.seq
WHERE r.tenant = ? AND r.workflow = ? AND r.trigger_ref = ?`
	runHead   = `SELECT ` + runColumns + ` FROM run r WHERE r.tenant = ? AND r.id = ?`
	runBodies = `SELECT b.input, b.output FROM run r JOIN run_body b ON b.seq = r.seq WHERE r.tenant = ? AND r.id = ?`
)

// FindRun finds a run by its id.
func (t *readTx) FindRun(id string) (*gatehouse.Run, error) {
	return t.wholeRun(findRun, t.tenant, id)
}

// FindRunByRef finds a run by its workflow and trigger_ref.
func (t *readTx) FindRunByRef(workflow, ref string) (*gatehouse.Run, error) {
	return t.wholeRun(runRef, t.tenant, workflow, ref)
}

func (t *readTx) wholeRun(sql string, args ...any) (run *gatehouse.Run, err error) {
	var seq int64
	err = t.one(sql, func(r *stmt) error {
		seq, run = r.Int(), shared.ScanRun(r)
		run.Input, run.Output = r.JSON(), r.JSON()
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	run.Steps, err = t.steps(stepsOfRun, seq)
	shared.SortSteps(run.Steps)
	return run, err
}

// LockRun reads a run without its bodies. The writer's transaction is the lock.
func (t *tx) LockRun(id, item string) (*gatehouse.Run, error) {
	seq, run, err := t.runHead(t.tenant, id)
	if err != nil {
		return nil, err
	}
	if run.Steps, err = t.transitionSteps(run, topSteps, seq); err != nil {
		return nil, err
	}
	if item != "" && run.StepByID(item) == nil {
		items, err := t.transitionSteps(run, itemOfRun, t.tenant, item, seq)
		if err != nil {
			return nil, err
		}
		run.Steps = append(run.Steps, items...)
	}
	shared.SortSteps(run.Steps)
	for _, s := range run.Steps {
		if !shared.MayHaveItems(s) {
			continue
		}
		err := t.each(openItems, func(r *stmt) error {
			s.OpenItems = append(s.OpenItems,
				gatehouse.StepStatus(r.Text()))
			return nil
		},
			t.tenant, s.ID, item)
		if err != nil {
			return nil, err
		}
	}
	return run, nil
}

// LockRunHead is FindRunHead; the writer's transaction is the lock.
func (t *tx) LockRunHead(id string) (*gatehouse.Run, error) { return t.FindRunHead(id) }

func (t *readTx) runHead(tenant, id string) (seq int64, run *gatehouse.Run, err error) {
	err = t.one(runHead, func(r *stmt) error { seq, run = r.Int(), shared.ScanRun(r); return nil }, tenant, id)
	return seq, run, err
}

// FindRunHead reads only the run's row.
func (t *readTx) FindRunHead(id string) (*gatehouse.Run, error) {
	_, run, err := t.runHead(t.tenant, id)
	return run, err
}

// FindRunBodies reads the input and output that FindRunHead leaves out.
func (t *readTx) FindRunBodies(id string) (input, output gatehouse.JSON, err error) {
	err = t.one(runBodies, func(r *stmt) error { input, output = r.JSON(), r.JSON(); return nil }, t.tenant, id)
	return input, output, err
}

// ListLineage follows parent and retried runs, starting with the run itself.
func (t *readTx) ListLineage(id string) (list []*gatehouse.Run, err error) {
	seen := map[string]bool{"": true}
	for next := []string{id}; len(next) > 0; next = next[1:] {
		if seen[next[0]] {
			continue
		}
		seen[next[0]] = true
		_, run, err := t.runHead(t.tenant, next[0])
		if errors.Is(err, gatehouse.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, next = append(list, run), append(next, run.ParentRun, run.RetryOf)
	}
	return list, nil
}

// runs reads runs without steps and bodies.
func (t *readTx) runs(where string, args ...any) (list []*gatehouse.Run, err error) {
	err = t.each(`SELECT `+runColumns+` FROM run r `+where, func(r *stmt) error {
		r.Skip(1)
		run := shared.ScanRun(r)
		list = append(list, run)
		return nil
	}, args...)
	return list, err
}

// ListRuns lists runs, newest first. RunIndex selects an index by the filter.
func (t *readTx) ListRuns(f gatehouse.RunFilter) (page gatehouse.Page[*gatehouse.Run], err error) {
	bound := shared.RunListKey(t.tenant, f)
	c, err := shared.ParseCursor(f.Cursor, shared.KindRuns, bound...)
	if err != nil {
		return page, err
	}
	var where condition
	shared.FilterRuns(where.add, t.tenant, f, c)
	limit := shared.PageLimit(f.Limit)
	if f.InputField != "" {
		return t.runsByInput(f, where, limit, bound)
	}
	page.Items = []*gatehouse.Run{}
	var seqs []int64
	err = t.each(`SELECT `+runColumns+` FROM run r WHERE `+where.sql()+` ORDER BY r.created_at DESC, r.seq DESC LIMIT ?`,
		func(r *stmt) error {
			seq, run := r.Int(), shared.ScanRun(r)
			seqs, page.Items = append(seqs, seq), append(page.Items, run)
			return nil
		}, append(where.args, limit+1)...)
	return shared.Finish(page, limit, func(r *gatehouse.Run) shared.Cursor {
		return shared.Cursor{Seq: seqs[limit-1], AsOf: r.CreatedAt.UnixMicro()}
	}, shared.KindRuns, bound...), err
}

const insertRun = `INSERT INTO run (tenant, id, workflow, version, workspace, status, stop, trigger_type, trigger_ref,
  started_by, starter_id, parent_run, parent_step, retry_of, writes, failure_code, failure_detail, created_at,
  started_at, finished_at, deadline, evidence)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertRun stores a run and its steps.
func (t *tx) InsertRun(r *gatehouse.Run) error {
	if err := t.Owns(r.Tenant); err != nil {
		return err
	}
	if !gatehouse.RunStatus("").CanMove(r.Status) {
		return gatehouse.ErrConflict
	}
	code, detail := shared.FailureArgs(r.Failure)
	_, err := t.exec(insertRun, r.Tenant, r.ID, r.Workflow, r.Version, r.Workspace, string(r.Status), string(r.Stop),
		string(r.Trigger), shared.OrNull(r.TriggerRef), r.StartedBy, r.StarterID, r.ParentRun, r.ParentStep, r.RetryOf,
		r.Writes, code, detail, r.CreatedAt, r.StartedAt, r.FinishedAt, r.Deadline, r.Evidence)
	if err != nil {
		return err
	}
	seq := t.c.lastRow()
	if _, err := t.exec(`INSERT INTO run_body (seq, tenant, input, output) VALUES (?, ?, ?, ?)`, seq, r.Tenant, r.Input,
		r.Output); err != nil {
		return err
	}
	for _, s := range r.Steps {
		if s.Tenant != r.Tenant || s.RunID != r.ID {
			return gatehouse.ErrConflict
		}
		if err := t.insertStep(seq, s); err != nil {
			return err
		}
	}
	return nil
}

const moveRun = `UPDATE OR ROLLBACK run
SET status = ?, stop = ?, writes = ?, failure_code = ?, failure_detail = ?, started_at = ?, finished_at = ?
WHERE tenant = ? AND id = ? AND status = ?`

// MoveRun writes the mutable fields of a run. A child run that ends wakes the
// step that waits for it.
func (t *tx) MoveRun(r *gatehouse.Run, from gatehouse.RunStatus) error {
	if err := t.Owns(r.Tenant); err != nil {
		return err
	}
	if r.Status != from && !from.CanMove(r.Status) {
		return gatehouse.ErrConflict
	}
	code, detail := shared.FailureArgs(r.Failure)
	err := t.guarded(moveRun, string(r.Status), string(r.Stop), r.Writes, code, detail, r.StartedAt, r.FinishedAt,
		r.Tenant, r.ID, string(from))
	if err == nil && r.Output != "" {
		_, err = t.exec(`UPDATE run_body SET output = ? WHERE seq = (SELECT seq FROM run WHERE tenant = ? AND id = ?)`,
			r.Output, r.Tenant, r.ID)
	}
	if err == nil && r.Status != from && r.Status.Final() {
		_, err = t.exec(`INSERT INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT seq, tenant, run_id, id FROM step
WHERE tenant = ? AND child_run = ? AND child_run IS NOT NULL AND status = 'waiting'`, r.Tenant, r.ID)
	}
	return err
}
