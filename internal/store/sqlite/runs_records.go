package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListAttempts lists all attempts of a run, oldest first.
func (t *readTx) ListAttempts(runID string) (list []*gatehouse.StepAttempt, err error) {
	err = t.each(`SELECT tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail
FROM step_attempt WHERE tenant = ? AND run_id = ? ORDER BY seq`, func(r *stmt) error {
		list = append(list, &gatehouse.StepAttempt{
			Tenant: r.Text(), RunID: r.Text(), StepID: r.Text(), Attempt: int(r.Int()), Generation: int(r.Int()),
			Worker:    r.Text(),
			StartedAt: r.Time(), FinishedAt: r.Time(), Outcome: r.Text(), Code: r.Text(), Detail: r.Text(),
		})
		return nil
	}, t.tenant, runID)
	return list, err
}

// InsertAttempt stores the outcome of one lease of a step.
func (t *tx) InsertAttempt(a *gatehouse.StepAttempt) error {
	if err := t.owns(a.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.Tenant, a.RunID, a.StepID, a.Attempt, a.Generation, a.Worker, a.StartedAt, a.FinishedAt, a.Outcome, a.Code, a.Detail)
	return err
}

// ListUsage lists all model usage of a run, oldest first.
func (t *readTx) ListUsage(runID string) (list []*gatehouse.ModelUsage, err error) {
	err = t.each(`SELECT tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens, cost, currency, at
FROM model_usage WHERE tenant = ? AND run_id = ? ORDER BY seq`, func(r *stmt) error {
		list = append(list, &gatehouse.ModelUsage{
			Tenant: r.Text(), RunID: r.Text(), Workflow: r.Text(), StepID: r.Text(), Attempt: int(r.Int()),
			Provider: r.Text(), Model: r.Text(),
			InputTokens: r.Int(), OutputTokens: r.Int(), Cost: gatehouse.Decimal(r.Text()), Currency: r.Text(),
			At: r.Time(),
		})
		return nil
	}, t.tenant, runID)
	return list, err
}

// InsertUsage stores the cost of one model call.
func (t *tx) InsertUsage(u *gatehouse.ModelUsage) error {
	if err := t.owns(u.Tenant); err != nil {
		return err
	}
	micros, picos, err := shared.SplitCost(u.Cost)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO model_usage (tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens, cost,
micros, picos, currency, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		u.Tenant, u.RunID, u.Workflow, u.StepID, u.Attempt, u.Provider, u.Model, u.InputTokens, u.OutputTokens, string(u.Cost),
		micros, picos, u.Currency, u.At)
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

// Spent sums costs. An overflowing sum is an error, so it never passes a
// budget.
func (t *readTx) Spent(workflow, currency string, since time.Time) (sum gatehouse.Decimal, err error) {
	row := func(r *stmt) (err error) { sum, err = shared.JoinCost(r.Int(), r.Int()); return err }
	if workflow == "" {
		err = t.one(spentByTenant, row, t.tenant, currency, since)
	} else {
		err = t.one(spentByWorkflow, row, t.tenant, currency, since, workflow)
	}
	return sum, err
}

const (
	claimedByTenant = `SELECT coalesce(sum(micros), 0), coalesce(sum(picos), 0)
FROM budget_claim INDEXED BY budget_claim_at
WHERE tenant = ? AND currency = ? AND at > ?`
	claimedByWorkflow = claimedByTenant + ` AND workflow = ?`
)

// BudgetClaimed sums claims. An overflowing sum is an error, as in Spent.
func (t *readTx) BudgetClaimed(workflow, currency string, since time.Time) (sum gatehouse.Decimal, err error) {
	row := func(r *stmt) (err error) { sum, err = shared.JoinCost(r.Int(), r.Int()); return err }
	if workflow == "" {
		err = t.one(claimedByTenant, row, t.tenant, currency, since)
	} else {
		err = t.one(claimedByWorkflow, row, t.tenant, currency, since, workflow)
	}
	return sum, err
}

// LockBudget does nothing: there is only one writer.
func (t *tx) LockBudget() error { return nil }

// ClaimBudget stores the most that a call may cost.
func (t *tx) ClaimBudget(c *gatehouse.BudgetClaim, forget time.Time) error {
	if err := t.owns(c.Tenant); err != nil {
		return err
	}
	micros, picos, err := shared.SplitCost(c.Most)
	if err != nil {
		return err
	}
	if _, err := t.exec(`DELETE FROM budget_claim
WHERE tenant = ? AND currency = ? AND at < ?`, c.Tenant, c.Currency, forget); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO budget_claim (tenant, workflow, step_id, generation, currency, micros, picos, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, step_id, generation) DO UPDATE SET currency = excluded.currency, micros = excluded.micros, picos = excluded.picos, at = excluded.at`,
		c.Tenant, c.Workflow, c.StepID, c.Generation, c.Currency, micros, picos, c.At)
	return err
}

// ReleaseBudget deletes a claim.
func (t *tx) ReleaseBudget(stepID string, generation int) error {
	_, err := t.exec(`DELETE FROM budget_claim WHERE tenant = ? AND step_id = ? AND generation = ?`,
		t.tenant, stepID, generation)
	return err
}

// ListSignals lists all signals of a run, oldest first.
func (t *readTx) ListSignals(runID string) (list []*gatehouse.Signal, err error) {
	err = t.each(`SELECT `+shared.SignalColumns+` FROM run_signal WHERE tenant = ? AND run_id = ? ORDER BY seq`,
		func(r *stmt) error { list = append(list, shared.ScanSignal(r)); return nil }, t.tenant, runID)
	return list, err
}

// ListHands lists the principals that contributed to a run, by id.
func (t *readTx) ListHands(runID string) (list []string, err error) {
	err = t.each(`SELECT principal FROM run_hand WHERE tenant = ? AND run_id = ? ORDER BY principal`,
		func(r *stmt) error { list = append(list, r.Text()); return nil }, t.tenant, runID)
	return list, err
}

// InsertHand stores a principal once.
func (t *tx) InsertHand(runID, principal string) error {
	_, err := t.exec(`INSERT INTO run_hand (tenant, run_id, principal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		t.tenant, runID, principal)
	return err
}

// InsertSignal keeps an event for a step that waits for it, now or later.
func (t *tx) InsertSignal(s *gatehouse.Signal) error {
	if err := t.owns(s.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO run_signal (tenant, run_id, id, name, sent_by, at, data) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		s.Tenant, s.RunID, s.ID, s.Name, s.By, s.At, s.Data)
	return err
}

// TakeSignal takes the oldest signal that has not been taken.
func (t *tx) TakeSignal(runID, name string) (s *gatehouse.Signal, err error) {
	err = t.one(`UPDATE run_signal SET taken_at = ? WHERE seq = (SELECT seq FROM run_signal INDEXED BY run_signal_open
WHERE tenant = ? AND run_id = ? AND name = ? AND taken_at IS NULL ORDER BY seq LIMIT 1)
RETURNING `+shared.SignalColumns,
		func(r *stmt) error { s = shared.ScanSignal(r); return nil }, t.at, t.tenant, runID, name)
	return s, err
}

// ListReflexions lists newest first.
func (t *readTx) ListReflexions(
	workflow, readBy, cursor string,
	limit int,
) (page gatehouse.Page[*gatehouse.Reflexion], err error) {
	bound := shared.BoundToReader([]string{t.tenant, workflow}, readBy)
	c, err := shared.ParseCursor(cursor, shared.KindReflexions, bound...)
	if err != nil {
		return page, err
	}
	var where condition
	where.add("tenant = ?", t.tenant)
	if workflow != "" {
		where.add("workflow = ?", workflow)
	}
	if readBy != "" {
		where.add("run_id IN (SELECT id FROM run WHERE tenant = ? AND starter_id = ? "+
			"UNION ALL "+inherited+")", t.tenant, readBy, t.tenant, readBy)
	}
	if c.Seq != 0 {
		where.add("seq < ?", c.Seq)
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.Reflexion{}
	var seqs []int64
	err = t.each(`SELECT seq, tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at
FROM reflexion WHERE `+
		where.sql()+` ORDER BY seq DESC LIMIT ?`, func(r *stmt) error {
		seqs = append(seqs, r.Int())
		page.Items = append(page.Items, &gatehouse.Reflexion{
			Tenant: r.Text(), ID: r.Text(), RunID: r.Text(), Workflow: r.Text(), Version: int(r.Int()),
			Outcome:   gatehouse.RunStatus(r.Text()),
			Attempted: r.Text(), Happened: r.Text(), Otherwise: r.Text(), At: r.Time(),
		})
		return nil
	}, append(where.args, limit+1)...)
	return shared.Finish(page, limit, func(*gatehouse.Reflexion) shared.Cursor { return shared.Cursor{Seq: seqs[limit-1]} }, shared.KindReflexions, bound...), err
}

// InsertReflexion stores the reflexion of a run, once.
func (t *tx) InsertReflexion(r *gatehouse.Reflexion) error {
	if err := t.owns(r.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO reflexion (tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Tenant, r.ID, r.RunID, r.Workflow, r.Version, string(r.Outcome), r.Attempted, r.Happened, r.Otherwise, r.At)
	return err
}

// FindBundle finds the evidence bundle of a run.
func (t *readTx) FindBundle(runID string) (b *gatehouse.Bundle, err error) {
	err = t.one(`SELECT tenant, run_id, sha256, manifest, archive, created_at FROM bundle
WHERE tenant = ? AND run_id = ?`, func(r *stmt) error {
		b = &gatehouse.Bundle{Tenant: r.Text(), RunID: r.Text(), SHA256: r.Text(), Manifest: r.JSON(),
			Archive: r.Blob(), CreatedAt: r.Time()}
		return nil
	}, t.tenant, runID)
	return b, err
}

// InsertBundle stores a run's evidence bundle and writes its hash to the run.
func (t *tx) InsertBundle(b *gatehouse.Bundle) error {
	if err := t.owns(b.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO bundle (tenant, run_id, sha256, created_at, manifest, archive) VALUES (?, ?, ?, ?, ?, ?)`,
		b.Tenant, b.RunID, b.SHA256, b.CreatedAt, b.Manifest, b.Archive)
	if err != nil {
		return err
	}
	return t.found(`UPDATE run SET evidence = ? WHERE tenant = ? AND id = ?`, b.SHA256, b.Tenant, b.RunID)
}

// ListRunEntries reads the log entries of a run.
func (t *readTx) ListRunEntries(runID string) ([]*gatehouse.Entry, error) {
	if !shared.IsRun(runID) {
		return nil, nil
	}
	return t.ListActionEntries(runID)
}
