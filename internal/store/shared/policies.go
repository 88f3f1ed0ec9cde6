package shared

import "github.com/gatehouse-dev/gatehouse"

func scanPolicy(r Row) (*gatehouse.PolicyVersion, error) {
	return &gatehouse.PolicyVersion{
		Tenant: r.Text(), Version: int(r.Int()), SHA256: r.Text(), Active: r.Bool(), AppliedBy: r.Text(),
		AppliedAt: r.Time(), ActionID: r.Text(),
	}, nil
}

func scanPolicySource(r Row) (*gatehouse.PolicyVersion, error) {
	p, err := scanPolicy(r)
	p.Source = r.Text()
	return p, err
}

// ActivePolicy finds the active version.
func (t Reads) ActivePolicy() (*gatehouse.PolicyVersion, error) {
	return find(t, scanPolicySource, `
SELECT v.tenant, v.version, v.sha256, true, v.applied_by, v.applied_at, v.action_id, v.source
FROM policy_active a JOIN policy_version v ON v.tenant = a.tenant AND v.version = a.version
WHERE a.tenant = $1`, t.Tenant())
}

// FindPolicy finds a version by number.
func (t Reads) FindPolicy(version int) (*gatehouse.PolicyVersion, error) {
	return find(t, scanPolicySource, `
SELECT v.tenant, v.version, v.sha256, a.version IS NOT NULL, v.applied_by, v.applied_at, v.action_id, v.source
FROM policy_version v LEFT JOIN policy_active a ON a.tenant = v.tenant AND a.version = v.version
WHERE v.tenant = $1 AND v.version = $2`, t.Tenant(), version)
}

// ListPolicies lists all versions, newest first, without their source.
func (t Reads) ListPolicies() ([]*gatehouse.PolicyVersion, error) {
	return list(t, scanPolicy, `
SELECT v.tenant, v.version, v.sha256, a.version IS NOT NULL, v.applied_by, v.applied_at, v.action_id
FROM policy_version v LEFT JOIN policy_active a ON a.tenant = v.tenant AND a.version = v.version
WHERE v.tenant = $1 ORDER BY v.version DESC`, t.Tenant())
}

// ActivatePolicy activates a stored version.
func (t Writes) ActivatePolicy(version int) error {
	return t.WriteOrFail(gatehouse.ErrNotFound, `
INSERT INTO policy_active (tenant, version)
SELECT tenant, version FROM policy_version WHERE tenant = $1 AND version = $2
ON CONFLICT (tenant) DO UPDATE SET version = excluded.version`, t.Tenant(), version)
}

func scanConnectorVersion(r Row) (*gatehouse.ConnectorVersion, error) {
	return &gatehouse.ConnectorVersion{
		Tenant: r.Text(), Version: int(r.Int()), SHA256: r.Text(), AppliedBy: r.Text(), AppliedAt: r.Time(),
		ActionID: r.Text(),
	}, nil
}

// ConnectorVersion returns the number of the newest version; 0 for none.
func (t Reads) ConnectorVersion() (int, error) {
	return number(t, `SELECT coalesce(max(version), 0) FROM connector_version WHERE tenant = $1`, t.Tenant())
}

// FindConnectorVersion finds a version by number.
func (t Reads) FindConnectorVersion(version int) (*gatehouse.ConnectorVersion, error) {
	return find(t, func(r Row) (*gatehouse.ConnectorVersion, error) {
		v, err := scanConnectorVersion(r)
		v.Source = r.Text()
		return v, err
	}, `
SELECT tenant, version, sha256, applied_by, applied_at, action_id, source FROM connector_version
WHERE tenant = $1 AND version = $2`, t.Tenant(), version)
}

// ListConnectorVersions lists all versions, newest first, without their source.
func (t Reads) ListConnectorVersions() ([]*gatehouse.ConnectorVersion, error) {
	return list(t, scanConnectorVersion, `
SELECT tenant, version, sha256, applied_by, applied_at, action_id FROM connector_version
WHERE tenant = $1 ORDER BY version DESC`, t.Tenant())
}

// InsertConnectorVersion stores the next version.
func (t Writes) InsertConnectorVersion(v *gatehouse.ConnectorVersion) error {
	if err := t.Owns(v.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
INSERT INTO connector_version (tenant, version, source, sha256, applied_by, applied_at, action_id)
SELECT $1, CAST($2 AS integer), $3, $4, $5, CAST($6 AS bigint), $7
WHERE CAST($2 AS integer) - 1 = coalesce((SELECT max(version) FROM connector_version WHERE tenant = $1), 0)`,
		v.Tenant, v.Version, v.Source, v.SHA256, v.AppliedBy, v.AppliedAt, v.ActionID)
}
