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

const (
	attemptsOfRun = `SELECT seq, tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail
FROM step_attempt WHERE tenant = $1 AND run_id = $2`
	attemptColumns = `INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail) `
	attemptValues  = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11`
	// The step of an attempt must exist and belong to the run.
	ofStep        = `step s WHERE s.tenant = $1 AND s.id = $3 AND s.run_id = $2`
	insertAttempt = guarded + attemptColumns + `SELECT ` + attemptValues + ` FROM ` + ofStep + orMissing
)

// InsertAttempt stores the result of a lease.
func (t *tx) InsertAttempt(a *gatehouse.StepAttempt) error {
	if err := t.checkTenant(a.Tenant); err != nil {
		return err
	}
	err := t.write(insertAttempt, a.Tenant, a.RunID, a.StepID, a.Attempt, a.Generation, a.Worker, a.StartedAt, a.FinishedAt, a.Outcome, a.Code, a.Detail)
	return err
}

// ListUsage lists the model usage of a run, oldest first.
func (t *readTx) ListUsage(runID string) (list []*gatehouse.ModelUsage, err error) {
	err = t.each(`SELECT tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens, cost, currency, at
FROM model_usage WHERE tenant = $1 AND run_id = $2 ORDER BY seq`, func(r *row) error {
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

const (
	usageColumns = `INSERT INTO model_usage (tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens, cost,
micros, picos, currency, at) `
	usageValues = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14`
	insertUsage = usageColumns + `VALUES (` + usageValues + `)`
)

// InsertUsage stores the cost of a model's answer.
func (t *tx) InsertUsage(u *gatehouse.ModelUsage) error {
	if err := t.checkTenant(u.Tenant); err != nil {
		return err
	}
	micros, picos, err := shared.SplitCost(u.Cost)
	if err != nil {
		return err
	}
	err = t.write(insertUsage, u.Tenant, u.RunID, u.Workflow, u.StepID, u.Attempt, u.Provider, u.Model, u.InputTokens, u.OutputTokens, string(u.Cost),
		micros, picos, u.Currency, u.At)
	return err
}

const (
	spentByTenant = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM model_usage
WHERE tenant = $1 AND currency = $2 AND at > $3`
	spentByWorkflow = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM model_usage
WHERE tenant = $1 AND currency = $2 AND at > $3 AND workflow = $4 AND workflow <> ''`
)

// Spent sums costs. A sum that overflows is an error, so that it cannot pass a budget.
func (t *readTx) Spent(workflow, currency string, since time.Time) (sum gatehouse.Decimal, err error) {
	row := func(r *row) (err error) { sum, err = shared.JoinCost(r.Int(), r.Int()); return err }
	if workflow == "" {
		err = t.one(spentByTenant, row, t.tenant, currency, since)
	} else {
		err = t.one(spentByWorkflow, row, t.tenant, currency, since, workflow)
	}
	return sum, err
}

const (
	claimedByTenant = `SELECT coalesce(sum(micros), 0)::bigint, coalesce(sum(picos), 0)::bigint FROM budget_claim
WHERE tenant = $1 AND currency = $2 AND at > $3`
	claimedByWorkflow = claimedByTenant + ` AND workflow = $4`
	forgetClaims      = `DELETE FROM budget_claim WHERE tenant = $1 AND currency = $2 AND at < $3`
	releaseClaim      = `DELETE FROM budget_claim WHERE tenant = $1 AND step_id = $2 AND generation = $3`
	releaseClaims     = `DELETE FROM budget_claim USING u WHERE tenant = $1 AND step_id = $2 AND generation = $3`
)

// BudgetClaimed sums claims. A sum that overflows is an error, as in Spent.
func (t *readTx) BudgetClaimed(workflow, currency string, since time.Time) (sum gatehouse.Decimal, err error) {
	row := func(r *row) (err error) { sum, err = shared.JoinCost(r.Int(), r.Int()); return err }
	if workflow == "" {
		err = t.one(claimedByTenant, row, t.tenant, currency, since)
	} else {
		err = t.one(claimedByWorkflow, row, t.tenant, currency, since, workflow)
	}
	return sum, err
}

// LockBudget serializes the claims on a tenant's budgets.
func (t *tx) LockBudget() error {
	return t.lockAndRead([]query{lockFor("budget", t.tenant)})
}

// ClaimBudget stores the maximum cost of a call, and deletes claims older than forget.
func (t *tx) ClaimBudget(c *gatehouse.BudgetClaim, forget time.Time) error {
	if err := t.checkTenant(c.Tenant); err != nil {
		return err
	}
	micros, picos, err := shared.SplitCost(c.Most)
	if err != nil {
		return err
	}
	if err := t.write(forgetClaims, c.Tenant, c.Currency, forget); err != nil {
		return err
	}
	return t.write(`INSERT INTO budget_claim (tenant, workflow, step_id, generation, currency, micros, picos, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, step_id, generation) DO UPDATE SET currency = excluded.currency, micros = excluded.micros, picos = excluded.picos, at = excluded.at`,
		c.Tenant, c.Workflow, c.StepID, c.Generation, c.Currency, micros, picos, c.At)
}

// ReleaseBudget removes a claim.
func (t *tx) ReleaseBudget(stepID string, generation int) error {
	return t.write(releaseClaim, t.tenant, stepID, generation)
}

// ListSignals lists the signals of a run, oldest first.
func (t *readTx) ListSignals(runID string) (list []*gatehouse.Signal, err error) {
	err = t.each(`SELECT `+shared.SignalColumns+` FROM run_signal WHERE tenant = $1 AND run_id = $2 ORDER BY seq`,
		func(r *row) error { list = append(list, shared.ScanSignal(r)); return nil }, t.tenant, runID)
	return list, err
}

// ListHands lists the principals of a run's hands by id.
func (t *readTx) ListHands(runID string) (list []string, err error) {
	err = t.each(`SELECT principal FROM run_hand WHERE tenant = $1 AND run_id = $2 ORDER BY principal`,
		func(r *row) error { list = append(list, r.Text()); return nil }, t.tenant, runID)
	return list, err
}

// InsertHand stores a principal once.
func (t *tx) InsertHand(runID, principal string) error {
	return t.write(`INSERT INTO run_hand (tenant, run_id, principal) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		t.tenant, runID, principal)
}

// InsertSignal stores an event for a step that waits for it, now or later.
func (t *tx) InsertSignal(s *gatehouse.Signal) error {
	if err := t.checkTenant(s.Tenant); err != nil {
		return err
	}
	err := t.write(`INSERT INTO run_signal (tenant, run_id, id, name, sent_by, at, data) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		s.Tenant, s.RunID, s.ID, s.Name, s.By, s.At, s.Data)
	return err
}

// TakeSignal takes the oldest signal that nobody has taken or is taking.
func (t *tx) TakeSignal(runID, name string) (s *gatehouse.Signal, err error) {
	err = t.one(`UPDATE run_signal SET taken_at = $1 WHERE seq = (SELECT seq FROM run_signal
WHERE tenant = $2 AND run_id = $3 AND name = $4 AND taken_at IS NULL
ORDER BY seq LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) RETURNING `+shared.SignalColumns,
		func(r *row) error { s = shared.ScanSignal(r); return nil }, t.Now(), t.tenant, runID, name)
	t.wrote = t.wrote || s != nil
	return s, err
}

// ListReflexions lists reflexions, newest first.
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
	last := where.number(` ORDER BY seq DESC LIMIT ?`, limit+1)
	err = t.each(`SELECT seq, tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at
FROM reflexion WHERE `+
		where.sql()+last, func(r *row) error {
		seqs = append(seqs, r.Int())
		page.Items = append(page.Items, &gatehouse.Reflexion{
			Tenant: r.Text(), ID: r.Text(), RunID: r.Text(), Workflow: r.Text(), Version: int(r.Int()),
			Outcome:   gatehouse.RunStatus(r.Text()),
			Attempted: r.Text(), Happened: r.Text(), Otherwise: r.Text(), At: r.Time(),
		})
		return nil
	}, where.args...)
	return shared.Finish(page, limit, func(*gatehouse.Reflexion) shared.Cursor { return shared.Cursor{Seq: seqs[limit-1]} }, shared.KindReflexions, bound...), err
}

const (
	reflexionColumns = `INSERT INTO reflexion (tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at) `
	reflexionValues  = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10`
	insertReflexion  = reflexionColumns + `VALUES (` + reflexionValues + `)`
)

// InsertReflexion stores the reflexion of a run, once.
func (t *tx) InsertReflexion(r *gatehouse.Reflexion) error {
	if err := t.checkTenant(r.Tenant); err != nil {
		return err
	}
	err := t.write(insertReflexion, r.Tenant, r.ID, r.RunID, r.Workflow, r.Version, string(r.Outcome), r.Attempted, r.Happened, r.Otherwise, r.At)
	return err
}

// FindBundle finds the evidence bundle of a run.
func (t *readTx) FindBundle(runID string) (b *gatehouse.Bundle, err error) {
	err = t.one(`SELECT tenant, run_id, sha256, manifest, archive, created_at FROM bundle
WHERE tenant = $1 AND run_id = $2`, func(r *row) error {
		b = &gatehouse.Bundle{Tenant: r.Text(), RunID: r.Text(), SHA256: r.Text(), Manifest: r.JSON(),
			Archive: r.Blob(), CreatedAt: r.Time()}
		return nil
	}, t.tenant, runID)
	return b, err
}

// InsertBundle stores the evidence bundle of a run, and its hash in the run.
func (t *tx) InsertBundle(b *gatehouse.Bundle) error {
	if err := t.checkTenant(b.Tenant); err != nil {
		return err
	}
	err := t.write(`INSERT INTO bundle (tenant, run_id, sha256, created_at, manifest, archive) VALUES ($1, $2, $3, $4, $5, $6)`,
		b.Tenant, b.RunID, b.SHA256, b.CreatedAt, b.Manifest, b.Archive)
	if err != nil {
		return err
	}
	return t.write(guarded+`UPDATE run SET evidence = $1
WHERE tenant = $2 AND id = $3`+orMissing, b.SHA256, b.Tenant, b.RunID)
}

// ListRunEntries reads the log entries of a run.
func (t *readTx) ListRunEntries(runID string) ([]*gatehouse.Entry, error) {
	if !shared.IsRun(runID) {
		return nil, nil
	}
	return t.ListActionEntries(runID)
}
