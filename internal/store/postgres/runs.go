package postgres

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	runColumns = `r.tenant, r.id, r.workflow, r.version, r.workspace, r.status, r.stop, r.trigger_type,
  coalesce(r.trigger_ref, ''), r.started_by, r.starter_id, r.parent_run, r.parent_step, r.retry_of, r.writes,
  r.failure_code, r.failure_detail, r.created_at, r.started_at, r.finished_at, r.deadline, r.evidence`

	findRun = `SELECT ` + runColumns + `, b.input, b.output
FROM run r JOIN run_body b ON b.seq = r.seq
WHERE r.seq = (SELECT seq FROM run WHERE tenant = $1 AND id = $2)`
	stepsOfRun = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.run_seq = (SELECT seq FROM run WHERE tenant = $1 AND id = $2)`

	findRunByRef = `SELECT ` + runColumns + `, b.input, b.output
FROM run r JOIN run_body b ON b.seq = r.seq
WHERE r.seq = (
  SELECT seq FROM run WHERE tenant = $1 AND workflow = $2 AND trigger_ref = $3 AND trigger_ref IS NOT NULL)`
	stepsOfRunByRef = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.run_seq = (
  SELECT seq FROM run WHERE tenant = $1 AND workflow = $2 AND trigger_ref = $3 AND trigger_ref IS NOT NULL)`
	runBodies = `SELECT b.input, b.output FROM run r JOIN run_body b ON b.seq = r.seq WHERE r.tenant = $1 AND r.id = $2`
	lineage   = `WITH RECURSIVE l (id) AS (
  SELECT $2::text COLLATE "C"
  UNION
  SELECT b.id FROM l JOIN run r ON r.tenant = $1 AND r.id = l.id
  CROSS JOIN LATERAL (VALUES (r.parent_run), (r.retry_of)) b (id) WHERE b.id <> '')
SELECT ` + runColumns + ` FROM l JOIN run r ON r.tenant = $1 AND r.id = l.id`
)

var lockRuns = locks[idRow](`
SELECT r.n
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (SELECT 1 FROM run WHERE tenant = r.tenant AND id = r.id FOR NO KEY UPDATE /* SKIP LOCKED */) l`)

var findRunHeads = reads[idRow](`
SELECT r.n, run.tenant, run.id, run.workflow, run.version, run.workspace, run.status, run.stop, run.trigger_type,
  coalesce(run.trigger_ref, ''), run.started_by, run.starter_id, run.parent_run, run.parent_step, run.retry_of,
  run.writes, run.failure_code, run.failure_detail, run.created_at, run.started_at, run.finished_at, run.deadline,
  run.evidence
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (SELECT * FROM run WHERE tenant = r.tenant AND id = r.id OFFSET 0) run`)

// FindRun finds a run by id.
func (t *readTx) FindRun(id string) (*gatehouse.Run, error) {
	return t.run(findRun, stepsOfRun, t.tenant, id)
}

// FindRunByRef finds a run by workflow and trigger_ref.
func (t *readTx) FindRunByRef(workflow, ref string) (*gatehouse.Run, error) {
	return t.run(findRunByRef, stepsOfRunByRef, t.tenant, workflow, ref)
}

// LockRun reads run and steps after the lock, without their bodies.
func (t *tx) LockRun(id, item string) (run *gatehouse.Run, err error) {
	err = t.lockAndRead(
		[]query{lockRuns.ask(nil, idRow{t.tenant, id})},
		findRunHeads.ask(func(r *row) error { run = shared.ScanRun(r); return nil }, idRow{t.tenant, id}),
		findTransitionSteps.ask(func(r *row) error { run.Steps = append(run.Steps, scanTransitionStep(r, run)); return nil },
			transitionStepsRow{t.tenant, id, item}),
	)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, gatehouse.ErrNotFound
	}
	if t.member != nil && !t.member.takeOwnership(run.ID) {
		t.err = errRunAlone
		return nil, t.err
	}
	shared.SortSteps(run.Steps)
	return run, nil
}

// LockRunHead reads the run's row after the lock.
func (t *tx) LockRunHead(id string) (run *gatehouse.Run, err error) {
	err = t.lockAndRead([]query{lockRuns.ask(nil, idRow{t.tenant, id})},
		findRunHeads.ask(func(r *row) error { run = shared.ScanRun(r); return nil }, idRow{t.tenant, id}))
	if err == nil && run == nil {
		err = gatehouse.ErrNotFound
	}
	return run, err
}

// FindRunHead reads the run's row only.
func (t *readTx) FindRunHead(id string) (run *gatehouse.Run, err error) {
	err = t.read(findRunHeads.ask(func(r *row) error { run = shared.ScanRun(r); return nil }, idRow{t.tenant, id}))
	if err == nil && run == nil {
		err = gatehouse.ErrNotFound
	}
	return run, err
}

// FindRunBodies reads input and output, which FindRunHead leaves out.
func (t *readTx) FindRunBodies(id string) (input, output gatehouse.JSON, err error) {
	err = t.one(runBodies, func(r *row) error { input, output = r.JSON(), r.JSON(); return nil }, t.tenant, id)
	return input, output, err
}

// ListLineage reads the run, which comes first, and all its ancestors with one query.
func (t *readTx) ListLineage(id string) (list []*gatehouse.Run, err error) {
	err = t.each(lineage, func(r *row) error { list = append(list, shared.ScanRun(r)); return nil }, t.tenant, id)
	if at := slices.IndexFunc(list, func(r *gatehouse.Run) bool { return r.ID == id }); at > 0 {
		list[0], list[at] = list[at], list[0]
	}
	return list, err
}

// run reads a run and its steps, with bodies.
func (t *readTx) run(find, findSteps string, args ...any) (run *gatehouse.Run, err error) {
	var steps []*gatehouse.Step
	err = t.read(
		ask(find, func(r *row) error {
			run = shared.ScanRun(r)
			run.Input, run.Output = r.JSON(), r.JSON()
			return nil
		}, args...),
		ask(findSteps, func(r *row) error { steps = append(steps, scanStep(r)); return nil }, args...),
	)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, gatehouse.ErrNotFound
	}
	run.Steps = steps
	shared.SortSteps(run.Steps)
	return run, nil
}

// runs reads runs without their steps and bodies.
func (t *readTx) runs(sql string, args ...any) (list []*gatehouse.Run, err error) {
	err = t.each(sql,
		func(r *row) error { list = append(list, shared.ScanRun(r)); return nil }, args...)
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
	last := where.number(` ORDER BY r.created_at DESC, r.seq DESC LIMIT ?`, limit+1)
	err = t.each(`SELECT r.seq, `+runColumns+` FROM run r WHERE `+where.sql()+last, func(r *row) error {
		seqs = append(seqs, r.Int())
		page.Items = append(page.Items, shared.ScanRun(r))
		return nil
	}, where.args...)
	return shared.Finish(page, limit, func(r *gatehouse.Run) shared.Cursor {
		return shared.Cursor{Seq: seqs[limit-1], AsOf: r.CreatedAt.UnixMicro()}
	}, shared.KindRuns, bound...), err
}

const insertRun = `INSERT INTO run (tenant, id, workflow, version, workspace, status, stop, trigger_type, trigger_ref,
  started_by, starter_id, parent_run, parent_step, retry_of, writes, failure_code, failure_detail, created_at,
  started_at, finished_at, deadline, evidence)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`

// InsertRun stores a run and its steps.
func (t *tx) InsertRun(r *gatehouse.Run) error {
	if err := t.Owns(r.Tenant); err != nil {
		return err
	}
	if !gatehouse.RunStatus("").CanMove(r.Status) {
		return gatehouse.ErrConflict
	}
	code, detail := shared.FailureArgs(r.Failure)
	err := t.Write(insertRun, r.Tenant, r.ID, r.Workflow, r.Version, r.Workspace, string(r.Status), string(r.Stop),
		string(r.Trigger), shared.OrNull(r.TriggerRef), r.StartedBy, r.StarterID, r.ParentRun, r.ParentStep, r.RetryOf,
		r.Writes, code, detail, r.CreatedAt, r.StartedAt, r.FinishedAt, r.Deadline, r.Evidence)
	if err != nil {
		return err
	}
	err = t.Write(`INSERT INTO run_body (seq, tenant, input, output) VALUES (currval('run_seq_seq'), $1, $2, $3)`,
		r.Tenant, r.Input, r.Output)
	if err != nil {
		return err
	}
	for _, s := range r.Steps {
		if s.Tenant != r.Tenant || s.RunID != r.ID {
			return gatehouse.ErrConflict
		}
		if err := t.insertStep(insertStep, s); err != nil {
			return err
		}
	}
	return nil
}

// runMove holds the new values of a run. From is the status that the caller of MoveRun read.
type runMove struct {
	Tenant, ID            string
	From, Status          gatehouse.RunStatus
	Stop                  gatehouse.RunStatus
	Writes                int
	Failure               *failure
	StartedAt, FinishedAt *time.Time
}

// moveRuns finds each run by its id in a subquery with OFFSET 0. So the planner cannot use an index by status,
// with which it would read all runs of the tenant that have the status.
var moveRuns = writes[runMove](rankRun, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS "from", ($4::text[])[n] AS status,
    ($5::text[])[n] AS stop, ($6::bigint[])[n] AS writes, ($7::text[])[n] AS failure_code,
    ($8::text[])[n] AS failure_detail, ($9::bigint[])[n] AS started_at, ($10::bigint[])[n] AS finished_at, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $11
),
w AS (
  UPDATE run SET status = r.status, stop = r.stop, writes = r.writes, failure_code = r.failure_code,
    failure_detail = r.failure_detail, started_at = r.started_at, finished_at = r.finished_at
  FROM r CROSS JOIN LATERAL (SELECT seq FROM run WHERE tenant = r.tenant AND id = r.id OFFSET 0) x
  WHERE run.seq = x.seq AND run.status = r."from"
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $11 THEN 0 ELSE gatehouse_refuse('GH001') END`)

// runOutput is the output of a run.
type runOutput struct {
	Tenant, ID string
	Output     gatehouse.JSON
}

var setRunOutputs = writes[runOutput](rankOutput, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS output, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
)
UPDATE run_body SET output = r.output
FROM r CROSS JOIN LATERAL (SELECT seq FROM run WHERE tenant = r.tenant AND id = r.id OFFSET 0) x
WHERE run_body.seq = x.seq`)

// wakeParents wakes the steps that wait for runs, by the runs' ids.
var wakeParents = writes[idRow](rankWakeParent, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
)
INSERT INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT s.seq, s.tenant, s.run_id, s.id
FROM r CROSS JOIN LATERAL (
  SELECT * FROM step
  WHERE tenant = r.tenant AND child_run = r.id AND child_run IS NOT NULL AND status = 'waiting' OFFSET 0
) s
ON CONFLICT DO NOTHING`)

// MoveRun writes the mutable fields of a run. A run that ends wakes the step of its parent run
// that waits for it.
func (t *tx) MoveRun(r *gatehouse.Run, from gatehouse.RunStatus) error {
	if err := t.Owns(r.Tenant); err != nil {
		return err
	}
	if r.Status != from && !from.CanMove(r.Status) {
		return gatehouse.ErrConflict
	}
	err := moveRuns.write(t, runMove{
		r.Tenant, r.ID, from, r.Status, r.Stop, r.Writes, failureOf(r.Failure), r.StartedAt, r.FinishedAt,
	})
	if err == nil && r.Output != "" {
		err = setRunOutputs.write(t, runOutput{r.Tenant, r.ID, r.Output})
	}
	if err == nil && r.Status != from && r.Status.Final() {
		err = wakeParents.write(t, idRow{r.Tenant, r.ID})
	}
	return err
}
