package shared

import (
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
)

func scanDelegation(r Row) (*gatehouse.Delegation, error) {
	d := &gatehouse.Delegation{
		Tenant: r.Text(), ID: r.Text(), From: r.Text(), FromName: r.Text(), To: r.Text(), ToName: r.Text(),
		Starts: r.Time(), Ends: r.Time(),
	}
	types := r.Text()
	d.Level, d.CreatedAt, d.CreatedBy = gatehouse.RiskLevel(r.Int()), r.Time(), r.Text()
	d.EndedAt, d.EndedBy = r.TimePtr(), r.Text()
	return d, json.Unmarshal([]byte(types), &d.Types)
}

// ListDelegations lists delegations, newest first.
func (t Reads) ListDelegations(principal string, open bool, limit int) ([]*gatehouse.Delegation, error) {
	var from int64
	if open {
		from = t.Now().UnixMicro()
	}
	return list(t, scanDelegation, `
SELECT d.tenant, d.id, d.from_id, coalesce(f.name, d.from_id), d.to_id, coalesce(t.name, d.to_id),
  d.starts_at, d.ends_at, d.types, d.level, d.created_at, d.created_by, d.ended_at, d.ended_by
FROM delegation d
LEFT JOIN principal f ON f.tenant = d.tenant AND f.id = d.from_id
LEFT JOIN principal t ON t.tenant = d.tenant AND t.id = d.to_id
WHERE d.tenant = $1 AND ($2 = '' OR d.from_id = $2 OR d.to_id = $2) AND ($3 = 0 OR d.ended_at IS NULL)
  AND d.ends_at > $4
ORDER BY d.created_at DESC, d.id DESC LIMIT $5`, t.Tenant(), principal, openFlag(open), from, limit)
}

// FindDelegation finds a delegation by id.
func (t Reads) FindDelegation(id string) (*gatehouse.Delegation, error) {
	return find(t, scanDelegation, `
SELECT d.tenant, d.id, d.from_id, coalesce(f.name, d.from_id), d.to_id, coalesce(t.name, d.to_id),
  d.starts_at, d.ends_at, d.types, d.level, d.created_at, d.created_by, d.ended_at, d.ended_by
FROM delegation d
LEFT JOIN principal f ON f.tenant = d.tenant AND f.id = d.from_id
LEFT JOIN principal t ON t.tenant = d.tenant AND t.id = d.to_id
WHERE d.tenant = $1 AND d.id = $2`, t.Tenant(), id)
}

// InsertDelegation stores a delegation.
func (t Writes) InsertDelegation(d *gatehouse.Delegation) error {
	if err := t.Owns(d.Tenant); err != nil {
		return err
	}
	types, err := json.Marshal(append([]string{}, d.Types...))
	if err != nil {
		return err
	}
	return t.Write(`
INSERT INTO delegation (tenant, id, from_id, to_id, starts_at, ends_at, types, level, created_at, created_by,
  ended_at, ended_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '')`,
		d.Tenant, d.ID, d.From, d.To, d.Starts, d.Ends, string(types), int(d.Level), d.CreatedAt, d.CreatedBy)
}

// EndDelegation ends a delegation early.
func (t Writes) EndDelegation(id, by string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE delegation SET ended_at = $1, ended_by = $2 WHERE tenant = $3 AND id = $4 AND ended_at IS NULL`,
		t.Now(), by, t.Tenant(), id)
}
