package postgres

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// stepColumns are the columns that scanStep reads.
const stepColumns = `s.tenant, s.id, s.run_id, s.key, s.position, s.parent, s.workflow, s.workspace, s.uses, s.tool,
  s.status, s.attempts, s.generation, coalesce(s.idempotency_key, ''), s.skipped, s.failure_code, s.failure_detail,
  coalesce(s.action_id, ''), coalesce(s.child_run, ''), s.event, s.due_at, s.lease_owner, s.lease_until,
  s.created_at, s.ready_at, s.started_at, s.finished_at,
  coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, '')`

const (
	itemsOfStep = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.tenant = $1 AND s.parent = $2 COLLATE "C" AND s.parent <> ''`
	openItemsOfStep = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.tenant = $1 AND s.parent = $2 COLLATE "C" AND s.parent <> ''
  AND s.item_status IN ('ready', 'running', 'waiting_approval', 'waiting', 'failed_retryable', 'blocked')`
	countSteps = `SELECT count(*) FROM step WHERE run_seq = (SELECT seq FROM run WHERE tenant = $1 AND id = $2)`

	findStep = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq WHERE s.tenant = $1 AND s.id = $2`
	findStepOf = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.run_seq = (SELECT seq FROM run WHERE tenant = $1 AND id = $2) AND s.parent = '' AND s.key = $3`
	// The key of an item begins with the key of its step.
	findItemOf = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.run_seq = (SELECT seq FROM run WHERE tenant = $1 AND id = $2) AND s.key = $3
  AND s.parent = (
    SELECT p.id FROM step p
    WHERE p.run_seq = (SELECT seq FROM run WHERE tenant = $1 AND id = $2) AND p.parent = '' AND p.key = $4)`
	// own_key is NULL if the idempotency key is "run id:step key". The second branch finds such a step by its run
	// and step key.
	findStepByKey = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.seq = (
  SELECT k.seq FROM step k WHERE k.tenant = $1 AND k.own_key = $2 AND k.own_key IS NOT NULL
  UNION ALL SELECT k.seq FROM step k
  WHERE k.run_seq = (SELECT r.seq FROM run r WHERE r.tenant = $1 AND r.id = split_part($2, ':', 1))
    AND k.parent = '' AND k.key = substr($2, strpos($2, ':') + 1) AND k.idempotency_key = $2
    AND k.status NOT IN ('failed_terminal', 'canceled') LIMIT 1)`
	findStepByAction = `SELECT ` + stepColumns + `
FROM step s LEFT JOIN step_body b ON b.seq = s.seq
WHERE s.tenant = $1 AND s.action_id = $2 AND s.action_id IS NOT NULL
ORDER BY s.action_at DESC, s.seq DESC LIMIT 1`
)

// transitionStepsRow names a run, and one of its items; "" for none.
type transitionStepsRow struct{ Tenant, RunID, ItemID string }

// findTransitionSteps finds the steps that a transition reads: a run's top-level steps, and one item. Most top-level
// steps are blocked, succeeded or canceled; of these it reads only the columns that LockRun has to return. For the
// items other than ItemID, it reads only which open states occur, with one lookup per state.
var findTransitionSteps = reads[transitionStepsRow](`
SELECT r.n, s.*
FROM (
  SELECT tenant, ($2::text[])[n] AS run_id, ($3::text[])[n] AS item_id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
) r
CROSS JOIN LATERAL (
  SELECT s.id, s.key, s.position, s.parent, s.uses, s.tool, s.status, s.attempts, s.generation, s.skipped,
    s.created_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL::bigint, NULL, NULL::bigint, NULL::bigint,
    NULL::bigint, NULL::bigint, NULL
  FROM step s
  WHERE s.run_seq = (SELECT seq FROM run WHERE tenant = r.tenant AND id = r.run_id) AND s.parent = ''
    AND s.status IN ('blocked', 'succeeded', 'canceled')
  UNION ALL
  SELECT s.id, s.key, s.position, s.parent, s.uses, s.tool, s.status, s.attempts, s.generation, s.skipped,
    s.created_at, s.idempotency_key, s.failure_code, s.failure_detail, s.action_id, s.child_run, s.event,
    s.due_at, s.lease_owner, s.lease_until, s.ready_at, s.started_at, s.finished_at,
    CASE WHEN s.status = 'waiting' THEN (
      SELECT string_agg(o.status, ',')
      FROM unnest('{ready,running,waiting_approval,waiting,failed_retryable}'::text[]) AS o (status)
      CROSS JOIN LATERAL (
        SELECT 1 FROM step i
        WHERE i.tenant = r.tenant AND i.parent = s.id COLLATE "C" AND i.parent <> ''
          AND i.item_status = o.status AND i.id <> r.item_id LIMIT 1
      ) i
    ) END
  FROM step s
  WHERE s.run_seq = (SELECT seq FROM run WHERE tenant = r.tenant AND id = r.run_id) AND s.parent = ''
    AND s.status NOT IN ('blocked', 'succeeded', 'canceled')
  UNION ALL
  SELECT s.id, s.key, s.position, s.parent, s.uses, s.tool, s.status, s.attempts, s.generation, s.skipped,
    s.created_at, s.idempotency_key, s.failure_code, s.failure_detail, s.action_id, s.child_run, s.event,
    s.due_at, s.lease_owner, s.lease_until, s.ready_at, s.started_at, s.finished_at, NULL
  FROM step s
  WHERE s.tenant = r.tenant AND s.id = r.item_id AND s.run_id = r.run_id AND length(s.parent) > 0
  OFFSET 0
) s`)

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

// scanTransitionStep reads a step that findTransitionSteps has found. It copies the fields that equal the run's from
// the run.
func scanTransitionStep(r *row, run *gatehouse.Run) *gatehouse.Step {
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

// FindStepByAction finds the latest step that proposed or adopted an action.
func (t *readTx) FindStepByAction(actionID string) (*gatehouse.Step, error) {
	return t.step(findStepByAction, t.tenant, actionID)
}

// insertStep inserts a step of the run that this session inserted last.
const insertStep = `
INSERT INTO step (run_seq, tenant, id, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts, generation, idempotency_key, skipped, failure_code, failure_detail, action_id, action_at, child_run,
  event, due_at, lease_owner, lease_until, created_at, ready_at, started_at, finished_at)
SELECT currval('run_seq_seq'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
  $19, $20, $21, $22, $23, $24, $25, $26, $27, $28`

// insertItem inserts an item of an existing run.
const insertItem = `
WITH w AS (
  INSERT INTO step (run_seq, tenant, id, run_id, key, position, parent, workflow, workspace, uses, tool, status,
    attempts, generation, idempotency_key, skipped, failure_code, failure_detail, action_id, action_at, child_run,
    event, due_at, lease_owner, lease_until, created_at, ready_at, started_at, finished_at)
  SELECT run.seq, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28
  FROM run WHERE run.tenant = $1 AND run.id = $3
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`

// InsertSteps adds items to runs.
func (t *tx) InsertSteps(steps ...*gatehouse.Step) error {
	for _, x := range steps {
		if err := t.Owns(x.Tenant); err != nil {
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
	err := t.Write(sql, s.Tenant, s.ID, s.RunID, s.Key, s.Index, s.Parent, s.Workflow, s.Workspace, s.Uses, s.Tool,
		string(s.Status), s.Attempts, s.Generation, shared.OrNull(s.IdempotencyKey), s.Skipped, code, detail,
		shared.OrNull(s.ActionID), taken,
		shared.OrNull(s.ChildRun), s.Event, s.DueAt, s.LeaseOwner, s.LeaseUntil, s.CreatedAt, s.ReadyAt, s.StartedAt,
		s.FinishedAt)
	if err != nil || s.Item == "" && s.Input == "" && s.Output == "" {
		return err
	}
	return t.Write(`INSERT INTO step_body (seq, tenant, item, input, output)
VALUES (currval('step_seq_seq'), $1, $2, $3, $4)`,
		s.Tenant, s.Item, s.Input, s.Output)
}

const (
	// The action or run that a step waits for is locked, in the order of LockAction, before a row of step_wake
	// is inserted or deleted. So a transaction that ends the action or run has either committed before, and this
	// transaction sees the end, or waits for this transaction and sees its result.
	lockStepApproval = `SELECT 1 FROM approval WHERE seq = (
  SELECT a.seq FROM action a
  WHERE a.tenant = $1 AND a.id = (SELECT s.action_id FROM step s WHERE s.tenant = $1 AND s.id = $2)
) FOR NO KEY UPDATE`
	lockStepAction = `SELECT 1 FROM action WHERE seq = (
  SELECT a.seq FROM action a
  WHERE a.tenant = $1 AND a.id = (SELECT s.action_id FROM step s WHERE s.tenant = $1 AND s.id = $2)
) FOR NO KEY UPDATE`
	lockChild = `SELECT 1 FROM run WHERE seq = (
  SELECT r.seq FROM run r
  WHERE r.tenant = $1 AND r.id = (SELECT s.child_run FROM step s WHERE s.tenant = $1 AND s.id = $2)
) FOR NO KEY UPDATE`

	unwakeStep = `DELETE FROM step_wake WHERE step_seq = (SELECT seq FROM step WHERE tenant = $1 AND id = $2)`
	// The statuses are those of shared.HasEnded.
	wakeIfAction = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT s.seq, s.tenant, s.run_id, s.id FROM step s
WHERE s.tenant = $1 AND s.id = $2 AND EXISTS (
  SELECT 1 FROM action a
  WHERE a.tenant = $1 AND a.id = s.action_id
    AND a.status IN ('applied', 'failed', 'rejected', 'denied', 'expired', 'canceled', 'superseded', 'reversed')
  UNION ALL SELECT 1 FROM action_archive r WHERE r.tenant = $1 AND r.id = s.action_id)`
	wakeIfChild = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT s.seq, s.tenant, s.run_id, s.id FROM step s
WHERE s.tenant = $1 AND s.id = $2 AND (SELECT status FROM run WHERE seq = (
  SELECT r.seq FROM run r
  WHERE r.tenant = $1 AND r.id = (SELECT s.child_run FROM step s WHERE s.tenant = $1 AND s.id = $2)
)) IN ('succeeded', 'failed_terminal', 'canceled')`
)

// stepUpdate holds the new values of a step. FromStatus and FromGeneration are the values that the caller of
// UpdateStep read.
type stepUpdate struct {
	Tenant, ID                                 string
	FromStatus                                 gatehouse.StepStatus
	FromGeneration                             int
	Status                                     gatehouse.StepStatus
	Attempts, Generation                       int
	IdempotencyKey                             *string
	Skipped                                    bool
	Failure                                    *failure
	ActionID                                   *string
	ActionAt                                   time.Time
	ChildRun                                   *string
	Event                                      string
	DueAt                                      *time.Time
	LeaseOwner                                 string
	LeaseUntil, ReadyAt, StartedAt, FinishedAt *time.Time
	Input, Output                              gatehouse.JSON
}

// updateSteps writes the mutable fields of steps. An empty input or output leaves the stored value unchanged.
var updateSteps = writes[stepUpdate](rankStep, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS from_status, ($4::bigint[])[n] AS from_generation,
    ($5::text[])[n] AS status, ($6::bigint[])[n] AS attempts, ($7::bigint[])[n] AS generation,
    ($8::text[])[n] AS idempotency_key, ($9::boolean[])[n] AS skipped, ($10::text[])[n] AS failure_code,
    ($11::text[])[n] AS failure_detail, ($12::text[])[n] AS action_id, ($13::bigint[])[n] AS action_at,
    ($14::text[])[n] AS child_run, ($15::text[])[n] AS event, ($16::bigint[])[n] AS due_at,
    ($17::text[])[n] AS lease_owner, ($18::bigint[])[n] AS lease_until, ($19::bigint[])[n] AS ready_at,
    ($20::bigint[])[n] AS started_at, ($21::bigint[])[n] AS finished_at, ($22::text[])[n] AS input,
    ($23::text[])[n] AS output, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $24
),
w AS (
  UPDATE step SET status = r.status, attempts = r.attempts, generation = r.generation,
    idempotency_key = r.idempotency_key, skipped = r.skipped,
    failure_code = r.failure_code, failure_detail = r.failure_detail,
    action_at = CASE
      WHEN r.action_id IS NULL THEN NULL
      WHEN step.action_id IS NOT DISTINCT FROM r.action_id THEN step.action_at
      ELSE r.action_at
    END,
    action_id = r.action_id, child_run = r.child_run, event = r.event, due_at = r.due_at,
    lease_owner = r.lease_owner, lease_until = r.lease_until, ready_at = r.ready_at,
    started_at = r.started_at, finished_at = r.finished_at
  FROM r
  WHERE step.tenant = r.tenant AND step.id = r.id AND step.status = r.from_status
    AND step.generation = r.from_generation
    AND NOT EXISTS (
      SELECT 1 FROM step k WHERE k.tenant = r.tenant AND k.own_key = r.idempotency_key AND k.id <> r.id OFFSET 0)
  RETURNING step.seq, step.tenant, r.input, r.output
),
b AS (
  INSERT INTO step_body AS b (seq, tenant, item, input, output)
  SELECT seq, tenant, '', input, output FROM w WHERE input <> '' OR output <> ''
  ON CONFLICT (seq) DO UPDATE
  SET input = CASE WHEN excluded.input = '' THEN b.input ELSE excluded.input END,
    output = CASE WHEN excluded.output = '' THEN b.output ELSE excluded.output END
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $24 THEN 0 ELSE gatehouse_refuse('GH001') END`).withKey()

// UpdateStep writes the mutable fields of a step. The transaction fails with ErrConflict unless the stored
// status is from and the stored generation is generation. For a heartbeat, from is the status of s.
func (t *tx) UpdateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	if s.Status != from && !from.CanMove(s.Status) || s.Generation < generation {
		return gatehouse.ErrConflict
	}
	return t.updateStep(s, from, generation)
}

// passedStep is an inline step that has succeeded.
type passedStep struct {
	Tenant, ID                     string
	Attempts, Generation           int
	IdempotencyKey                 *string
	Skipped                        bool
	ReadyAt, StartedAt, FinishedAt *time.Time
	Input, Output                  gatehouse.JSON
	Worker                         string
}

// passSteps moves blocked steps, which have no bodies and wait for no action or run, to succeeded.
var passSteps = writes[passedStep](rankPass, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::bigint[])[n] AS attempts, ($4::bigint[])[n] AS generation,
    ($5::text[])[n] AS idempotency_key, ($6::boolean[])[n] AS skipped, ($7::bigint[])[n] AS ready_at,
    ($8::bigint[])[n] AS started_at, ($9::bigint[])[n] AS finished_at, ($10::text[])[n] AS input,
    ($11::text[])[n] AS output, ($12::text[])[n] AS worker, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $13
),
w AS (
  UPDATE step SET status = 'succeeded', attempts = r.attempts, generation = r.generation,
    idempotency_key = r.idempotency_key, skipped = r.skipped, ready_at = r.ready_at,
    started_at = r.started_at, finished_at = r.finished_at
  FROM r
  WHERE step.tenant = r.tenant AND step.id = r.id AND step.status = 'blocked'
    AND step.generation = r.generation - 1
    AND NOT EXISTS (SELECT 1 FROM step k WHERE k.tenant = r.tenant AND k.own_key = r.idempotency_key OFFSET 0)
  RETURNING step.seq, step.run_id, r.*
),
b AS (
  INSERT INTO step_body (seq, tenant, item, input, output) SELECT seq, tenant, '', input, output FROM w
),
a AS (
  INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at,
    outcome, code, detail)
  SELECT tenant, run_id, id, attempts, generation, worker, started_at, finished_at, 'succeeded', '', '' FROM w
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $13 THEN 0 ELSE gatehouse_refuse('GH001') END`).withKey()

// PassStep writes the result of an inline step, which began in this transaction.
func (t *tx) PassStep(s *gatehouse.Step, worker string) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	if !shared.Passed(s) {
		return gatehouse.ErrConflict
	}
	return passSteps.write(t, passedStep{
		s.Tenant, s.ID, s.Attempts, s.Generation, orNull(s.IdempotencyKey), s.Skipped,
		s.ReadyAt, s.StartedAt, s.FinishedAt, s.Input, s.Output, worker,
	})
}

func (t *tx) updateStep(s *gatehouse.Step, from gatehouse.StepStatus, generation int) error {
	statements := make([]query, 0, 8)
	add := func(sql ...string) {
		for _, q := range sql {
			statements = append(statements, query{sql: q, args: []any{s.Tenant, s.ID}, tenant: t.tenant})
		}
	}
	switch from {
	case gatehouse.StepWaitingApproval:
		add(lockStepApproval, lockStepAction)
	case gatehouse.StepWaiting:
		add(lockChild)
	}
	statements = append(statements, updateSteps.row(t, stepUpdate{
		s.Tenant, s.ID, from, generation, s.Status, s.Attempts, s.Generation, orNull(s.IdempotencyKey), s.Skipped,
		failureOf(s.Failure), orNull(s.ActionID), t.Now(), orNull(s.ChildRun), s.Event, s.DueAt, s.LeaseOwner,
		s.LeaseUntil, s.ReadyAt, s.StartedAt, s.FinishedAt, s.Input, s.Output,
	}))
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
		if err := t.queueWrite(q); err != nil {
			return err
		}
	}
	return nil
}
