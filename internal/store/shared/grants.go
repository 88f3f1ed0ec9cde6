package shared

import "github.com/gatehouse-dev/gatehouse"

// ScanGrant reads a grant.
func ScanGrant(r Row) (g *gatehouse.Grant, err error) {
	g = &gatehouse.Grant{
		Tenant: r.Text(), ID: r.Text(), Grantor: r.Text(), GrantorName: r.Text(), Agent: r.Text(), AgentName: r.Text(),
		Connector: r.Text(), Fingerprint: r.Text(), Operation: r.Text(), When: r.Text(),
		Level: gatehouse.RiskLevel(r.Int()),
	}
	g.Count = int(r.Int())
	if g.Amounts, err = DecodeAmounts(r.Text()); err != nil {
		return nil, err
	}
	g.Used = int(r.Int())
	if g.UsedAmounts, err = DecodeAmounts(r.Text()); err != nil {
		return nil, err
	}
	g.CreatedAt, g.ExpiresAt, g.EndedAt = r.Time(), r.Time(), r.TimePtr()
	g.EndedBy, g.EndReason = r.Text(), gatehouse.GrantEnd(r.Text())
	return g, nil
}

// ListGrants lists grants, newest first.
func (t Reads) ListGrants(f gatehouse.GrantFilter) ([]*gatehouse.Grant, error) {
	return list(t, ScanGrant, `
SELECT g.tenant, g.id, g.grantor_id, coalesce(p.name, g.grantor_id), g.agent_id, coalesce(a.name, g.agent_id),
  g.connector, g.fingerprint, g.operation, g.condition, g.level, g.count, g.amounts, g.used, g.used_amounts,
  g.created_at, g.expires_at, g.ended_at, g.ended_by, g.end_reason
FROM action_grant g
LEFT JOIN principal p ON p.tenant = g.tenant AND p.id = g.grantor_id
LEFT JOIN principal a ON a.tenant = g.tenant AND a.id = g.agent_id
WHERE g.tenant = $1 AND ($2 = '' OR g.agent_id = $2) AND ($3 = '' OR g.grantor_id = $3)
  AND ($4 = '' OR g.connector = $4) AND ($5 = '' OR g.operation = $5)
  AND ($6 = 0 OR g.ended_at IS NULL AND g.expires_at > $7)
ORDER BY g.created_at DESC, g.id DESC LIMIT $8`,
		t.Tenant(), f.Agent, f.Grantor, f.Connector, f.Operation, openFlag(f.Open), t.Now(), f.Limit)
}

// FindGrant finds a grant by id.
func (t Reads) FindGrant(id string) (*gatehouse.Grant, error) {
	return find(t, ScanGrant, `
SELECT g.tenant, g.id, g.grantor_id, coalesce(p.name, g.grantor_id), g.agent_id, coalesce(a.name, g.agent_id),
  g.connector, g.fingerprint, g.operation, g.condition, g.level, g.count, g.amounts, g.used, g.used_amounts,
  g.created_at, g.expires_at, g.ended_at, g.ended_by, g.end_reason
FROM action_grant g
LEFT JOIN principal p ON p.tenant = g.tenant AND p.id = g.grantor_id
LEFT JOIN principal a ON a.tenant = g.tenant AND a.id = g.agent_id
WHERE g.tenant = $1 AND g.id = $2`, t.Tenant(), id)
}

// InsertGrant stores a grant.
func (t Writes) InsertGrant(g *gatehouse.Grant) error {
	if err := t.Owns(g.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO action_grant (tenant, id, grantor_id, agent_id, connector, fingerprint, operation, condition, level,
  count, amounts, used, used_amounts, created_at, expires_at, ended_by, end_reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, '', '')`,
		g.Tenant, g.ID, g.Grantor, g.Agent, g.Connector, g.Fingerprint, g.Operation, g.When, int(g.Level), g.Count,
		encodeAmounts(g.Amounts), g.Used, encodeAmounts(g.UsedAmounts), g.CreatedAt, g.ExpiresAt)
}

// UpdateGrant writes the use and the end of a grant that has not ended.
func (t Writes) UpdateGrant(g *gatehouse.Grant) error {
	if err := t.Owns(g.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE action_grant SET used = $1, used_amounts = $2, ended_at = $3, ended_by = $4, end_reason = $5
WHERE tenant = $6 AND id = $7 AND ended_at IS NULL`,
		g.Used, encodeAmounts(g.UsedAmounts), g.EndedAt, g.EndedBy, string(g.EndReason), g.Tenant, g.ID)
}

// encodeAmounts returns the stored text of amounts, "" for none.
func encodeAmounts(list []gatehouse.Magnitude) string {
	if len(list) == 0 {
		return ""
	}
	return string(gatehouse.MustJSON(list))
}

// DecodeAmounts reverses encodeAmounts.
func DecodeAmounts(s string) ([]gatehouse.Magnitude, error) {
	list, err := DecodeJSON[[]gatehouse.Magnitude](s)
	if list == nil {
		return nil, err
	}
	return *list, err
}
