package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	stepColumns = `s.seq, s.tenant, s.id, s.run_id, s.key, s.position, s.parent, s.workflow, s.workspace, s.uses, s.tool,
  s.status, s.attempts, s.generation, coalesce(s.idempotency_key, ''), s.skipped, s.failure_code, s.failure_detail,
  coalesce(s.action_id, ''), coalesce(s.child_run, ''), s.event, s.due_at, s.lease_owner, s.lease_until, s.created_at,
  s.ready_at, s.started_at, s.finished_at`

	stepsOfRun = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s LEFT JOIN step_body b ON b.seq = s.seq WHERE s.run_seq = ?`

	// The step columns that a transition reads, except copies of columns of the run (tenant, workflow and others).
	transitionColumns = `s.id, s.key, s.position, s.parent, s.uses, s.tool, s.status, s.attempts, s.generation, s.skipped,
  s.idempotency_key, s.failure_code, s.failure_detail, s.action_id, s.child_run, s.event, s.due_at, s.lease_owner,
  s.lease_until, s.created_at, s.ready_at,
  s.started_at, s.finished_at`
	topSteps  = `SELECT ` + transitionColumns + ` FROM step s INDEXED BY step_top WHERE s.run_seq = ? AND s.parent = ''`
	itemOfRun = `SELECT ` + transitionColumns + ` FROM step s WHERE s.tenant = ? AND s.id = ? AND s.run_seq = ?`
	// One index lookup per state.
	openItems = `WITH o (status) AS (
  VALUES ('ready'), ('running'), ('waiting_approval'), ('waiting'), ('failed_retryable')
)
SELECT o.status FROM o WHERE EXISTS (SELECT 1 FROM step s INDEXED BY step_items
  WHERE s.tenant = ?1 AND s.parent = ?2 AND s.parent <> '' AND s.status = o.status AND s.id <> ?3)`
	itemsOfStep = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s INDEXED BY step_items LEFT JOIN step_body b ON b.seq = s.seq
  WHERE s.tenant = ? AND s.parent = ? AND s.parent <> ''`
	openItemsOfStep = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s INDEXED BY step_items LEFT JOIN step_body b ON b.seq = s.seq
  WHERE s.tenant = ? AND s.parent = ? AND s.parent <> ''
  AND s.status IN ('ready', 'running', 'waiting_approval', 'waiting', 'failed_retryable', 'blocked')`
	countSteps = `SELECT count(*) FROM step WHERE run_seq = (SELECT seq FROM run WHERE tenant = ? AND id = ?)`

	findStep = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s LEFT JOIN step_body b ON b.seq = s.seq WHERE s.tenant = ? AND s.id = ?`
	findStepOf = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s LEFT JOIN step_body b ON b.seq = s.seq WHERE s.run_seq = (SELECT seq FROM run
  WHERE tenant = ? AND id = ?) AND s.key = ?`
	findStepByKey = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s LEFT JOIN step_body b ON b.seq = s.seq
  WHERE s.tenant = ? AND s.idempotency_key = ? AND s.idempotency_key IS NOT NULL
AND s.status NOT IN ('failed_terminal', 'canceled')`
	findStepByAction = `SELECT ` + stepColumns + `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')
  FROM step s LEFT JOIN step_body b ON b.seq = s.seq
  WHERE s.tenant = ? AND s.action_id = ? AND s.action_id IS NOT NULL
ORDER BY s.action_at DESC, s.seq DESC LIMIT 1`
)

func scanStep(r *stmt) (seq int64, s *gatehouse.Step) {
	seq = r.Int()
	return seq, &gatehouse.Step{
		Tenant: r.Text(), ID: r.Text(), RunID: r.Text(), Key: r.Text(), Index: int(r.Int()), Parent: r.Text(),
		Workflow: r.Text(), Workspace: r.Text(), Uses: r.Text(), Tool: r.Text(), Status: gatehouse.StepStatus(r.Text()),
		Attempts: int(r.Int()), Generation: int(r.Int()), IdempotencyKey: r.Text(), Skipped: r.Bool(),
		Failure:  shared.ScanFailure(r),
		ActionID: r.Text(), ChildRun: r.Text(), Event: r.Text(), DueAt: r.TimePtr(), LeaseOwner: r.Text(),
		LeaseUntil: r.TimePtr(),
		CreatedAt:  r.Time(), ReadyAt: r.TimePtr(), StartedAt: r.TimePtr(), FinishedAt: r.TimePtr(),
	}
}

// transitionSteps reads the steps of a run without their bodies.
func (t *readTx) transitionSteps(run *gatehouse.Run, sql string, args ...any) (list []*gatehouse.Step, err error) {
	err = t.each(sql, func(r *stmt) error {
		s := &gatehouse.Step{
			Tenant: run.Tenant, RunID: run.ID, Workflow: run.Workflow, Workspace: run.Workspace,
			ID: r.Text(), Key: r.Text(), Index: int(r.Int()), Parent: r.Text(), Uses: r.Text(), Tool: r.Text(),
			Status: gatehouse.StepStatus(r.Text()), Attempts: int(r.Int()), Generation: int(r.Int()), Skipped: r.Bool(),
		}
		list = append(list, s)
		if s.Status == gatehouse.StepSucceeded || s.Status == gatehouse.StepCanceled {
			return nil // LockRun may leave out the other fields of such a step
		}
		s.IdempotencyKey, s.Failure, s.ActionID, s.ChildRun, s.Event = r.Text(), shared.ScanFailure(r), r.Text(),
			r.Text(), r.Text()
		s.DueAt, s.LeaseOwner, s.LeaseUntil = r.TimePtr(), r.Text(), r.TimePtr()
		s.CreatedAt, s.ReadyAt, s.StartedAt, s.FinishedAt = r.Time(), r.TimePtr(), r.TimePtr(), r.TimePtr()
		return nil
	}, args...)
	return list, err
}

// steps reads steps with their bodies.
func (t *readTx) steps(sql string, args ...any) (list []*gatehouse.Step, err error) {
	err = t.each(sql, func(r *stmt) error {
		_, s := scanStep(r)
		s.Item, s.Input, s.Output = r.JSON(), r.JSON(), r.JSON()
		list = append(list, s)
		return nil
	}, args...)
	return list, err
}

func (t *readTx) step(sql string, args ...any) (*gatehouse.Step, error) {
	list, err := t.steps(sql, args...)
	if err == nil && len(list) == 0 {
		return nil, gatehouse.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// FindStep finds by id.
func (t *readTx) FindStep(id string) (*gatehouse.Step, error) {
	return t.step(findStep, t.tenant, id)
}

// FindStepOf finds a step by its key within the run.
func (t *readTx) FindStepOf(runID, key string) (*gatehouse.Step, error) {
	return t.step(findStepOf, t.tenant, runID, key)
}

// ListItems lists the items of a for_each step.
func (t *readTx) ListItems(stepID string, open bool) ([]*gatehouse.Step, error) {
	sql := itemsOfStep
	if open {
		sql = openItemsOfStep
	}
	list, err := t.steps(sql, t.tenant, stepID)
	shared.SortItems(list)
	return list, err
}

// CountSteps reads only an index.
func (t *readTx) CountSteps(runID string) (int, error) {
	n, err := t.number(countSteps, t.tenant, runID)
	return int(n), err
}

// FindStepByKey finds the step that holds an idempotency key.
func (t *readTx) FindStepByKey(key string) (*gatehouse.Step, error) {
	return t.step(findStepByKey, t.tenant, key)
}

// FindStepByAction finds the latest step that proposed or adopted an action.
func (t *readTx) FindStepByAction(actionID string) (*gatehouse.Step, error) {
	return t.step(findStepByAction, t.tenant, actionID)
}

// InsertSteps adds for_each items to runs.
func (t *tx) InsertSteps(steps ...*gatehouse.Step) error {
	for _, x := range steps {
		if err := t.Owns(x.Tenant); err != nil {
			return err
		}
	}
	var seq int64
	var of *gatehouse.Step
	for _, s := range steps {
		if of == nil || of.Tenant != s.Tenant || of.RunID != s.RunID {
			var err error
			if seq, err = t.number(`SELECT seq FROM run WHERE tenant = ? AND id = ?`, s.Tenant, s.RunID); err != nil {
				return err
			}
			if seq == 0 {
				return gatehouse.ErrNotFound
			}
			of = s
		}
		if err := t.insertStep(seq, s); err != nil {
			return err
		}
	}
	return nil
}

const insertStep = `INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses,
  tool, status, attempts, generation, idempotency_key, skipped, failure_code, failure_detail, action_id, action_at,
  child_run, event, due_at, lease_owner, lease_until,
created_at, ready_at, started_at, finished_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (t *tx) insertStep(run int64, s *gatehouse.Step) error {
	if !gatehouse.StepStatus("").CanMove(s.Status) {
		return gatehouse.ErrConflict
	}
	var taken any
	if s.ActionID != "" {
		taken = t.at
	}
	code, detail := shared.FailureArgs(s.Failure)
	_, err := t.exec(insertStep, s.Tenant, s.ID, run, s.RunID, s.Key, s.Index, s.Parent, s.Workflow, s.Workspace, s.Uses,
		s.Tool, string(s.Status), s.Attempts, s.Generation, shared.OrNull(s.IdempotencyKey), s.Skipped, code, detail,
		shared.OrNull(s.ActionID), taken, shared.OrNull(s.ChildRun), s.Event, s.DueAt, s.LeaseOwner, s.LeaseUntil,
		s.CreatedAt, s.ReadyAt, s.StartedAt, s.FinishedAt)
	if err != nil || s.Item == "" && s.Input == "" && s.Output == "" {
		return err
	}
	_, err = t.exec(`INSERT INTO step_body (seq, tenant, item, input, output) VALUES (?, ?, ?, ?, ?)`,
		t.c.lastRow(), s.Tenant, s.Item, s.Input, s.Output)
	return err
}

// If another step holds the idempotency key, UpdateStep returns ErrConflict, and the transaction must stay open. UPDATE
// OR FAIL keeps it open, and needs no statement journal for a statement that changes one row.
const updateStep = `UPDATE OR FAIL step
SET status = ?1, attempts = ?2, generation = ?3, idempotency_key = ?4, skipped = ?5,
  failure_code = ?6, failure_detail = ?7,
  action_at = CASE WHEN ?8 IS NULL THEN NULL WHEN action_id IS ?8 THEN action_at ELSE ?9 END,
  action_id = ?8, child_run = ?10, event = ?11, due_at = ?12, lease_owner = ?13,
  lease_until = ?14, ready_at = ?15, started_at = ?16,
  finished_at = ?17
WHERE seq = ?18 AND status = ?19 AND generation = ?20`

// UpdateStep writes the mutable fields of a step; ErrConflict unless the stored
// status is from and the stored generation is generation. s.Status may equal from, for example when only the lease is
// extended.
func (t *tx) UpdateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	if s.Status != from && !from.CanMove(s.Status) || s.Generation < generation {
		return gatehouse.ErrConflict
	}
	return t.updateStep(s, from, generation)
}

// PassStep writes the result of an inline step: it began and ended in this
// transaction.
func (t *tx) PassStep(s *gatehouse.Step, worker string) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	if !shared.Passed(s) {
		return gatehouse.ErrConflict
	}
	if err := t.updateStep(s, gatehouse.StepBlocked, s.Generation-1); err != nil {
		return err
	}
	return t.InsertAttempt(&gatehouse.StepAttempt{
		Tenant: s.Tenant, RunID: s.RunID, StepID: s.ID, Attempt: s.Attempts, Generation: s.Generation, Worker: worker,
		StartedAt: *s.StartedAt, FinishedAt: *s.FinishedAt, Outcome: string(s.Status),
	})
}

func (t *tx) updateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	seq, err := t.number(`SELECT seq FROM step WHERE tenant = ? AND id = ?`, s.Tenant, s.ID)
	if err != nil {
		return err
	}
	code, detail := shared.FailureArgs(s.Failure)
	err = t.guarded(updateStep, string(s.Status), s.Attempts, s.Generation, shared.OrNull(s.IdempotencyKey), s.Skipped,
		code, detail,
		shared.OrNull(s.ActionID), t.at, shared.OrNull(s.ChildRun), s.Event, s.DueAt, s.LeaseOwner, s.LeaseUntil,
		s.ReadyAt, s.StartedAt, s.FinishedAt,
		seq, string(from), generation)
	if err == nil && (s.Input != "" || s.Output != "") {
		_, err = t.exec(`INSERT INTO step_body (seq, tenant, item, input, output) VALUES (?, ?, '', ?, ?)
ON CONFLICT (seq) DO UPDATE SET input = CASE WHEN excluded.input = '' THEN input ELSE excluded.input END,
  output = CASE WHEN excluded.output = '' THEN output ELSE excluded.output END`, seq, s.Tenant, s.Input, s.Output)
	}
	if err == nil && from.Parked() {
		_, err = t.exec(`DELETE FROM step_wake WHERE step_seq = ?`, seq)
	}
	if err != nil {
		return err
	}
	return t.wakeStep(seq, s)
}

// wakeStep marks a parked step whose action or child run has already ended.
func (t *tx) wakeStep(seq int64, s *gatehouse.Step) (err error) {
	ended := false
	switch {
	case s.Status == gatehouse.StepWaitingApproval && s.ActionID != "":
		err = t.each(`SELECT status FROM action WHERE tenant = ?1 AND id = ?2
 UNION ALL SELECT status FROM action_archive WHERE tenant = ?1 AND id = ?2`,
			func(r *stmt) error { ended = shared.HasEnded(gatehouse.Status(r.Text())); return nil }, s.Tenant,
			s.ActionID)
	case s.Status == gatehouse.StepWaiting && s.ChildRun != "":
		err = t.each(`SELECT status FROM run WHERE tenant = ? AND id = ?`,
			func(r *stmt) error { ended = gatehouse.RunStatus(r.Text()).Final(); return nil }, s.Tenant, s.ChildRun)
	}
	if err == nil && ended {
		_, err = t.exec(`INSERT INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT seq, tenant, run_id, id FROM step WHERE seq = ?`, seq)
	}
	return err
}

const stepsOfAction = `SELECT seq FROM step
WHERE tenant = ? AND action_id = ? AND action_id IS NOT NULL AND status = 'waiting_approval'`

// wakeAfter wakes the steps that wait for an action that the move m has ended. err is the error of that move. Nearly
// all actions have no waiting step; they cost one lookup.
func (t *tx) wakeAfter(err error, m gatehouse.ActionMove) error {
	if err != nil {
		return err
	}
	var waiting []int64
	err = t.each(stepsOfAction, func(r *stmt) error { waiting = append(waiting, r.Int()); return nil }, t.tenant, m.ID)
	for _, seq := range waiting {
		if err == nil {
			_, err = t.exec(`INSERT OR IGNORE INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT seq, tenant, run_id, id FROM step WHERE seq = ?`, seq)
		}
	}
	return err
}
