package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ListUsage lists the model usage of a run, oldest first.
func (t Reads) ListUsage(runID string) ([]*gatehouse.ModelUsage, error) {
	return list(t, func(r Row) (*gatehouse.ModelUsage, error) {
		return &gatehouse.ModelUsage{
			Tenant: r.Text(), RunID: r.Text(), Workflow: r.Text(), StepID: r.Text(), Attempt: int(r.Int()),
			Provider: r.Text(), Model: r.Text(), InputTokens: r.Int(), OutputTokens: r.Int(),
			Cost: gatehouse.Decimal(r.Text()), Currency: r.Text(), At: r.Time(),
		}, nil
	}, `
SELECT tenant, run_id, workflow, step_id, attempt, provider, model, input_tokens, output_tokens, cost, currency, at
FROM model_usage WHERE tenant = $1 AND run_id = $2 ORDER BY seq`, t.Tenant(), runID)
}

// ClaimBudget stores the maximum cost of a call, and deletes claims in the same currency from before the time forget.
func (t Writes) ClaimBudget(c *gatehouse.BudgetClaim, forget time.Time) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	micros, picos, err := SplitCost(c.Most)
	if err != nil {
		return err
	}
	err = t.Write(`DELETE FROM budget_claim WHERE tenant = $1 AND currency = $2 AND at < $3`,
		c.Tenant, c.Currency, forget)
	if err != nil {
		return err
	}
	return t.Write(`
INSERT INTO budget_claim (tenant, workflow, step_id, generation, currency, micros, picos, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, step_id, generation) DO UPDATE SET currency = excluded.currency, micros = excluded.micros,
  picos = excluded.picos, at = excluded.at`,
		c.Tenant, c.Workflow, c.StepID, c.Generation, c.Currency, micros, picos, c.At)
}

// ScanSignal reads a signal.
func ScanSignal(r Row) (*gatehouse.Signal, error) {
	return &gatehouse.Signal{
		Tenant: r.Text(), RunID: r.Text(), ID: r.Text(), Name: r.Text(), Data: r.JSON(), By: r.Text(), At: r.Time(),
	}, nil
}

// ListSignals lists the signals of a run, oldest first.
func (t Reads) ListSignals(runID string) ([]*gatehouse.Signal, error) {
	return list(t, ScanSignal, `
SELECT tenant, run_id, id, name, data, sent_by, at FROM run_signal WHERE tenant = $1 AND run_id = $2 ORDER BY seq`,
		t.Tenant(), runID)
}

// InsertSignal stores an event for a step that waits for it, now or later.
func (t Writes) InsertSignal(s *gatehouse.Signal) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO run_signal (tenant, run_id, id, name, sent_by, at, data) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		s.Tenant, s.RunID, s.ID, s.Name, s.By, s.At, s.Data)
}

// ListRunContributors lists the principals that contributed to a run, by id.
func (t Reads) ListRunContributors(runID string) ([]string, error) {
	return list(t, scanText, `
SELECT principal FROM run_hand WHERE tenant = $1 AND run_id = $2 ORDER BY principal`, t.Tenant(), runID)
}

// InsertRunContributor stores a principal that contributed to a run, once.
func (t Writes) InsertRunContributor(runID, principal string) error {
	return t.Write(`
INSERT INTO run_hand (tenant, run_id, principal) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		t.Tenant(), runID, principal)
}

// scanReflexion reads a reflexion.
func scanReflexion(r Row) (*gatehouse.Reflexion, error) {
	return &gatehouse.Reflexion{
		Tenant: r.Text(), ID: r.Text(), RunID: r.Text(), Workflow: r.Text(), Version: int(r.Int()),
		Outcome: gatehouse.RunStatus(r.Text()), Attempted: r.Text(), Happened: r.Text(), Otherwise: r.Text(),
		At: r.Time(),
	}, nil
}

// FindReflexion finds the reflexion of a run.
func (t Reads) FindReflexion(runID string) (*gatehouse.Reflexion, error) {
	return find(t, scanReflexion, `
SELECT tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at FROM reflexion
WHERE tenant = $1 AND run_id = $2`, t.Tenant(), runID)
}

// FindBundle finds the evidence bundle of a run.
func (t Reads) FindBundle(runID string) (*gatehouse.Bundle, error) {
	return find(t, func(r Row) (*gatehouse.Bundle, error) {
		return &gatehouse.Bundle{
			Tenant: r.Text(), RunID: r.Text(), SHA256: r.Text(), Manifest: r.JSON(), Archive: r.Blob(),
			CreatedAt: r.Time(),
		}, nil
	}, `
SELECT tenant, run_id, sha256, manifest, archive, created_at FROM bundle WHERE tenant = $1 AND run_id = $2`,
		t.Tenant(), runID)
}

// InsertBundle stores the evidence bundle of a run, and its hash in the run.
func (t Writes) InsertBundle(b *gatehouse.Bundle) error {
	if err := t.Owns(b.Tenant); err != nil {
		return err
	}
	err := t.Write(`
INSERT INTO bundle (tenant, run_id, sha256, created_at, manifest, archive) VALUES ($1, $2, $3, $4, $5, $6)`,
		b.Tenant, b.RunID, b.SHA256, b.CreatedAt, b.Manifest, b.Archive)
	if err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrNotFound, `UPDATE run SET evidence = $1 WHERE tenant = $2 AND id = $3`,
		b.SHA256, b.Tenant, b.RunID)
}
