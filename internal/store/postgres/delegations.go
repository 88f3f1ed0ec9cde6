package postgres

import (
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectDelegation = `SELECT d.tenant, d.id, d.from_id, coalesce(f.name, d.from_id), d.to_id, coalesce(t.name, d.to_id),
d.starts_at, d.ends_at, d.types, d.level, d.created_at, d.created_by, d.ended_at, d.ended_by
FROM delegation d LEFT JOIN principal f ON f.tenant = d.tenant AND f.id = d.from_id
LEFT JOIN principal t ON t.tenant = d.tenant AND t.id = d.to_id WHERE d.tenant = $1 AND `

// ListDelegations lists delegations, newest first.
func (t *readTx) ListDelegations(
	principal string,
	open bool,
	limit int,
) (list []*gatehouse.Delegation, err error) {
	one := func(r *row) error {
		d, err := shared.ScanDelegation(r)
		list = append(list, d)
		return err
	}
	const order = ` ORDER BY d.created_at DESC, d.id DESC LIMIT $5`
	var from int64
	if open {
		from = t.Now().UnixMicro()
	}
	err = t.each(
		selectDelegation+`($2 = '' OR d.from_id = $2 OR d.to_id = $2) AND ($3 = 0 OR d.ended_at IS NULL) AND d.ends_at > $4`+order,
		one,
		t.tenant,
		principal,
		shared.OpenFlag(open),
		from,
		limit,
	)
	return list, err
}

// FindDelegation finds a delegation by id.
func (t *readTx) FindDelegation(id string) (d *gatehouse.Delegation, err error) {
	err = t.one(selectDelegation+`d.id = $2`,
		func(r *row) error { d, err = shared.ScanDelegation(r); return err }, t.tenant, id)
	return d, err
}

// InsertDelegation stores a delegation.
func (t *tx) InsertDelegation(d *gatehouse.Delegation) error {
	if err := t.checkTenant(d.Tenant); err != nil {
		return err
	}
	types, err := json.Marshal(append([]string{}, d.Types...))
	if err != nil {
		return err
	}
	err = t.write(`INSERT INTO delegation (tenant, id, from_id, to_id, starts_at, ends_at, types, level, created_at, created_by, ended_at, ended_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '')`, d.Tenant, d.ID, d.From, d.To, d.Starts, d.Ends, string(types), int(d.Level), d.CreatedAt, d.CreatedBy)
	return err
}

// EndDelegation ends a delegation early.
func (t *tx) EndDelegation(id, by string) error {
	return t.write(
		`
WITH w AS (
  UPDATE delegation SET ended_at = $1, ended_by = $2 WHERE tenant = $3 AND id = $4 AND ended_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		t.Now(),
		by,
		t.tenant,
		id,
	)
}
