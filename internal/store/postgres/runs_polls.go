package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The queries of the polls. Each reads the head of an index, so its cost does not grow with the number of parked
// steps.

// dueLanes finds each lane with one index lookup. Its row comparisons begin with the tool, so the planner can use
// step_ready only: by an index that begins with the tenant, it would read all steps of the tenant. OFFSET 0 keeps
// the planner from dropping ORDER BY, so that it reads the leases by their index.
const dueLanes = `
WITH RECURSIVE l (tenant, workspace, workflow) AS (
  (
    SELECT s.tenant, s.workspace, s.workflow FROM step s
    WHERE s.queued_at IS NOT NULL AND s.queued_at >= $10
      AND (s.tool, s.tenant, s.workspace, s.workflow) <= ($1, $5, $6, $7)
      AND (s.tool, s.tenant, s.workspace, s.workflow) > ($1, $2, $3, $4)
    ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
  )
  UNION ALL
  SELECT n.tenant, n.workspace, n.workflow FROM l CROSS JOIN LATERAL (
    SELECT s.tenant, s.workspace, s.workflow FROM step s
    WHERE s.queued_at IS NOT NULL AND s.queued_at >= $10
      AND (s.tool, s.tenant, s.workspace, s.workflow) <= ($1, $5, $6, $7)
      AND (s.tool, s.tenant, s.workspace, s.workflow) > ($1, l.tenant, l.workspace, l.workflow)
    ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
  ) n
),
running AS MATERIALIZED (
  SELECT tenant, workflow, count(*) AS n FROM (
    SELECT tenant, workflow FROM step
    WHERE status = 'running' AND lease_until IS NOT NULL AND lease_until >= $11
    ORDER BY lease_until, seq OFFSET 0
  ) s GROUP BY tenant, workflow
)
SELECT l.tenant, l.workspace, l.workflow, (
    SELECT count(*) FROM (
      SELECT 1 FROM step s
      WHERE s.queued_at IS NOT NULL AND s.queued_at >= $10 AND s.tool = $1 AND s.tenant = l.tenant
        AND s.workspace = l.workspace AND s.workflow = l.workflow
      ORDER BY s.queued_at, s.seq LIMIT $8
    ) d
  ),
  coalesce((SELECT n FROM running f WHERE f.tenant = l.tenant AND f.workflow = l.workflow), 0),
  coalesce((SELECT sum(n) FROM running f WHERE f.tenant = l.tenant), 0)::bigint
FROM l LIMIT $9`

// stepMarks are the low marks of ready, leased and due steps in all lanes. No transaction stores a ready time, lease
// end or due time that is earlier than its own start.
const stepMarks = `
WITH RECURSIVE l (tool, tenant, workspace, workflow, at) AS (
  (
    SELECT s.tool, s.tenant, s.workspace, s.workflow, s.queued_at FROM step s WHERE s.queued_at IS NOT NULL
    ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
  )
  UNION ALL
  SELECT n.* FROM l CROSS JOIN LATERAL (
    SELECT s.tool, s.tenant, s.workspace, s.workflow, s.queued_at FROM step s
    WHERE s.queued_at IS NOT NULL
      AND (s.tool, s.tenant, s.workspace, s.workflow) > (l.tool, l.tenant, l.workspace, l.workflow)
    ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
  ) n
)
SELECT (SELECT min(at) FROM l), (
    SELECT lease_until FROM step WHERE status = 'running' AND lease_until IS NOT NULL
    ORDER BY lease_until, seq LIMIT 1
  ), (
    SELECT due_at FROM step
    WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval')
    ORDER BY due_at, seq LIMIT 1
  )`

// readyTools finds each tool with one index lookup, as dueLanes finds lanes. Then it finds the first lanes of each tool
// in the same way. The first row of a lane has waited longest.
const readyTools = `
WITH RECURSIVE t (tool) AS (
  (
    SELECT s.tool FROM step s WHERE s.queued_at IS NOT NULL
    ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
  )
  UNION ALL
  SELECT n.tool FROM t CROSS JOIN LATERAL (
    SELECT s.tool FROM step s WHERE s.queued_at IS NOT NULL AND s.tool > t.tool
    ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
  ) n
)
SELECT t.tool, w.at, EXISTS (
    SELECT 1 FROM step r
    WHERE r.lease_until IS NOT NULL AND r.lease_until > $2 AND r.tool = t.tool AND ($3 = '' OR r.tenant = $3)
    ORDER BY r.lease_until, r.seq LIMIT 1 OFFSET 0
  )
FROM (SELECT tool FROM t LIMIT $1) t
CROSS JOIN LATERAL (
  WITH RECURSIVE l (tenant, workspace, workflow, at) AS (
    (
      SELECT s.tenant, s.workspace, s.workflow, s.queued_at FROM step s
      WHERE s.queued_at IS NOT NULL
        AND (s.tool, s.tenant, s.workspace, s.workflow) <= (t.tool, $4, $5, '')
        AND (s.tool, s.tenant, s.workspace, s.workflow) > (t.tool, $3, '', '')
      ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
    )
    UNION ALL
    SELECT n.* FROM l CROSS JOIN LATERAL (
      SELECT s.tenant, s.workspace, s.workflow, s.queued_at FROM step s
      WHERE s.queued_at IS NOT NULL
        AND (s.tool, s.tenant, s.workspace, s.workflow) <= (t.tool, $4, $5, '')
        AND (s.tool, s.tenant, s.workspace, s.workflow) > (t.tool, l.tenant, l.workspace, l.workflow)
      ORDER BY s.tool, s.tenant, s.workspace, s.workflow, s.queued_at, s.seq LIMIT 1
    ) n
  )
  SELECT min(x.at) AS at FROM (SELECT l.at FROM l LIMIT $6) x
) w
WHERE w.at IS NOT NULL`

const queuedLanes = `
WITH RECURSIVE l (tenant, workflow, workspace) AS (
  (
    SELECT r.tenant, r.workflow, r.workspace FROM run r
    WHERE r.status = 'queued' AND (r.tenant, r.workflow) > ($4, $5)
    ORDER BY r.tenant, r.workflow, r.created_at, r.seq LIMIT 1
  )
  UNION ALL
  SELECT n.tenant, n.workflow, n.workspace FROM l CROSS JOIN LATERAL (
    SELECT r.tenant, r.workflow, r.workspace FROM run r
    WHERE r.status = 'queued' AND (r.tenant, r.workflow) > (l.tenant, l.workflow)
    ORDER BY r.tenant, r.workflow, r.created_at, r.seq LIMIT 1
  ) n
)
SELECT l.tenant, l.workspace, l.workflow, (
    SELECT count(*) FROM (
      SELECT 1 FROM run r WHERE r.status = 'queued' AND r.tenant = l.tenant AND r.workflow = l.workflow
      ORDER BY r.created_at, r.seq LIMIT $1
    ) d
  ), (
    SELECT count(*) FROM run r
    WHERE r.started_at IS NOT NULL AND r.tenant = l.tenant AND r.started_at > $2 AND r.workflow = l.workflow
  ),
  (SELECT count(*) FROM run r WHERE r.started_at IS NOT NULL AND r.tenant = l.tenant AND r.started_at > $2)
FROM l LIMIT $3`

const (
	oldestQueued = `SELECT ` + runColumns + `
FROM run r WHERE r.status = 'queued' AND r.tenant = $1 AND r.workflow = $2 ORDER BY r.created_at, r.seq LIMIT $3`
	overdueRuns = `SELECT ` + runColumns + `
FROM run r
WHERE r.deadline IS NOT NULL AND r.stop = ''
  AND r.status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable') AND r.deadline <= $1
ORDER BY r.deadline, r.seq LIMIT $2`
	unbundledRuns = `SELECT ` + runColumns + `
FROM run r WHERE r.evidence = '' AND r.status IN ('succeeded', 'failed_terminal', 'canceled')
ORDER BY r.finished_at, r.seq LIMIT $1`

	settledSteps = `SELECT tenant, run_id, step_id FROM step_wake ORDER BY step_seq LIMIT $1`
	dueSteps     = `SELECT tenant, run_id, id FROM step
WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval')
  AND due_at >= $3 AND due_at <= $1
ORDER BY due_at, seq LIMIT $2`
	expiredSteps = `SELECT tenant, run_id, id FROM step
WHERE status = 'running' AND lease_until IS NOT NULL AND lease_until >= $3 AND lease_until <= $1
ORDER BY lease_until, seq LIMIT $2`
	dueSchedules = `SELECT tenant, workflow, version, next_at FROM schedule WHERE next_at <= $1 ORDER BY next_at LIMIT $2`
)

const nextRunWork = `
SELECT least(
  (
    SELECT due_at FROM step
    WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval') AND due_at >= $1
    ORDER BY due_at LIMIT 1
  ), (
    SELECT lease_until FROM step WHERE status = 'running' AND lease_until IS NOT NULL AND lease_until >= $2
    ORDER BY lease_until LIMIT 1
  ), (
    SELECT r.deadline FROM run r
    WHERE r.deadline IS NOT NULL AND r.stop = ''
      AND r.status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable')
    ORDER BY r.deadline LIMIT 1
  ),
  (SELECT next_at FROM schedule ORDER BY next_at LIMIT 1),
  (SELECT 0 FROM step_wake ORDER BY step_seq LIMIT 1))`

const runCounts = `
SELECT s.status, (
    SELECT count(*) FROM run r WHERE r.tenant = t.id AND r.status = s.status AND r.status <> ''
  )
FROM tenant t
CROSS JOIN unnest('{queued,running,waiting_approval,waiting,failed_retryable}'::text[]) AS s (status)`

// DueLanes lists lanes with ready steps, round-robin: first those after the given lane, then those up to it.
func (t *readTx) DueLanes(
	tenant, tool string, after gatehouse.Lane, limit, each int,
) (list []gatehouse.DueLane, err error) {
	defer t.AllTenants()()
	first, last := gatehouse.Lane{Tenant: tenant}, gatehouse.Lane{Tenant: shared.MaxText}
	if tenant != "" {
		last = gatehouse.Lane{Tenant: tenant, Workspace: shared.MaxText}
	}
	begin, err := t.scanFrom(&t.s.stepScan)
	if err != nil {
		return nil, err
	}
	walk := func(from, to gatehouse.Lane) query {
		return ask(dueLanes, func(r *row) error {
			d := gatehouse.DueLane{
				Lane:  gatehouse.Lane{Tenant: r.Text(), Workspace: r.Text(), Workflow: r.Text(), Tool: tool},
				Ready: int(r.Int()), WorkflowRunning: int(r.Int()), TenantRunning: int(r.Int()),
			}
			if len(list) < limit {
				list = append(list, d)
			}
			return nil
		}, tool, from.Tenant, from.Workspace, from.Workflow, to.Tenant, to.Workspace, to.Workflow,
			each, limit, begin[0], begin[1])
	}
	if shared.CompareLanes(after, first) <= 0 || tenant != "" && after.Tenant != tenant {
		return list, t.scanRead(&t.s.stepScan, walk(first, last))
	}
	err = t.scanRead(&t.s.stepScan, walk(after, last), walk(first, after))
	return list, err
}

// ReadyTools finds one tool after another, and the lanes of each tool one after another.
func (t *readTx) ReadyTools(tenant string, limit int) (list []gatehouse.ReadyTool, err error) {
	defer t.AllTenants()()
	last := gatehouse.Lane{Tenant: shared.MaxText}
	if tenant != "" {
		last = gatehouse.Lane{Tenant: tenant, Workspace: shared.MaxText}
	}
	err = t.each(readyTools, func(r *row) error {
		list = append(list, gatehouse.ReadyTool{Tool: r.Text(), Since: r.Time(), Leased: r.Bool()})
		return nil
	}, limit, t.Now(), tenant, last.Tenant, last.Workspace, gatehouse.ReadyLanes)
	return list, err
}

// QueuedLanes looks up one workflow after another.
func (t *readTx) QueuedLanes(
	after gatehouse.QueuedLane, limit, each int, since time.Time,
) (list []gatehouse.QueuedLane, err error) {
	defer t.AllTenants()()
	err = t.each(queuedLanes, func(r *row) error {
		list = append(list, gatehouse.QueuedLane{
			Tenant: r.Text(), Workspace: r.Text(), Workflow: r.Text(), Queued: int(r.Int()),
			WorkflowStarted: int(r.Int()), TenantStarted: int(r.Int()),
		})
		return nil
	}, each, since, limit, after.Tenant, after.Workflow)
	return list, err
}

// OldestQueued lists the runs to admit next.
func (t *readTx) OldestQueued(workflow string, limit int) ([]*gatehouse.Run, error) {
	return t.runs(oldestQueued, t.tenant, workflow, limit)
}

func (t *readTx) stepRefs(sql string, args ...any) (refs []gatehouse.StepRef, err error) {
	err = t.each(sql, func(r *row) error {
		refs = append(refs, gatehouse.StepRef{Tenant: r.Text(), RunID: r.Text(), StepID: r.Text()})
		return nil
	}, args...)
	return refs, err
}

// SettledSteps lists the parked steps that can continue.
func (t *readTx) SettledSteps(limit int) ([]gatehouse.StepRef, error) {
	defer t.AllTenants()()
	return t.stepRefs(settledSteps, limit)
}

// DueSteps lists retries that are due, and waits and approvals whose time is over.
func (t *readTx) DueSteps(limit int) ([]gatehouse.StepRef, error) {
	defer t.AllTenants()()
	from, err := t.scanFrom(&t.s.stepScan)
	if err != nil {
		return nil, err
	}
	return t.stepRefs(dueSteps, t.Now(), limit, from[2])
}

// ExpiredSteps lists steps whose lease has ended, earliest end first.
func (t *readTx) ExpiredSteps(limit int) ([]gatehouse.StepRef, error) {
	defer t.AllTenants()()
	from, err := t.scanFrom(&t.s.stepScan)
	if err != nil {
		return nil, err
	}
	return t.stepRefs(expiredSteps, t.Now(), limit, from[1])
}

// OverdueRuns lists runs past their deadline, earliest deadline first.
func (t *readTx) OverdueRuns(limit int) ([]*gatehouse.Run, error) {
	defer t.AllTenants()()
	return t.runs(overdueRuns, t.Now(), limit)
}

// UnbundledRuns lists ended runs without an evidence bundle.
func (t *readTx) UnbundledRuns(limit int) ([]*gatehouse.Run, error) {
	defer t.AllTenants()()
	return t.runs(unbundledRuns, limit)
}

// DueSchedules lists due schedules, earliest first.
func (t *readTx) DueSchedules(limit int) (list []*gatehouse.Schedule, err error) {
	defer t.AllTenants()()
	err = t.each(dueSchedules, func(r *row) error {
		list = append(list, &gatehouse.Schedule{Tenant: r.Text(), Workflow: r.Text(), Version: int(r.Int()),
			NextAt: r.Time()})
		return nil
	}, t.Now(), limit)
	return list, err
}

// NextRunWorkAt reads the first row of each queue that is ordered by time, and looks for a woken step.
func (t *readTx) NextRunWorkAt() (next time.Time, err error) {
	defer t.AllTenants()()
	from, err := t.scanFrom(&t.s.stepScan)
	if err != nil {
		return next, err
	}
	err = t.scanRead(&t.s.stepScan, ask(nextRunWork, func(r *row) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	}, from[2], from[1]))
	return next, err
}

// RunCounts counts the open runs of all tenants by status. It reads the index run_status.
func (t *readTx) RunCounts() (map[gatehouse.RunStatus]int, error) {
	defer t.AllTenants()()
	counts := make(map[gatehouse.RunStatus]int)
	err := t.each(runCounts, func(r *row) error {
		if status, n := gatehouse.RunStatus(r.Text()), int(r.Int()); n > 0 {
			counts[status] += n
		}
		return nil
	})
	return counts, err
}

const startedRuns = `SELECT count(*) FILTER (WHERE workflow = $2), count(*) FROM run
WHERE started_at IS NOT NULL AND tenant = $1 AND started_at > $3`

// StartedRuns counts the runs started after since.
func (t *readTx) StartedRuns(workflow string, since time.Time) (ofWorkflow, ofTenant int, err error) {
	err = t.one(startedRuns, func(r *row) error {
		ofWorkflow, ofTenant = int(r.Int()), int(r.Int())
		return nil
	}, t.tenant, workflow, since)
	return ofWorkflow, ofTenant, err
}
