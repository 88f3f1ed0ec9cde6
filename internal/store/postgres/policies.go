package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const policyTables = ` FROM policy_version v LEFT JOIN policy_active a ON a.tenant = v.tenant AND a.version = v.version `

// ActivePolicy finds the active version.
func (t *readTx) ActivePolicy() (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+shared.PolicyColumns+`, v.source FROM policy_active a
JOIN policy_version v ON v.tenant = a.tenant AND v.version = a.version WHERE a.tenant = $1`,
		func(r *row) error { p = shared.ScanPolicy(r); p.Source = r.Text(); return nil }, t.tenant)
	return p, err
}

// tenantRow is a tenant.
type tenantRow struct{ Tenant string }

var activeVersions = reads[tenantRow](`
SELECT r.n, a.version
FROM (
  SELECT tenant, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $2
) r
CROSS JOIN LATERAL (SELECT version FROM policy_active WHERE tenant = r.tenant OFFSET 0) a`)

// ActivePolicyVersion is the number of the active version; 0 for none.
func (t *readTx) ActivePolicyVersion() (int, error) {
	version := 0
	err := t.read(activeVersions.ask(func(r *row) error { version = int(r.Int()); return nil }, tenantRow{t.tenant}))
	return version, err
}

// FindPolicy finds a version by number.
func (t *readTx) FindPolicy(version int) (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+shared.PolicyColumns+`, v.source`+policyTables+`WHERE v.tenant = $1 AND v.version = $2`,
		func(r *row) error { p = shared.ScanPolicy(r); p.Source = r.Text(); return nil }, t.tenant, version)
	return p, err
}

// ListPolicies lists all versions, newest first, without their source.
func (t *readTx) ListPolicies() (list []*gatehouse.PolicyVersion, err error) {
	err = t.each(`SELECT `+shared.PolicyColumns+policyTables+`WHERE v.tenant = $1 ORDER BY v.version DESC`,
		func(r *row) error { list = append(list, shared.ScanPolicy(r)); return nil }, t.tenant)
	return list, err
}

// InsertPolicy stores the next version and activates it, under a lock on the tenant's policies.
func (t *tx) InsertPolicy(p *gatehouse.PolicyVersion) (version int, err error) {
	if err := t.checkTenant(p.Tenant); err != nil {
		return 0, err
	}
	t.wrote = true
	err = t.lockAndRead(
		[]query{lockFor("policy", p.Tenant)},
		ask(
			`INSERT INTO policy_version (tenant, version, source, sha256, applied_by, applied_at, action_id)
SELECT $1, coalesce((SELECT version FROM policy_version WHERE tenant = $1 ORDER BY version DESC LIMIT 1), 0) + 1, $2, $3, $4, $5, $6
RETURNING version`,
			func(r *row) error { version = int(r.Int()); return nil }, p.Tenant, p.Source, p.SHA256, p.AppliedBy,
			p.AppliedAt, p.ActionID))
	if err != nil {
		return 0, err
	}
	return version, t.ActivatePolicy(version)
}

// ActivatePolicy activates a stored version.
func (t *tx) ActivatePolicy(version int) error {
	return t.write(`
WITH w AS (
  INSERT INTO policy_active (tenant, version)
  SELECT tenant, version FROM policy_version WHERE tenant = $1 AND version = $2
  ON CONFLICT (tenant) DO UPDATE SET version = excluded.version
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`, t.tenant, version)
}
