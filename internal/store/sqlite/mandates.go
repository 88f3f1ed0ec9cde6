package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListMandates lists newest first.
func (t *readTx) ListMandates(f gatehouse.MandateFilter) (list []*gatehouse.Mandate, err error) {
	err = t.each(`SELECT body FROM mandate WHERE tenant = ?1 AND (?2 = '' OR agent_id = ?2)
  AND (?3 = 0 OR ended_at IS NULL AND expires_at > ?4) ORDER BY created_at DESC, id DESC LIMIT ?5`,
		func(r *stmt) error {
			m, err := shared.DecodeMandate(r.Text())
			list = append(list, m)
			return err
		}, t.tenant, f.Agent, shared.OpenFlag(f.Open), t.Now(), f.Limit)
	return list, err
}

// FindMandate finds by id.
func (t *readTx) FindMandate(id string) (m *gatehouse.Mandate, err error) {
	err = t.one(`SELECT body FROM mandate WHERE tenant = ? AND id = ?`,
		func(r *stmt) error { m, err = shared.DecodeMandate(r.Text()); return err }, t.tenant, id)
	return m, err
}

// LockMandate finds by id. The single writer has locked every row.
func (t *tx) LockMandate(id string) (*gatehouse.Mandate, error) { return t.FindMandate(id) }

// InsertMandate stores a mandate.
func (t *tx) InsertMandate(m *gatehouse.Mandate) error {
	if err := t.owns(m.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO mandate (tenant, id, agent_id, count, used, created_at, expires_at, ended_at, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.Tenant, m.ID, m.Agent, m.InAll.Count, m.InAll.Used, m.CreatedAt, m.ExpiresAt, m.EndedAt, m.Text())
	return err
}

// UpdateMandate writes the mutable fields of a mandate that has not ended.
func (t *tx) UpdateMandate(m *gatehouse.Mandate) error {
	if err := t.owns(m.Tenant); err != nil {
		return err
	}
	return t.guarded(`UPDATE mandate SET count = ?, used = ?, expires_at = ?, ended_at = ?, body = ?
WHERE tenant = ? AND id = ? AND ended_at IS NULL`,
		m.InAll.Count, m.InAll.Used, m.ExpiresAt, m.EndedAt, m.Text(), t.tenant, m.ID)
}
