package shared

import "github.com/gatehouse-dev/gatehouse"

// DecodeMandate reads the stored form of a mandate.
func DecodeMandate(s string) (*gatehouse.Mandate, error) { return DecodeJSON[gatehouse.Mandate](s) }

// ScanMandate reads the body of a mandate.
func ScanMandate(r Row) (*gatehouse.Mandate, error) { return DecodeMandate(r.Text()) }

// ListMandates lists mandates, newest first.
func (t Reads) ListMandates(f gatehouse.MandateFilter) ([]*gatehouse.Mandate, error) {
	return list(t, ScanMandate, `
SELECT body FROM mandate
WHERE tenant = $1 AND ($2 = '' OR agent_id = $2) AND ($3 = 0 OR ended_at IS NULL AND expires_at > $4)
ORDER BY created_at DESC, id DESC LIMIT $5`, t.Tenant(), f.Agent, openFlag(f.Open), t.Now(), f.Limit)
}

// FindMandate finds a mandate by id.
func (t Reads) FindMandate(id string) (*gatehouse.Mandate, error) {
	return find(t, ScanMandate, `SELECT body FROM mandate WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

// InsertMandate stores a mandate.
func (t Writes) InsertMandate(m *gatehouse.Mandate) error {
	if err := t.Owns(m.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO mandate (tenant, id, agent_id, count, used, created_at, expires_at, ended_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		m.Tenant, m.ID, m.Agent, m.InAll.Count, m.InAll.Used, m.CreatedAt, m.ExpiresAt, m.EndedAt, m.Text())
}

// UpdateMandate writes the mutable fields of a mandate that has not ended.
func (t Writes) UpdateMandate(m *gatehouse.Mandate) error {
	if err := t.Owns(m.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE mandate SET count = $1, used = $2, expires_at = $3, ended_at = $4, body = $5
WHERE tenant = $6 AND id = $7 AND ended_at IS NULL`,
		m.InAll.Count, m.InAll.Used, m.ExpiresAt, m.EndedAt, m.Text(), m.Tenant, m.ID)
}
