package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectMandate = `SELECT body FROM mandate WHERE tenant = $1 AND id = $2`

// ListMandates lists mandates, newest first.
func (t *readTx) ListMandates(f gatehouse.MandateFilter) (list []*gatehouse.Mandate, err error) {
	err = t.each(`SELECT body FROM mandate WHERE tenant = $1 AND ($2 = '' OR agent_id = $2)
  AND ($3 = 0 OR ended_at IS NULL AND expires_at > $4) ORDER BY created_at DESC, id DESC LIMIT $5`,
		func(r *row) error {
			m, err := shared.DecodeMandate(r.Text())
			list = append(list, m)
			return err
		}, t.tenant, f.Agent, shared.OpenFlag(f.Open), t.Now(), f.Limit)
	return list, err
}

// FindMandate finds a mandate by id.
func (t *readTx) FindMandate(id string) (m *gatehouse.Mandate, err error) {
	err = t.one(selectMandate,
		func(r *row) error { m, err = shared.DecodeMandate(r.Text()); return err }, t.tenant, id)
	return m, err
}

// LockMandate is FindMandate with a lock on the row.
func (t *tx) LockMandate(id string) (m *gatehouse.Mandate, err error) {
	scan := func(r *row) (err error) { m, err = shared.DecodeMandate(r.Text()); return err }
	err = t.lockAndRead([]query{ask(selectMandate+` FOR NO KEY UPDATE`, scan, t.tenant, id)})
	if err == nil && m == nil {
		err = gatehouse.ErrNotFound
	}
	return m, err
}

// InsertMandate stores a mandate.
func (t *tx) InsertMandate(m *gatehouse.Mandate) error {
	if err := t.checkTenant(m.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO mandate (tenant, id, agent_id, count, used, created_at, expires_at, ended_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		m.Tenant, m.ID, m.Agent, m.InAll.Count, m.InAll.Used, m.CreatedAt, m.ExpiresAt, m.EndedAt, m.Text())
}

// UpdateMandate writes the mutable fields.
func (t *tx) UpdateMandate(m *gatehouse.Mandate) error {
	if err := t.checkTenant(m.Tenant); err != nil {
		return err
	}
	return t.write(`
WITH w AS (
  UPDATE mandate SET count = $1, used = $2, expires_at = $3, ended_at = $4, body = $5
  WHERE tenant = $6 AND id = $7 AND ended_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		m.InAll.Count, m.InAll.Used, m.ExpiresAt, m.EndedAt, m.Text(), t.tenant, m.ID)
}
