package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The queries of the polls. Each reads the head of an index, so its cost does not grow with the number of parked
// steps.
const (
	// The maximum time makes the search start after the whole lane. A
	// comparison of the lane alone would start at the lane and walk its rows.
	nextLane = `SELECT tenant, workspace, workflow FROM step INDEXED BY step_ready
WHERE status = 'ready' AND tool = ? AND (tenant, workspace, workflow, ready_at) > (?, ?, ?, 9223372036854775807)
ORDER BY tenant, workspace, workflow LIMIT 1`
	firstTool = `SELECT tool FROM step INDEXED BY step_ready WHERE status = 'ready' AND tool >= ? ORDER BY tool LIMIT 1`
	nextTool  = `SELECT tool FROM step INDEXED BY step_ready WHERE status = 'ready' AND tool > ? ORDER BY tool LIMIT 1`
	// The first row of a lane is the one that has waited longest.
	longest = `SELECT tenant, workspace, workflow, ready_at FROM step INDEXED BY step_ready
WHERE status = 'ready' AND tool = ? AND (tenant, workspace, workflow, ready_at) > (?, ?, ?, 9223372036854775807)
ORDER BY tenant, workspace, workflow, ready_at LIMIT 1`
	toolLeased = `SELECT count(*) FROM (SELECT 1 FROM step INDEXED BY step_lease
WHERE status = 'running' AND lease_until IS NOT NULL AND lease_until > ?1 AND tool = ?2
  AND (?3 = '' OR tenant = ?3) LIMIT 1)`
	countReady = `SELECT count(*) FROM (SELECT 1 FROM step INDEXED BY step_ready
WHERE status = 'ready' AND tool = ? AND tenant = ? AND workspace = ? AND workflow = ? LIMIT ?)`
	runningOfWorkflow = `SELECT count(*) FROM step INDEXED BY step_running
WHERE status = 'running' AND tenant = ? AND workflow = ?`
	runningOfTenant = `SELECT count(*) FROM step INDEXED BY step_running WHERE status = 'running' AND tenant = ?`

	nextQueued = `SELECT tenant, workflow, workspace FROM run INDEXED BY run_queued
WHERE status = 'queued' AND (tenant, workflow, created_at) > (?, ?, 9223372036854775807)
ORDER BY tenant, workflow, created_at, seq LIMIT 1`
	countQueued = `SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_queued
  WHERE status = 'queued' AND tenant = ? AND workflow = ? LIMIT ?)`
	countStarts = `SELECT count(*), coalesce(sum(workflow = ?), 0) FROM run INDEXED BY run_started
WHERE started_at IS NOT NULL AND tenant = ? AND started_at > ?`
	oldestQueued = `INDEXED BY run_queued WHERE r.status = 'queued' AND r.tenant = ? AND r.workflow = ?
  ORDER BY r.created_at, r.seq LIMIT ?`

	settledSteps = `SELECT tenant, run_id, step_id FROM step_wake ORDER BY step_seq LIMIT ?`
	dueSteps     = `SELECT tenant, run_id, id FROM step INDEXED BY step_due
WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval') AND due_at <= ?
ORDER BY due_at LIMIT ?`
	expiredSteps = `SELECT tenant, run_id, id FROM step INDEXED BY step_lease
WHERE status = 'running' AND lease_until IS NOT NULL AND lease_until <= ?
ORDER BY lease_until LIMIT ?`

	overdueRuns = `INDEXED BY run_deadline
  WHERE r.deadline IS NOT NULL AND r.stop = ''
  AND r.status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable')
  AND r.deadline <= ? ORDER BY r.deadline LIMIT ?`
	unbundledRuns = `INDEXED BY run_unbundled WHERE r.evidence = ''
  AND r.status IN ('succeeded', 'failed_terminal', 'canceled')
ORDER BY r.finished_at, r.seq LIMIT ?`
	dueSchedules = `SELECT tenant, workflow, version, next_at FROM schedule INDEXED BY schedule_due WHERE next_at <= ?
ORDER BY next_at LIMIT ?`

	nextRunWork = `SELECT min(at) FROM (
  SELECT * FROM (SELECT due_at AS at FROM step INDEXED BY step_due
    WHERE due_at IS NOT NULL AND status IN ('failed_retryable', 'waiting', 'waiting_approval')
    ORDER BY due_at LIMIT 1)
  UNION ALL SELECT * FROM (SELECT lease_until FROM step INDEXED BY step_lease
    WHERE status = 'running' AND lease_until IS NOT NULL ORDER BY lease_until LIMIT 1)
  UNION ALL SELECT * FROM (SELECT r.deadline FROM run r INDEXED BY run_deadline
    WHERE r.deadline IS NOT NULL AND r.stop = ''
    AND r.status IN ('queued', 'running', 'waiting_approval', 'waiting', 'failed_retryable')
    ORDER BY r.deadline LIMIT 1)
  UNION ALL SELECT * FROM (SELECT next_at FROM schedule INDEXED BY schedule_due ORDER BY next_at LIMIT 1)
  UNION ALL SELECT * FROM (SELECT 0 FROM step_wake LIMIT 1))`

	runCounts = `WITH s (status) AS (
  VALUES ('queued'), ('running'), ('waiting_approval'), ('waiting'), ('failed_retryable'))
SELECT s.status, (SELECT count(*) FROM run r INDEXED BY run_status
  WHERE r.tenant = t.id AND r.status = s.status AND r.status <> '') FROM tenant t CROSS JOIN s`
)

// DueLanes walks from lane to lane, with one index lookup each: first the lanes behind the one that the caller passes
// as after, then those up to it.
func (t *readTx) DueLanes(
	tenant, tool string, after gatehouse.Lane, limit, each int,
) (list []gatehouse.DueLane, err error) {
	walk := func(from gatehouse.Lane, to *gatehouse.Lane) error {
		for len(list) < limit {
			lane := gatehouse.Lane{Tool: tool}
			err := t.each(nextLane, func(r *stmt) error {
				lane.Tenant, lane.Workspace, lane.Workflow = r.Text(), r.Text(), r.Text()
				return nil
			}, tool, from.Tenant, from.Workspace, from.Workflow)
			if err != nil || lane.Tenant == "" || tenant != "" && lane.Tenant != tenant || to != nil &&
				shared.CompareLanes(lane, *to) > 0 {
				return err
			}
			d, err := t.countLane(lane, each)
			if err != nil {
				return err
			}
			list, from = append(list, d), lane
		}
		return nil
	}
	first := gatehouse.Lane{Tenant: tenant}
	if shared.CompareLanes(after, first) <= 0 || tenant != "" && after.Tenant != tenant {
		err = walk(first, nil)
		return list, err
	}
	if err := walk(after, nil); err != nil {
		return nil, err
	}
	err = walk(first, &after)
	return list, err
}

func (t *readTx) countLane(lane gatehouse.Lane, each int) (d gatehouse.DueLane, err error) {
	d.Lane = lane
	for _, count := range []struct {
		n    *int
		sql  string
		args []any
	}{
		{&d.Ready, countReady, []any{lane.Tool, lane.Tenant, lane.Workspace, lane.Workflow, each}},
		{&d.WorkflowRunning, runningOfWorkflow, []any{lane.Tenant, lane.Workflow}},
		{&d.TenantRunning, runningOfTenant, []any{lane.Tenant}},
	} {
		n, err := t.number(count.sql, count.args...)
		if err != nil {
			return d, err
		}
		*count.n = int(n)
	}
	return d, nil
}

// ReadyTools walks from tool to tool, and within each from lane to lane.
func (t *readTx) ReadyTools(tenant string, limit int) (list []gatehouse.ReadyTool, err error) {
	tool, find := "", firstTool
	for range limit {
		found := false
		err := t.each(find, func(r *stmt) error { tool, found = r.Text(), true; return nil }, tool)
		if err != nil || !found {
			return list, err
		}
		find = nextTool
		ready := gatehouse.ReadyTool{Tool: tool}
		from := gatehouse.Lane{Tenant: tenant}
		for range gatehouse.ReadyLanes {
			var lane gatehouse.Lane
			var at time.Time
			err := t.each(longest, func(r *stmt) error {
				lane, at = gatehouse.Lane{Tenant: r.Text(), Workspace: r.Text(), Workflow: r.Text()}, r.Time()
				return nil
			}, tool, from.Tenant, from.Workspace, from.Workflow)
			if err != nil {
				return nil, err
			}
			if lane.Tenant == "" || tenant != "" && lane.Tenant != tenant {
				break
			}
			if from = lane; ready.Since.IsZero() || at.Before(ready.Since) {
				ready.Since = at
			}
		}
		if !ready.Since.IsZero() {
			leased, err := t.number(toolLeased, t.Now(), tool, tenant)
			if err != nil {
				return nil, err
			}
			ready.Leased = leased != 0
			list = append(list, ready)
		}
	}
	return list, nil
}

// QueuedLanes walks from workflow to workflow.
func (t *readTx) QueuedLanes(
	after gatehouse.QueuedLane, limit, each int, since time.Time,
) (list []gatehouse.QueuedLane, err error) {
	for at := after; len(list) < limit; {
		var lane gatehouse.QueuedLane
		err := t.each(nextQueued, func(r *stmt) error {
			lane = gatehouse.QueuedLane{Tenant: r.Text(), Workflow: r.Text(), Workspace: r.Text()}
			return nil
		}, at.Tenant, at.Workflow)
		if err != nil || lane.Tenant == "" {
			return list, err
		}
		n, err := t.number(countQueued, lane.Tenant, lane.Workflow, each)
		if err != nil {
			return nil, err
		}
		lane.Queued = int(n)
		err = t.each(countStarts, func(r *stmt) error {
			lane.TenantStarted, lane.WorkflowStarted = int(r.Int()), int(r.Int())
			return nil
		}, lane.Workflow, lane.Tenant, since)
		if err != nil {
			return nil, err
		}
		list = append(list, lane)
		at = lane
	}
	return list, nil
}

// OldestQueued lists the runs to admit next.
func (t *readTx) OldestQueued(workflow string, limit int) ([]*gatehouse.Run, error) {
	return t.runs(oldestQueued, t.tenant, workflow, limit)
}

func (t *readTx) stepRefs(sql string, args ...any) (refs []gatehouse.StepRef, err error) {
	err = t.each(sql, func(r *stmt) error {
		refs = append(refs, gatehouse.StepRef{Tenant: r.Text(), RunID: r.Text(), StepID: r.Text()})
		return nil
	}, args...)
	return refs, err
}

// SettledSteps lists the parked steps that can continue.
func (t *readTx) SettledSteps(limit int) ([]gatehouse.StepRef, error) {
	return t.stepRefs(settledSteps, limit)
}

// DueSteps lists retries that are due, and waits and approvals whose time is over.
func (t *readTx) DueSteps(limit int) ([]gatehouse.StepRef, error) {
	return t.stepRefs(dueSteps, t.at, limit)
}

// ExpiredSteps lists the steps whose lease has ended, oldest first.
func (t *readTx) ExpiredSteps(limit int) ([]gatehouse.StepRef, error) {
	return t.stepRefs(expiredSteps, t.at, limit)
}

// OverdueRuns lists the runs past their deadline, earliest first.
func (t *readTx) OverdueRuns(limit int) ([]*gatehouse.Run, error) {
	return t.runs(overdueRuns, t.at, limit)
}

// UnbundledRuns lists the ended runs that have no evidence bundle yet.
func (t *readTx) UnbundledRuns(limit int) ([]*gatehouse.Run, error) {
	return t.runs(unbundledRuns, limit)
}

// DueSchedules lists the due schedules, earliest first.
func (t *readTx) DueSchedules(limit int) (list []*gatehouse.Schedule, err error) {
	err = t.each(dueSchedules, func(r *stmt) error {
		list = append(list, &gatehouse.Schedule{Tenant: r.Text(), Workflow: r.Text(), Version: int(r.Int()),
			NextAt: r.Time()})
		return nil
	}, t.at, limit)
	return list, err
}

// NextRunWorkAt reads the first row of each queue that is ordered by time, and looks for a woken step.
func (t *readTx) NextRunWorkAt() (next time.Time, err error) {
	err = t.each(nextRunWork, func(r *stmt) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	})
	return next, err
}

// RunCounts counts the open runs of all tenants by status. Of the runs, it reads the index run_status only.
func (t *readTx) RunCounts() (map[gatehouse.RunStatus]int, error) {
	counts := make(map[gatehouse.RunStatus]int)
	err := t.each(runCounts, func(r *stmt) error {
		if status, n := gatehouse.RunStatus(r.Text()), int(r.Int()); n > 0 {
			counts[status] += n
		}
		return nil
	})
	return counts, err
}

// StartedRuns counts the runs that started after since.
func (t *readTx) StartedRuns(workflow string, since time.Time) (ofWorkflow, ofTenant int, err error) {
	err = t.each(countStarts, func(r *stmt) error {
		ofTenant, ofWorkflow = int(r.Int()), int(r.Int())
		return nil
	}, workflow, t.tenant, since)
	return ofWorkflow, ofTenant, err
}
