package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ActionFacts reads the narrow rows of actions, newest first.
func (t *readTx) ActionFacts(readBy string, fn func(gatehouse.ActionFact) bool) error {
	enough := false
	var where condition
	where.add("a.tenant = ?", t.tenant)
	where.readBy("a.seq", t.tenant, readBy)
	last := where.number(" ORDER BY a.id DESC LIMIT ?", gatehouse.MaxFacts)
	err := t.each(`SELECT a.id, a.action_type, coalesce(p.name, a.proposer_id), a.risk, a.status, a.decided_via, a.proposed_at,
a.expires_at, a.decided_at, coalesce(o.groups, '') FROM action a LEFT JOIN approval o ON o.seq = a.seq
LEFT JOIN principal p ON p.tenant = a.tenant AND p.id = a.proposer_id
WHERE `+where.sql()+last, func(r *row) error {
		f := gatehouse.ActionFact{
			ID: r.Text(), ActionType: r.Text(), ProposedBy: r.Text(), RiskLevel: gatehouse.RiskLevel(r.Int()),
			Status:     gatehouse.Status(r.Text()),
			DecidedVia: gatehouse.Channel(r.Text()), ProposedAt: r.Time(), ExpiresAt: r.TimePtr(),
			DecidedAt: r.TimePtr(),
			Groups:    shared.AskedGroups(r.Text()),
		}
		// The remaining rows are already on their way and are skipped.
		enough = enough || !fn(f)
		return nil
	}, where.args...)
	return err
}

const listViews = `SELECT name, query, created_at FROM saved_view WHERE tenant = $1 AND principal_id = $2 ORDER BY name`

// ListViews lists saved views by name.
func (t *readTx) ListViews(principalID string) (list []*gatehouse.SavedView, err error) {
	err = t.each(listViews, func(r *row) error { list = append(list, t.scanView(r, principalID)); return nil },
		t.tenant, principalID)
	return list, err
}

func (t *readTx) scanView(r *row, principalID string) *gatehouse.SavedView {
	return &gatehouse.SavedView{Tenant: t.tenant, PrincipalID: principalID, Name: r.Text(), Query: r.Text(),
		CreatedAt: r.Time()}
}

// PutView stores or replaces a saved view.
func (t *tx) PutView(v *gatehouse.SavedView) error {
	if err := t.checkTenant(v.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO saved_view (tenant, principal_id, name, query, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, principal_id, name) DO UPDATE SET query = excluded.query, created_at = excluded.created_at`,
		v.Tenant, v.PrincipalID, v.Name, v.Query, v.CreatedAt)
}

// DeleteView deletes a saved view.
func (t *tx) DeleteView(principalID, name string) error {
	return t.write(`DELETE FROM saved_view WHERE tenant = $1 AND principal_id = $2 AND name = $3`,
		t.tenant, principalID, name)
}
