package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
)

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

// InsertPolicy stores the next version and activates it, under a lock on the tenant's policies.
func (t *tx) InsertPolicy(p *gatehouse.PolicyVersion) (version int, err error) {
	if err := t.Owns(p.Tenant); err != nil {
		return 0, err
	}
	t.wrote = true
	err = t.lockAndRead(
		[]query{lockFor("policy", p.Tenant)},
		ask(
			`INSERT INTO policy_version (tenant, version, source, sha256, applied_by, applied_at, action_id)
SELECT $1, coalesce((SELECT version FROM policy_version WHERE tenant = $1 ORDER BY version DESC LIMIT 1), 0) + 1,
  $2, $3, $4, $5, $6
RETURNING version`,
			func(r *row) error { version = int(r.Int()); return nil }, p.Tenant, p.Source, p.SHA256, p.AppliedBy,
			p.AppliedAt, p.ActionID))
	if err != nil {
		return 0, err
	}
	return version, t.ActivatePolicy(version)
}
