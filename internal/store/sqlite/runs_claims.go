package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const claimSteps = `
UPDATE OR ROLLBACK step SET status = 'running', generation = generation + 1, attempts = attempts + 1,
  lease_owner = ?1, lease_until = ?2, started_at = ?3
WHERE seq IN (SELECT seq FROM step INDEXED BY step_ready
  WHERE status = 'ready' AND tool = ?4 AND tenant = ?5 AND workspace = ?6 AND workflow = ?7
  ORDER BY ready_at, seq LIMIT ?8)
RETURNING seq, tenant, id, run_id, key, position, parent, workflow, workspace, uses, tool, status, attempts,
  generation, coalesce(idempotency_key, ''), skipped, failure_code, failure_detail, coalesce(action_id, ''),
  coalesce(child_run, ''), event, due_at, lease_owner, lease_until, created_at, ready_at, started_at, finished_at`

// ClaimSteps claims ready steps for one holder, one statement per lane; no two
// holders get the same step.
func (t *tx) ClaimSteps(
	owner string, lease time.Duration, shares ...gatehouse.StepShare,
) (list []*gatehouse.Step, err error) {
	until := t.at.Add(lease)
	for _, share := range shares {
		n := share.Limit
		for _, bound := range []struct {
			most int
			sql  string
			args []any
		}{
			{share.MostOfWorkflow, runningOfWorkflow, []any{share.Tenant, share.Workflow}},
			{share.MostOfTenant, runningOfTenant, []any{share.Tenant}},
		} {
			if bound.most <= 0 || n <= 0 {
				continue
			}
			busy, err := t.number(bound.sql, bound.args...)
			if err != nil {
				return nil, err
			}
			n = min(n, bound.most-int(busy))
		}
		if n <= 0 {
			continue
		}
		var taken []*gatehouse.Step
		var seqs []int64
		err := t.each(claimSteps, func(r *stmt) error {
			seq, s := scanStep(r)
			seqs, taken = append(seqs, seq), append(taken, s)
			return nil
		}, owner, until, t.at, share.Tool, share.Tenant, share.Workspace, share.Workflow, n)
		if err != nil {
			return nil, err
		}
		for i, s := range taken {
			err := t.each(`SELECT item, input, output FROM step_body WHERE seq = ?`, func(r *stmt) error {
				s.Item, s.Input, s.Output = r.JSON(), r.JSON(), r.JSON()
				return nil
			}, seqs[i])
			if err != nil {
				return nil, err
			}
		}
		shared.SortReady(taken)
		list = append(list, taken...)
	}
	return list, nil
}

// LockAdmission does nothing: there is only one writer.
func (t *tx) LockAdmission() error { return nil }
