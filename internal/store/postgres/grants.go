package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	selectGrant = `SELECT g.tenant, g.id, g.grantor_id, coalesce(p.name, g.grantor_id),
g.agent_id, coalesce(a.name, g.agent_id),
g.connector, g.fingerprint, g.operation, g.condition, g.level, g.count, g.amounts, g.used, g.used_amounts,
g.created_at, g.expires_at, g.ended_at, g.ended_by, g.end_reason
FROM action_grant g LEFT JOIN principal p ON p.tenant = g.tenant AND p.id = g.grantor_id
LEFT JOIN principal a ON a.tenant = g.tenant AND a.id = g.agent_id WHERE g.tenant = $1`
	lockGrant = selectGrant + ` AND g.id = $2 FOR NO KEY UPDATE OF g`
)

// ListGrants lists grants, newest first.
func (t *readTx) ListGrants(f gatehouse.GrantFilter) (list []*gatehouse.Grant, err error) {
	err = t.each(selectGrant+` AND ($2 = '' OR g.agent_id = $2) AND ($3 = '' OR g.grantor_id = $3)
  AND ($4 = '' OR g.connector = $4) AND ($5 = '' OR g.operation = $5)
  AND ($6 = 0 OR g.ended_at IS NULL AND g.expires_at > $7) ORDER BY g.created_at DESC, g.id DESC LIMIT $8`,
		func(r *row) error {
			g, err := shared.ScanGrant(r)
			list = append(list, g)
			return err
		}, t.tenant, f.Agent, f.Grantor, f.Connector, f.Operation, shared.OpenFlag(f.Open), t.Now(), f.Limit)
	return list, err
}

// FindGrant finds a grant by id.
func (t *readTx) FindGrant(id string) (g *gatehouse.Grant, err error) {
	err = t.one(selectGrant+` AND g.id = $2`, func(r *row) error { g, err = shared.ScanGrant(r); return err }, t.tenant,
		id)
	return g, err
}

// LockGrant is FindGrant with a lock on the row.
func (t *tx) LockGrant(id string) (g *gatehouse.Grant, err error) {
	scan := func(r *row) (err error) { g, err = shared.ScanGrant(r); return err }
	err = t.lockAndRead([]query{ask(lockGrant, scan, t.tenant, id)})
	if err == nil && g == nil {
		err = gatehouse.ErrNotFound
	}
	return g, err
}

// InsertGrant stores a grant.
func (t *tx) InsertGrant(g *gatehouse.Grant) error {
	if err := t.checkTenant(g.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO action_grant (tenant, id, grantor_id, agent_id, connector, fingerprint, operation,
  condition, level, count, amounts, used, used_amounts, created_at, expires_at, ended_by, end_reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, '', '')`,
		g.Tenant, g.ID, g.Grantor, g.Agent, g.Connector, g.Fingerprint, g.Operation, g.When,
		int(g.Level), g.Count, shared.EncodeAmounts(g.Amounts), g.Used, shared.EncodeAmounts(g.UsedAmounts),
		g.CreatedAt, g.ExpiresAt)
}

// UpdateGrant writes the use and the end of a grant.
func (t *tx) UpdateGrant(g *gatehouse.Grant) error {
	if err := t.checkTenant(g.Tenant); err != nil {
		return err
	}
	return t.write(`
WITH w AS (
  UPDATE action_grant
  SET used = $1, used_amounts = $2, ended_at = $3, ended_by = $4, end_reason = $5
  WHERE tenant = $6 AND id = $7 AND ended_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		g.Used, shared.EncodeAmounts(g.UsedAmounts), g.EndedAt, g.EndedBy, string(g.EndReason), t.tenant, g.ID)
}
