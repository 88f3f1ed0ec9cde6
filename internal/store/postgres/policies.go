package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
)

const policyColumns = `v.tenant, v.version, v.sha256, a.version IS NOT NULL, v.applied_by, v.applied_at, v.action_id`

const policyTables = ` FROM policy_version v LEFT JOIN policy_active a ON a.tenant = v.tenant AND a.version = v.version `

func scanPolicy(r *row) *gatehouse.PolicyVersion {
	return &gatehouse.PolicyVersion{
		Tenant: r.text(), Version: int(r.int()), SHA256: r.text(), Active: r.bool(), AppliedBy: r.text(), AppliedAt: r.time(), ActionID: r.text(),
	}
}

// ActivePolicy finds the version that is in force.
func (t *readTx) ActivePolicy(tenant string) (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+policyColumns+`, v.source FROM policy_active a
JOIN policy_version v ON v.tenant = a.tenant AND v.version = a.version WHERE a.tenant = $1`,
		func(r *row) error { p = scanPolicy(r); p.Source = r.text(); return nil }, tenant)
	return p, err
}

const activeVersion = `SELECT version FROM policy_active WHERE tenant = $1`

// ActivePolicyVersion is its number; 0 for none.
func (t *readTx) ActivePolicyVersion(tenant string) (int, error) {
	n, err := t.number(activeVersion, tenant)
	return int(n), err
}

// FindPolicy finds by number.
func (t *readTx) FindPolicy(tenant string, version int) (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+policyColumns+`, v.source`+policyTables+`WHERE v.tenant = $1 AND v.version = $2`,
		func(r *row) error { p = scanPolicy(r); p.Source = r.text(); return nil }, tenant, version)
	return p, err
}

// ListPolicies lists all versions, the newest first, without their source.
func (t *readTx) ListPolicies(tenant string) (list []*gatehouse.PolicyVersion, err error) {
	err = t.each(`SELECT `+policyColumns+policyTables+`WHERE v.tenant = $1 ORDER BY v.version DESC`,
		func(r *row) error { list = append(list, scanPolicy(r)); return nil }, tenant)
	return list, err
}

// InsertPolicy stores the next version, under a lock of the tenant's policies,
// and puts it in force.
func (t *tx) InsertPolicy(p *gatehouse.PolicyVersion) (version int, err error) {
	t.wrote = true
	t.ahead.forget()
	err = t.locked([]query{lockFor("policy", p.Tenant)}, ask(`INSERT INTO policy_version (tenant, version, source, sha256, applied_by, applied_at, action_id)
SELECT $1, coalesce((SELECT version FROM policy_version WHERE tenant = $1 ORDER BY version DESC LIMIT 1), 0) + 1, $2, $3, $4, $5, $6
RETURNING version`,
		func(r *row) error { version = int(r.int()); return nil }, p.Tenant, p.Source, p.SHA256, p.AppliedBy, p.AppliedAt, p.ActionID))
	if err != nil {
		return 0, err
	}
	return version, t.ActivatePolicy(p.Tenant, version)
}

// ActivatePolicy puts a stored version in force.
func (t *tx) ActivatePolicy(tenant string, version int) error {
	return t.write(guarded+`INSERT INTO policy_active (tenant, version)
SELECT tenant, version FROM policy_version WHERE tenant = $1 AND version = $2
ON CONFLICT (tenant) DO UPDATE SET version = excluded.version`+orMissing, tenant, version)
}
