package sqlite

import (
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// errEnough stops a walk.
var errEnough = errors.New("sqlite: enough")

// ActionFacts walks the narrow rows of actions, newest first.
func (t *readTx) ActionFacts(readBy string, fn func(gatehouse.ActionFact) bool) error {
	var where condition
	where.add("a.tenant = ?", t.tenant)
	where.readBy("a.seq", t.tenant, readBy)
	err := t.each(`SELECT a.id, a.action_type, coalesce(p.name, a.proposer_id), a.risk, a.status, a.decided_via, a.proposed_at,
a.expires_at, a.decided_at, coalesce(o.groups, '') FROM action a LEFT JOIN approval o ON o.seq = a.seq
LEFT JOIN principal p ON p.tenant = a.tenant AND p.id = a.proposer_id
WHERE `+where.sql()+` ORDER BY a.id DESC LIMIT ?`, func(r *stmt) error {
		f := gatehouse.ActionFact{
			ID: r.Text(), ActionType: r.Text(), ProposedBy: r.Text(), RiskLevel: gatehouse.RiskLevel(r.Int()),
			Status:     gatehouse.Status(r.Text()),
			DecidedVia: gatehouse.Channel(r.Text()), ProposedAt: r.Time(), ExpiresAt: r.TimePtr(),
			DecidedAt: r.TimePtr(),
			Groups:    shared.AskedGroups(r.Text()),
		}
		if !fn(f) {
			return errEnough
		}
		return nil
	}, append(where.args, gatehouse.MaxFacts)...)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// ListViews lists a person's saved views by name.
func (t *readTx) ListViews(principalID string) (list []*gatehouse.SavedView, err error) {
	err = t.each(`SELECT name, query, created_at FROM saved_view WHERE tenant = ? AND principal_id = ? ORDER BY name`, func(r *stmt) error {
		list = append(list, &gatehouse.SavedView{Tenant: t.tenant, PrincipalID: principalID, Name: r.Text(),
			Query: r.Text(), CreatedAt: r.Time()})
		return nil
	}, t.tenant, principalID)
	return list, err
}

// PutView stores or replaces a saved view.
func (t *tx) PutView(v *gatehouse.SavedView) error {
	if err := t.owns(v.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO saved_view (tenant, principal_id, name, query, created_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, principal_id, name) DO UPDATE SET query = excluded.query, created_at = excluded.created_at`,
		v.Tenant, v.PrincipalID, v.Name, v.Query, v.CreatedAt)
	return err
}

// DeleteView deletes a saved view.
func (t *tx) DeleteView(principalID, name string) error {
	_, err := t.exec(`DELETE FROM saved_view WHERE tenant = ? AND principal_id = ? AND name = ?`,
		t.tenant, principalID, name)
	return err
}
