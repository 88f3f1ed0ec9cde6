package postgres

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	stepColumns = `s.tenant, s.id, s.run_id, s.key, s.position, s.parent, s.workflow, s.workspace, s.uses, s.tool, s.status,
  s.attempts, s.generation, coalesce(s.idempotency_key, ''), s.skipped, s.failure_code, s.failure_detail, coalesce(s.action_id, ''),
  coalesce(s.child_run, ''), s.event, s.due_at, s.lease_owner, s.lease_until, s.created_at, s.ready_at, s.started_at, s.finished_at`

	stepBodies = `, coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')`
	fullStep   = `SELECT ` + stepColumns + stepBodies + ` FROM step s LEFT JOIN step_body b ON b.seq = s.seq `

	// The steps that a transition reads: the run's top-level steps, and one item. Most top-level
	// steps have not begun or have ended; they do not move by themselves, and only their resting
	// columns are read. Of the other items it reads only which open states occur, with one index
	// lookup per state.
	boardSteps = `SELECT ` + restingStep + topStep + ` AND s.status IN ('blocked', 'succeeded', 'canceled')
UNION ALL SELECT ` + movingStep + `, CASE WHEN s.status = 'waiting' THEN ` + openItems + ` END` + topStep + ` AND s.status NOT IN ('blocked', 'succeeded', 'canceled')
UNION ALL SELECT ` + movingStep + `, NULL FROM step s WHERE s.tenant = $1 AND s.id = $3 AND s.run_id = $2 AND length(s.parent) > 0`
	anyStep    = `s.id, s.key, s.position, s.parent, s.uses, s.tool, s.status, s.attempts, s.generation, s.skipped, s.created_at, `
	movingStep = anyStep + `s.idempotency_key, s.failure_code, s.failure_detail, s.action_id, s.child_run, s.event, s.due_at, s.lease_owner,
  s.lease_until, s.ready_at, s.started_at, s.finished_at`
	restingStep = anyStep + `NULL, NULL, NULL, NULL, NULL, NULL, NULL::bigint, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL`
	topStep     = ` FROM step s WHERE s.run_seq = ` + seqOfRun + ` AND s.parent = ''`
	openItems   = `(SELECT string_agg(o.status, ',') FROM unnest('{ready,running,waiting_approval,waiting,failed_retryable}'::text[]) AS o (status)
  CROSS JOIN LATERAL (SELECT 1 FROM step i
    WHERE i.tenant = $1 AND i.parent = s.id COLLATE "C" AND i.parent <> '' AND i.item_status = o.status AND i.id <> $3 LIMIT 1) i)`
	itemsOfStep     = fullStep + `WHERE s.tenant = $1 AND s.parent = $2 COLLATE "C" AND s.parent <> ''`
	openItemsOfStep = itemsOfStep + ` AND s.item_status IN ('ready', 'running', 'waiting_approval', 'waiting', 'failed_retryable', 'blocked')`
	countSteps      = `SELECT count(*) FROM step WHERE run_seq = ` + seqOfRun

	findStep = fullStep + `WHERE s.tenant = $1 AND s.id = $2`
	// The key of an item begins with the key of its step.
	findStepOf = fullStep + `WHERE s.run_seq = ` + seqOfRun + ` AND s.parent = '' AND s.key = $3`
	findItemOf = fullStep + `WHERE s.run_seq = ` + seqOfRun + ` AND s.key = $3 AND s.parent =
  (SELECT p.id FROM step p WHERE p.run_seq = ` + seqOfRun + ` AND p.parent = '' AND p.key = $4)`
	// A key of the form "run id:step key" is in no index.
	findStepByKey = fullStep + `WHERE s.seq = (SELECT k.seq FROM step k WHERE k.tenant = $1 AND k.own_key = $2 AND k.own_key IS NOT NULL
UNION ALL SELECT k.seq FROM step k WHERE k.run_seq = (SELECT r.seq FROM run r WHERE r.tenant = $1 AND r.id = split_part($2, ':', 1)) AND k.parent = ''
  AND k.key = substr($2, strpos($2, ':') + 1) AND k.idempotency_key = $2 AND k.status NOT IN ('failed_terminal', 'canceled') LIMIT 1)`
	findStepByAction = fullStep + `WHERE s.tenant = $1 AND s.action_id = $2 AND s.action_id IS NOT NULL
ORDER BY s.action_at DESC, s.seq DESC LIMIT 1`
)

func scanStep(r *row) *gatehouse.Step {
	return &gatehouse.Step{
		Tenant: r.Text(), ID: r.Text(), RunID: r.Text(), Key: r.Text(), Index: int(r.Int()), Parent: r.Text(),
		Workflow: r.Text(), Workspace: r.Text(), Uses: r.Text(), Tool: r.Text(), Status: gatehouse.StepStatus(r.Text()),
		Attempts: int(r.Int()), Generation: int(r.Int()), IdempotencyKey: r.Text(), Skipped: r.Bool(),
		Failure:  shared.ScanFailure(r),
		ActionID: r.Text(), ChildRun: r.Text(), Event: r.Text(), DueAt: r.TimePtr(), LeaseOwner: r.Text(),
		LeaseUntil: r.TimePtr(),
		CreatedAt:  r.Time(), ReadyAt: r.TimePtr(), StartedAt: r.TimePtr(), FinishedAt: r.TimePtr(),
		Item: r.JSON(), Input: r.JSON(), Output: r.JSON(),
	}
}

// scanBoard reads a step as a transition sees it. It copies the fields that equal the run's from
// the run, and reads only the resting columns of a resting step.
func scanBoard(r *row, run *gatehouse.Run) *gatehouse.Step {
	s := &gatehouse.Step{
		Tenant: run.Tenant, RunID: run.ID, Workflow: run.Workflow, Workspace: run.Workspace,
		ID: r.Text(), Key: r.Text(), Index: int(r.Int()), Parent: r.Text(), Uses: r.Text(), Tool: r.Text(),
		Status: gatehouse.StepStatus(r.Text()), Attempts: int(r.Int()), Generation: int(r.Int()), Skipped: r.Bool(),
		CreatedAt: r.Time(),
	}
	if s.Status == gatehouse.StepBlocked || s.Status == gatehouse.StepSucceeded || s.Status == gatehouse.StepCanceled {
		return s
	}
	s.IdempotencyKey, s.Failure, s.ActionID, s.ChildRun, s.Event = r.Text(), shared.ScanFailure(r), r.Text(), r.Text(),
		r.Text()
	s.DueAt, s.LeaseOwner, s.LeaseUntil = r.TimePtr(), r.Text(), r.TimePtr()
	s.ReadyAt, s.StartedAt, s.FinishedAt = r.TimePtr(), r.TimePtr(), r.TimePtr()
	if open := r.Text(); open != "" && shared.MayHaveItems(s) {
		for status := range strings.SplitSeq(open, ",") {
			s.OpenItems = append(s.OpenItems, gatehouse.StepStatus(status))
		}
	}
	return s
}

func (t *readTx) step(sql string, args ...any) (s *gatehouse.Step, err error) {
	err = t.one(sql, func(r *row) error { s = scanStep(r); return nil }, args...)
	return s, err
}

// FindStep finds a step by id.
func (t *readTx) FindStep(id string) (*gatehouse.Step, error) {
	return t.step(findStep, t.tenant, id)
}

// FindStepOf finds a step by its key in the run.
func (t *readTx) FindStepOf(runID, key string) (*gatehouse.Step, error) {
	if of, _, item := strings.Cut(key, "["); item {
		return t.step(findItemOf, t.tenant, runID, key, of)
	}
	return t.step(findStepOf, t.tenant, runID, key)
}

// ListItems lists the items of a for_each step.
func (t *readTx) ListItems(stepID string, open bool) (list []*gatehouse.Step, err error) {
	sql := itemsOfStep
	if open {
		sql = openItemsOfStep
	}
	err = t.each(sql, func(r *row) error { list = append(list, scanStep(r)); return nil }, t.tenant, stepID)
	shared.SortItems(list)
	return list, err
}

// CountSteps counts the steps of a run with an index-only scan.
func (t *readTx) CountSteps(runID string) (int, error) {
	n, err := t.number(countSteps, t.tenant, runID)
	return int(n), err
}

// FindStepByKey finds the step that holds an idempotency key.
func (t *readTx) FindStepByKey(key string) (*gatehouse.Step, error) {
	return t.step(findStepByKey, t.tenant, key)
}

// FindStepByAction finds the step that took up an action last.
func (t *readTx) FindStepByAction(actionID string) (*gatehouse.Step, error) {
	return t.step(findStepByAction, t.tenant, actionID)
}

const (
	stepInsert = `INSERT INTO step (run_seq, tenant, id, run_id, key, position, parent, workflow, workspace, uses, tool, status, attempts,
generation, idempotency_key, skipped, failure_code, failure_detail, action_id, action_at, child_run, event, due_at, lease_owner, lease_until,
created_at, ready_at, started_at, finished_at)
SELECT `
	stepValues = `, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28`

	// A step of the run inserted last, and an item of an existing run.
	insertStep = stepInsert + newRunSeq + stepValues
	insertItem = guarded + stepInsert + `r.seq` + stepValues + ` FROM run r WHERE r.tenant = $1 AND r.id = $3` + orMissing
)

// InsertSteps adds items to runs.
func (t *tx) InsertSteps(steps ...*gatehouse.Step) error {
	for _, x := range steps {
		if err := t.checkTenant(x.Tenant); err != nil {
			return err
		}
	}
	for _, s := range steps {
		if err := t.insertStep(insertItem, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) insertStep(sql string, s *gatehouse.Step) error {
	if !gatehouse.StepStatus("").CanMove(s.Status) {
		return gatehouse.ErrConflict
	}
	var taken any
	if s.ActionID != "" {
		taken = t.Now()
	}
	code, detail := shared.FailureArgs(s.Failure)
	err := t.write(sql, s.Tenant, s.ID, s.RunID, s.Key, s.Index, s.Parent, s.Workflow, s.Workspace, s.Uses, s.Tool,
		string(s.Status), s.Attempts, s.Generation, shared.OrNull(s.IdempotencyKey), s.Skipped, code, detail,
		shared.OrNull(s.ActionID), taken,
		shared.OrNull(s.ChildRun), s.Event, s.DueAt, s.LeaseOwner, s.LeaseUntil, s.CreatedAt, s.ReadyAt, s.StartedAt,
		s.FinishedAt)
	if err != nil || s.Item == "" && s.Input == "" && s.Output == "" {
		return err
	}
	return t.write(`INSERT INTO step_body (seq, tenant, item, input, output) VALUES (currval('step_seq_seq'), $1, $2, $3, $4)`,
		s.Tenant, s.Item, s.Input, s.Output)
}

const (
	stepMoved = `UPDATE step SET status = $5, attempts = $6, generation = $7, idempotency_key = $8, skipped = $9,
  failure_code = $10, failure_detail = $11,
  action_at = CASE WHEN $12::text IS NULL THEN NULL WHEN action_id IS NOT DISTINCT FROM $12 THEN action_at ELSE $13 END,
  action_id = $12, child_run = $14, event = $15, due_at = $16, lease_owner = $17, lease_until = $18, ready_at = $19, started_at = $20,
  finished_at = $21`
	stepGuard  = ` WHERE tenant = $1 AND id = $2 AND status = $3 AND generation = $4 AND ` + keyFree + `$8 AND k.id <> $2 OFFSET 0)`
	keyFree    = `NOT EXISTS (SELECT 1 FROM step k WHERE k.tenant = $1 AND k.own_key = `
	updateStep = guarded + stepMoved + stepGuard + orConflict
	// With bodies; an absent one stays unchanged.
	updateBodies = guarded + stepMoved + stepGuard + ` RETURNING seq), b AS (
INSERT INTO step_body AS b (seq, tenant, item, input, output) SELECT seq, $1, '', $22, $23 FROM w` + bodiesStay + `)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
	bodiesStay = `
ON CONFLICT (seq) DO UPDATE SET input = CASE WHEN excluded.input = '' THEN b.input ELSE excluded.input END,
  output = CASE WHEN excluded.output = '' THEN b.output ELSE excluded.output END`

	// The object that a step is parked on is locked, in the order of LockAction, before a wake
	// is inserted or deleted. So a transaction that ends the object has either committed before,
	// and this one sees the end, or waits for this one and sees its result.
	actionOfStep     = `(SELECT a.seq FROM action a WHERE a.tenant = $1 AND a.id = (SELECT s.action_id FROM step s WHERE s.tenant = $1 AND s.id = $2))`
	childOfStep      = `(SELECT r.seq FROM run r WHERE r.tenant = $1 AND r.id = (SELECT s.child_run FROM step s WHERE s.tenant = $1 AND s.id = $2))`
	lockStepApproval = `SELECT 1 FROM approval WHERE seq = ` + actionOfStep + ` FOR NO KEY UPDATE`
	lockStepAction   = `SELECT 1 FROM action WHERE seq = ` + actionOfStep + ` FOR NO KEY UPDATE`
	lockChild        = `SELECT 1 FROM run WHERE seq = ` + childOfStep + ` FOR NO KEY UPDATE`

	unwakeStep = `DELETE FROM step_wake WHERE step_seq = (SELECT seq FROM step WHERE tenant = $1 AND id = $2)`
	wakeStep   = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT s.seq, s.tenant, s.run_id, s.id FROM step s
WHERE s.tenant = $1 AND s.id = $2 AND `
	wakeIfAction = wakeStep + `EXISTS (SELECT 1 FROM action WHERE seq = ` + actionOfStep + ` AND ` + shared.Ended + `
UNION ALL SELECT 1 FROM action_archive r WHERE r.tenant = $1 AND r.id = (SELECT k.action_id FROM step k WHERE k.tenant = $1 AND k.id = $2))`
	wakeIfChild    = wakeStep + `(SELECT status FROM run WHERE seq = ` + childOfStep + `) IN ('succeeded', 'failed_terminal', 'canceled')`
	wakeActionStep = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT seq, tenant, run_id, id FROM step
WHERE tenant = $1 AND action_id = $2 AND action_id IS NOT NULL AND status = 'waiting_approval' ON CONFLICT DO NOTHING`
)

// UpdateStep writes the mutable fields of a step, guarded by the status and the generation that
// its holder read. A heartbeat keeps the status.
func (t *tx) UpdateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	if err := t.checkTenant(s.Tenant); err != nil {
		return err
	}
	if s.Status != from && !from.CanMove(s.Status) || s.Generation < generation {
		return gatehouse.ErrConflict
	}
	return t.updateStep(s, from, generation)
}

const (
	// A blocked step has no bodies and waits for no action or run.
	stepPassed = `UPDATE step SET status = 'succeeded', attempts = $3, generation = $4, idempotency_key = $5, skipped = $6, ready_at = $7,
  started_at = $8, finished_at = $9`
	stepBlocked = ` WHERE tenant = $1 AND id = $2 AND status = 'blocked' AND generation = $4 - 1 AND ` + keyFree + `$5 OFFSET 0)
  RETURNING seq, tenant, run_id, id, attempts, generation, started_at, finished_at, `
	passedParts = `), b AS (INSERT INTO step_body (seq, tenant, item, input, output) SELECT seq, tenant, '', input, output FROM w),
a AS (` + attemptColumns + `SELECT tenant, run_id, id, attempts, generation, worker, started_at, finished_at, 'succeeded', '', '' FROM w)
`
	passStep = guarded + stepPassed + stepBlocked + `$10::text AS input, $11::text AS output, $12::text AS worker` + passedParts +
		`SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
)

// PassStep writes the result of an inline step, which began in this transaction.
func (t *tx) PassStep(s *gatehouse.Step, worker string) error {
	if err := t.checkTenant(s.Tenant); err != nil {
		return err
	}
	if !shared.Passed(s) {
		return gatehouse.ErrConflict
	}
	return t.write(passStep, s.Tenant, s.ID, s.Attempts, s.Generation, shared.OrNull(s.IdempotencyKey), s.Skipped,
		s.ReadyAt, s.StartedAt, s.FinishedAt,
		s.Input, s.Output, worker)
}

func (t *tx) updateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	code, detail := shared.FailureArgs(s.Failure)
	statements := make([]query, 0, 8)
	add := func(sql ...string) {
		for _, q := range sql {
			statements = append(statements, query{sql: q, args: []any{s.Tenant, s.ID}})
		}
	}
	switch from {
	case gatehouse.StepWaitingApproval:
		add(lockStepApproval, lockStepAction)
	case gatehouse.StepWaiting:
		add(lockChild)
	}
	update := query{sql: updateStep, args: []any{
		s.Tenant, s.ID, string(from), generation,
		string(s.Status), s.Attempts, s.Generation, shared.OrNull(s.IdempotencyKey), s.Skipped, code, detail,
		shared.OrNull(s.ActionID), t.Now(), shared.OrNull(s.ChildRun), s.Event, s.DueAt, s.LeaseOwner, s.LeaseUntil,
		s.ReadyAt, s.StartedAt, s.FinishedAt,
	}}
	if s.Input != "" || s.Output != "" {
		update = query{sql: updateBodies, args: append(update.args, s.Input, s.Output)}
	}
	statements = append(statements, update)
	if from.Parked() {
		add(unwakeStep)
	}
	switch {
	case s.Status == gatehouse.StepWaitingApproval && s.ActionID != "":
		add(lockStepApproval, lockStepAction, wakeIfAction)
	case s.Status == gatehouse.StepWaiting && s.ChildRun != "":
		add(lockChild, wakeIfChild)
	}
	for _, q := range statements {
		if err := t.write(q.sql, q.args...); err != nil {
			return err
		}
	}
	return nil
}
