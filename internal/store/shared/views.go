package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ScanView reads a saved view.
func ScanView(r Row) (*gatehouse.SavedView, error) {
	return &gatehouse.SavedView{
		Tenant: r.Text(), PrincipalID: r.Text(), Name: r.Text(), Query: r.Text(), CreatedAt: r.Time(),
	}, nil
}

// ListViews lists a person's saved views by name.
func (t Reads) ListViews(principalID string) ([]*gatehouse.SavedView, error) {
	return list(t, ScanView, `
SELECT tenant, principal_id, name, query, created_at FROM saved_view
WHERE tenant = $1 AND principal_id = $2 ORDER BY name`, t.Tenant(), principalID)
}

// PutView stores or replaces a saved view.
func (t Writes) PutView(v *gatehouse.SavedView) error {
	if err := t.Owns(v.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO saved_view (tenant, principal_id, name, query, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, principal_id, name) DO UPDATE SET query = excluded.query, created_at = excluded.created_at`,
		v.Tenant, v.PrincipalID, v.Name, v.Query, v.CreatedAt)
}

// DeleteView deletes a saved view.
func (t Writes) DeleteView(principalID, name string) error {
	return t.Write(`
DELETE FROM saved_view WHERE tenant = $1 AND principal_id = $2 AND name = $3`, t.Tenant(), principalID, name)
}

// DecisionCounts sums the days since from, by endpoint and result.
func (t Reads) DecisionCounts(from time.Time) (all []gatehouse.DecisionCount, err error) {
	err = t.Each(`
SELECT endpoint, result, CAST(sum(n) AS bigint) FROM decision_count WHERE tenant = $1 AND day >= $2
GROUP BY endpoint, result ORDER BY endpoint, result`, func(r Row) error {
		endpoint, result, n := r.Text(), gatehouse.DecisionResult(r.Text()), r.Int()
		if len(all) == 0 || all[len(all)-1].Endpoint != endpoint {
			all = append(all, gatehouse.DecisionCount{Endpoint: endpoint})
		}
		all[len(all)-1].Add(result, n)
		return nil
	}, t.Tenant(), from.UTC().Truncate(24*time.Hour))
	return all, err
}

// AddDecisions adds n to the day's count.
func (t Writes) AddDecisions(day time.Time, endpoint string, result gatehouse.DecisionResult, n int64) error {
	return t.Write(`
INSERT INTO decision_count (tenant, day, endpoint, result, n) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, day, endpoint, result) DO UPDATE SET n = decision_count.n + excluded.n`,
		t.Tenant(), day.UTC().Truncate(24*time.Hour), endpoint, string(result), n)
}
