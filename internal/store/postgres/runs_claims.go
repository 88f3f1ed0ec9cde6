package postgres

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// claimSteps selects and locks the ready steps first, once. As a subquery in the condition of the
// UPDATE, the selection could run again for each row and take more than the limit. If the transaction has no clock
// reading yet, the claim reads the clock once for all its rows, never below an earlier reading of this process.
const claimSteps = `
WITH running AS MATERIALIZED (
  SELECT workflow FROM step
  WHERE status = 'running' AND lease_until IS NOT NULL AND tenant = $5 AND lease_until >= $13
),
due AS MATERIALIZED (
  SELECT seq, run_seq FROM step
  WHERE queued_at IS NOT NULL AND queued_at >= $12 AND tool = $4 AND tenant = $5 AND workspace = $6
    AND workflow = $7
  ORDER BY queued_at, seq
  LIMIT least($8::bigint,
    CASE WHEN $9::bigint > 0 THEN greatest(0, $9 - (SELECT count(*) FROM running WHERE workflow = $7)) END,
    CASE WHEN $10::bigint > 0 THEN greatest(0, $10 - (SELECT count(*) FROM running)) END)
  FOR NO KEY UPDATE SKIP LOCKED
),
now AS MATERIALIZED (
  SELECT coalesce($3, greatest($11, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)) AS at
)
UPDATE step s SET status = 'running', generation = s.generation + 1, attempts = s.attempts + 1, lease_owner = $1,
  lease_until = now.at + $2, started_at = now.at
FROM due CROSS JOIN now
CROSS JOIN LATERAL (SELECT * FROM run r WHERE r.seq = due.run_seq OFFSET 0) r
LEFT JOIN LATERAL (SELECT * FROM step_body b WHERE b.seq = due.seq OFFSET 0) b ON true
WHERE s.seq = due.seq
RETURNING s.tenant, s.id, s.run_id, s.key, s.position, s.parent, s.workflow, s.workspace, s.uses, s.tool,
  s.status, s.attempts, s.generation, coalesce(s.idempotency_key, ''), s.skipped, s.failure_code, s.failure_detail,
  coalesce(s.action_id, ''), coalesce(s.child_run, ''), s.event, s.due_at, s.lease_owner, s.lease_until,
  s.created_at, s.ready_at, s.started_at, s.finished_at,
  coalesce(b.item, ''), coalesce(b.input, ''), coalesce(b.output, ''),
  r.tenant, r.id, r.workflow, r.version, r.workspace, r.status, r.stop, r.trigger_type, coalesce(r.trigger_ref, ''),
  r.started_by, r.starter_id, r.parent_run, r.parent_step, r.retry_of, r.writes, r.failure_code, r.failure_detail,
  r.created_at, r.started_at, r.finished_at, r.deadline, r.evidence`

// ClaimSteps claims ready steps for one holder and skips those that another holder is claiming.
// Claims for a workflow or tenant with a limit on running steps run one after another, and so
// do the shares of one claim, so that each counts what the previous one took.
func (t *tx) ClaimSteps(
	owner string, lease time.Duration, shares ...gatehouse.StepShare,
) (list []*gatehouse.Step, err error) {
	defer t.AllTenants()()
	if len(shares) == 0 {
		return nil, nil
	}
	t.mode.alone = true // a group cannot send this statement
	from, err := t.scanFrom(&t.s.stepScan)
	if err != nil {
		return nil, err
	}
	var at any
	if t.clockSeen || t.s.config.Clock != nil {
		at = t.Now()
	}
	var bounded [][2]string
	var claims []query
	taken := make([][]*gatehouse.Step, len(shares))
	for i, s := range shares {
		if s.MostOfTenant > 0 {
			bounded = append(bounded, [2]string{s.Tenant})
		}
		if s.MostOfWorkflow > 0 {
			bounded = append(bounded, [2]string{s.Tenant, s.Workflow})
		}
		claims = append(claims, ask(claimSteps, func(r *row) error {
			step := scanStep(r)
			step.Head = shared.ScanRun(r)
			taken[i] = append(taken[i], step)
			return nil
		}, owner, lease.Microseconds(), at, s.Tool, s.Tenant, s.Workspace, s.Workflow, max(s.Limit, 0),
			max(s.MostOfWorkflow, 0), max(s.MostOfTenant, 0), t.s.high.Load(), from[0], from[1]))
	}
	slices.SortFunc(
		bounded,
		func(a, b [2]string) int { return slices.Compare(a[:], b[:]) },
	) // all claimers lock in the same order
	var locks []query
	for _, b := range slices.Compact(bounded) {
		locks = append(locks, lockFor("steps", b[0], b[1]))
	}
	err = t.lockAndRead(locks, claims...)
	for _, steps := range taken {
		shared.SortReady(steps)
		list = append(list, steps...)
	}
	t.wrote = t.wrote || len(list) > 0
	return list, err
}

// LockAdmission serializes the admission of a tenant's runs.
func (t *tx) LockAdmission() error {
	return t.lockAndRead([]query{lockFor("admission", t.tenant)})
}
