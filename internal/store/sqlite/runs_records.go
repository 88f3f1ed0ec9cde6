package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListAttempts lists all attempts of a run, oldest first.
func (t *readTx) ListAttempts(runID string) (list []*gatehouse.StepAttempt, err error) {
	err = t.each(
		`SELECT tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail
FROM step_attempt WHERE tenant = ? AND run_id = ? ORDER BY seq`, func(r *stmt) error {
			list = append(list, &gatehouse.StepAttempt{
				Tenant: r.Text(), RunID: r.Text(), StepID: r.Text(), Attempt: int(r.Int()), Generation: int(r.Int()),
				Worker: r.Text(), StartedAt: r.Time(), FinishedAt: r.Time(), Outcome: r.Text(), Code: r.Text(),
				Detail: r.Text(),
			})
			return nil
		}, t.tenant, runID)
	return list, err
}

// InsertAttempt stores the outcome of one lease of a step.
func (t *tx) InsertAttempt(a *gatehouse.StepAttempt) error {
	if err := t.Owns(a.Tenant); err != nil {
		return err
	}
	_, err := t.exec(
		`INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome,
  code, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.Tenant, a.RunID, a.StepID, a.Attempt, a.Generation, a.Worker, a.StartedAt, a.FinishedAt, a.Outcome, a.Code,
		a.Detail)
	return err
}

// InsertUsage stores the cost of one model call.
func (t *tx) InsertUsage(u *gatehouse.ModelUsage) error {
	if err := t.Owns(u.Tenant); err != nil {
		return err
	}
	micros, picos, err := shared.SplitCost(u.Cost)
	if err != nil {
		return err
	}
	_, err = t.exec(
		`INSERT INTO model_usage (tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens,
  cost, micros, picos, currency, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		u.Tenant, u.RunID, u.Workflow, u.StepID, u.Attempt, u.Provider, u.Model, u.InputTokens, u.OutputTokens,
		string(u.Cost), micros, picos, u.Currency, u.At)
	return err
}

const (
	spentByTenant = `SELECT coalesce(sum(micros), 0), coalesce(sum(picos), 0)
FROM model_usage INDEXED BY model_usage_spent
WHERE tenant = ? AND currency = ? AND at > ?`
	spentByWorkflow = `SELECT coalesce(sum(micros), 0), coalesce(sum(picos), 0)
FROM model_usage INDEXED BY model_usage_workflow
WHERE tenant = ? AND currency = ? AND at > ? AND workflow = ? AND workflow <> ''`
)

// Spent sums costs.
func (t *readTx) Spent(workflow, currency string, since time.Time) (gatehouse.Decimal, error) {
	return t.sumCosts(spentByTenant, spentByWorkflow, workflow, currency, since)
}

// sumCosts sums costs with the query byTenant, or with byWorkflow if workflow is not "". SQLite returns an error if
// the sum overflows, so an overflow cannot pass a budget.
func (t *readTx) sumCosts(
	byTenant, byWorkflow, workflow, currency string, since time.Time,
) (sum gatehouse.Decimal, err error) {
	sql, args := byTenant, []any{t.tenant, currency, since}
	if workflow != "" {
		sql, args = byWorkflow, append(args, workflow)
	}
	err = t.one(sql, func(r *stmt) (err error) { sum, err = shared.JoinCost(r.Int(), r.Int()); return err }, args...)
	return sum, err
}

const (
	claimedByTenant = `SELECT coalesce(sum(micros), 0), coalesce(sum(picos), 0)
FROM budget_claim INDEXED BY budget_claim_at
WHERE tenant = ? AND currency = ? AND at > ?`
	claimedByWorkflow = `SELECT coalesce(sum(micros), 0), coalesce(sum(picos), 0)
FROM budget_claim INDEXED BY budget_claim_at
WHERE tenant = ? AND currency = ? AND at > ? AND workflow = ?`
)

// BudgetClaimed sums claims.
func (t *readTx) BudgetClaimed(workflow, currency string, since time.Time) (gatehouse.Decimal, error) {
	return t.sumCosts(claimedByTenant, claimedByWorkflow, workflow, currency, since)
}

// ReleaseBudget deletes a claim.
func (t *tx) ReleaseBudget(stepID string, generation int) error {
	_, err := t.exec(`DELETE FROM budget_claim WHERE tenant = ? AND step_id = ? AND generation = ?`,
		t.tenant, stepID, generation)
	return err
}

// TakeSignal takes the oldest signal that has not been taken.
func (t *tx) TakeSignal(runID, name string) (s *gatehouse.Signal, err error) {
	err = t.one(`
UPDATE run_signal SET taken_at = ?
WHERE seq = (
  SELECT seq FROM run_signal INDEXED BY run_signal_open
  WHERE tenant = ? AND run_id = ? AND name = ? AND taken_at IS NULL ORDER BY seq LIMIT 1)
RETURNING tenant, run_id, id, name, data, sent_by, at`,
		func(r *stmt) (err error) { s, err = shared.ScanSignal(r); return err }, t.at, t.tenant, runID, name)
	return s, err
}

// InsertReflexion stores the reflexion of a run. A second one for the same run is an error.
func (t *tx) InsertReflexion(r *gatehouse.Reflexion) error {
	if err := t.Owns(r.Tenant); err != nil {
		return err
	}
	_, err := t.exec(
		`INSERT INTO reflexion (tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Tenant, r.ID, r.RunID, r.Workflow, r.Version, string(r.Outcome), r.Attempted, r.Happened, r.Otherwise, r.At)
	return err
}

// ListRunEntries reads the log entries of a run. The log lists them under the run's id in place of an action's id:
// see [shared.LeafKey].
func (t *readTx) ListRunEntries(runID string) ([]*gatehouse.Entry, error) {
	if !shared.IsRun(runID) {
		return nil, nil
	}
	return t.ListActionEntries(runID)
}
