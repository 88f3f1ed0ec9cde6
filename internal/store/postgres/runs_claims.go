package postgres

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The ready steps are picked out first, once, and locked: as a subquery of the
// update's condition they could be looked for again for each row, and more be
// taken than the limit says. A claim that brings no reading of the clock makes
// one for all its rows, never below what this process has read before.
const claimSteps = `WITH running AS MATERIALIZED (
  SELECT workflow FROM step WHERE status = 'running' AND lease_until IS NOT NULL AND tenant = $5 AND lease_until >= $13),
due AS MATERIALIZED (
  SELECT seq, run_seq FROM step WHERE queued_at IS NOT NULL AND queued_at >= $12 AND tool = $4 AND tenant = $5 AND workspace = $6 AND workflow = $7 ORDER BY queued_at, seq
  LIMIT least($8::bigint,
    CASE WHEN $9::bigint > 0 THEN greatest(0, $9 - (SELECT count(*) FROM running WHERE workflow = $7)) END,
    CASE WHEN $10::bigint > 0 THEN greatest(0, $10 - (SELECT count(*) FROM running)) END)
  FOR NO KEY UPDATE SKIP LOCKED),
now AS MATERIALIZED (SELECT coalesce($3, greatest($11, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)) AS at)
UPDATE step s SET status = 'running', generation = s.generation + 1, attempts = s.attempts + 1, lease_owner = $1,
  lease_until = now.at + $2, started_at = coalesce(s.started_at, now.at)
FROM due CROSS JOIN now
CROSS JOIN LATERAL (SELECT * FROM run r WHERE r.seq = due.run_seq OFFSET 0) r
LEFT JOIN LATERAL (SELECT * FROM step_body b WHERE b.seq = due.seq OFFSET 0) b ON true
WHERE s.seq = due.seq RETURNING ` + stepColumns + stepBodies + `, ` + runColumns

// ClaimSteps takes ready steps for one holder, and passes over those that
// another one is taking. Those who claim of a workflow or a tenant whose
// running steps are bounded do so one after another, and so do the shares of
// one claim, so that each counts what the one before has taken.
func (t *tx) ClaimSteps(owner string, lease time.Duration, shares ...gatehouse.StepShare) (list []*gatehouse.Step, err error) {
	if len(shares) == 0 {
		return nil, nil
	}
	t.course.alone = true // a group asks what it foresaw
	from, err := t.from(&t.s.steps)
	if err != nil {
		return nil, err
	}
	var at any
	if t.fixed || t.s.config.Clock != nil {
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
			step.Head = scanRun(r)
			taken[i] = append(taken[i], step)
			return nil
		}, owner, lease.Microseconds(), at, s.Tool, s.Tenant, s.Workspace, s.Workflow, max(s.Limit, 0), max(s.MostOfWorkflow, 0),
			max(s.MostOfTenant, 0), t.s.high.Load(), from[0], from[1]))
	}
	slices.SortFunc(bounded, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) // one order for all who lock several
	var locks []query
	for _, b := range slices.Compact(bounded) {
		locks = append(locks, lockFor("steps", b[0], b[1]))
	}
	err = t.locked(locks, claims...)
	for _, steps := range taken {
		shared.SortReady(steps)
		list = append(list, steps...)
	}
	t.wrote = t.wrote || len(list) > 0
	return list, err
}

// LockAdmission lets those who admit a tenant's runs do so one after another.
func (t *tx) LockAdmission(tenant string) error {
	return t.locked([]query{lockFor("admission", tenant)})
}
