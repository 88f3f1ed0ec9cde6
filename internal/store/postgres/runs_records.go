package postgres

import (
	"cmp"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListAttempts lists the attempts of a run, oldest first.
func (t *readTx) ListAttempts(runID string) (list []*gatehouse.StepAttempt, err error) {
	at := make(map[*gatehouse.StepAttempt]int64)
	err = t.each(attemptsOfRun, func(r *row) error {
		seq := r.Int()
		list = append(list, &gatehouse.StepAttempt{
			Tenant: r.Text(), RunID: r.Text(), StepID: r.Text(), Attempt: int(r.Int()), Generation: int(r.Int()),
			Worker:    r.Text(),
			StartedAt: r.Time(), FinishedAt: r.Time(), Outcome: r.Text(), Code: r.Text(), Detail: r.Text(),
		})
		at[list[len(list)-1]] = seq
		return nil
	}, t.tenant, runID)
	slices.SortFunc(list, func(a, b *gatehouse.StepAttempt) int { return cmp.Compare(at[a], at[b]) })
	return list, err
}

const attemptsOfRun = `SELECT seq, tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at,
  outcome, code, detail
FROM step_attempt WHERE tenant = $1 AND run_id = $2`

// insertAttempts stores the results of leases. The step must exist and belong to the run.
var insertAttempts = writes[gatehouse.StepAttempt](rankAttempt, "StepID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS run_id, ($3::text[])[n] AS step_id, ($4::bigint[])[n] AS attempt,
    ($5::bigint[])[n] AS generation, ($6::text[])[n] AS worker, ($7::bigint[])[n] AS started_at,
    ($8::bigint[])[n] AS finished_at, ($9::text[])[n] AS outcome, ($10::text[])[n] AS code,
    ($11::text[])[n] AS detail, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $12
),
w AS (
  INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at,
    outcome, code, detail)
  SELECT r.tenant, r.run_id, r.step_id, r.attempt, r.generation, r.worker, r.started_at, r.finished_at,
    r.outcome, r.code, r.detail
  FROM r CROSS JOIN LATERAL (
    SELECT 1 FROM step WHERE tenant = r.tenant AND id = r.step_id AND run_id = r.run_id OFFSET 0
  ) s
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $12 THEN 0 ELSE gatehouse_refuse('GH002') END`)

// InsertAttempt stores the result of a lease.
func (t *tx) InsertAttempt(a *gatehouse.StepAttempt) error {
	if err := t.Owns(a.Tenant); err != nil {
		return err
	}
	return insertAttempts.write(t, *a)
}

// usageRow holds the cost of a model's answer as a text, and split into Micros (millionths) and Picos
// (millionths of a millionth).
type usageRow struct {
	gatehouse.ModelUsage
	Micros, Picos int64
}

var insertUsages = writes[usageRow](rankUsage, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS run_id, ($3::text[])[n] AS workflow, ($4::text[])[n] AS step_id,
    ($5::bigint[])[n] AS attempt, ($6::text[])[n] AS provider, ($7::text[])[n] AS model,
    ($8::bigint[])[n] AS input_tokens, ($9::bigint[])[n] AS output_tokens, ($10::text[])[n] AS cost,
    ($11::text[])[n] AS currency, ($12::bigint[])[n] AS at, ($13::bigint[])[n] AS micros,
    ($14::bigint[])[n] AS picos, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $15
)
INSERT INTO model_usage (tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens,
  output_tokens, cost, micros, picos, currency, at)
SELECT tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens,
  output_tokens, cost, micros, picos, currency, at
FROM r ORDER BY n`)

// InsertUsage stores the cost of a model's answer.
func (t *tx) InsertUsage(u *gatehouse.ModelUsage) error {
	if err := t.Owns(u.Tenant); err != nil {
		return err
	}
	micros, picos, err := shared.SplitCost(u.Cost)
	if err != nil {
		return err
	}
	return insertUsages.write(t, usageRow{*u, micros, picos})
}

const (
	spentByTenant = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM model_usage
WHERE tenant = $1 AND currency = $2 AND at > $3`
	spentByWorkflow = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM model_usage
WHERE tenant = $1 AND currency = $2 AND at > $3 AND workflow = $4 AND workflow <> ''`
)

// Spent sums the costs after since: those of a workflow, or of the tenant if workflow is "".
func (t *readTx) Spent(workflow, currency string, since time.Time) (gatehouse.Decimal, error) {
	return t.sumCosts(spentByTenant, spentByWorkflow, workflow, currency, since)
}

// sumCosts runs byTenant if workflow is "", else byWorkflow. A sum that overflows is an error, so that the sum
// cannot pass the check of a budget.
func (t *readTx) sumCosts(
	byTenant, byWorkflow, workflow, currency string, since time.Time,
) (sum gatehouse.Decimal, err error) {
	sql, args := byTenant, []any{t.tenant, currency, since}
	if workflow != "" {
		sql, args = byWorkflow, append(args, workflow)
	}
	err = t.one(sql, func(r *row) (err error) { sum, err = shared.JoinCost(r.Int(), r.Int()); return err }, args...)
	return sum, err
}

const (
	claimedByTenant = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM budget_claim
WHERE tenant = $1 AND currency = $2 AND at > $3`
	claimedByWorkflow = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM budget_claim
WHERE tenant = $1 AND currency = $2 AND at > $3 AND workflow = $4`
)

// budgetClaimKey is the key of the budget claim of a call.
type budgetClaimKey struct {
	Tenant, StepID string
	Generation     int
}

var releaseClaims = writes[budgetClaimKey](rankClaim, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS step_id, ($3::bigint[])[n] AS generation, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
)
DELETE FROM budget_claim c USING r
WHERE c.tenant = r.tenant AND c.step_id = r.step_id AND c.generation = r.generation`)

// BudgetClaimed sums the budget claims after since, as Spent sums the costs.
func (t *readTx) BudgetClaimed(workflow, currency string, since time.Time) (gatehouse.Decimal, error) {
	return t.sumCosts(claimedByTenant, claimedByWorkflow, workflow, currency, since)
}

// ReleaseBudget removes a claim.
func (t *tx) ReleaseBudget(stepID string, generation int) error {
	return releaseClaims.write(t, budgetClaimKey{t.tenant, stepID, generation})
}

// TakeSignal takes the oldest signal that nobody has taken or is taking.
func (t *tx) TakeSignal(runID, name string) (s *gatehouse.Signal, err error) {
	err = t.one(`
UPDATE run_signal SET taken_at = $1
WHERE seq = (
  SELECT seq FROM run_signal WHERE tenant = $2 AND run_id = $3 AND name = $4 AND taken_at IS NULL
  ORDER BY seq LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
RETURNING tenant, run_id, id, name, data, sent_by, at`,
		func(r *row) (err error) { s, err = shared.ScanSignal(r); return err }, t.Now(), t.tenant, runID, name)
	t.wrote = t.wrote || s != nil
	return s, err
}

var insertReflexions = writes[gatehouse.Reflexion](rankReflexion, "", `
WITH r AS (
  SELECT id, ($2::text[])[n] AS tenant, ($3::text[])[n] AS run_id, ($4::text[])[n] AS workflow,
    ($5::bigint[])[n] AS version, ($6::text[])[n] AS outcome, ($7::text[])[n] AS attempted,
    ($8::text[])[n] AS happened, ($9::text[])[n] AS otherwise, ($10::bigint[])[n] AS at, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(id, n) LIMIT $11
)
INSERT INTO reflexion (tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at)
SELECT tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at FROM r ORDER BY n`)

// InsertReflexion stores the reflexion of a run, once.
func (t *tx) InsertReflexion(r *gatehouse.Reflexion) error {
	if err := t.Owns(r.Tenant); err != nil {
		return err
	}
	return insertReflexions.write(t, *r)
}

// ListRunEntries reads the log entries of a run.
func (t *readTx) ListRunEntries(runID string) ([]*gatehouse.Entry, error) {
	if !shared.IsRun(runID) {
		return nil, nil
	}
	return t.ListActionEntries(runID)
}
