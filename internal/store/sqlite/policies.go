package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
)

const policyColumns = `v.tenant, v.version, v.sha256, a.version IS NOT NULL, v.applied_by, v.applied_at, v.action_id`

const policyTables = ` FROM policy_version v LEFT JOIN policy_active a ON a.tenant = v.tenant AND a.version = v.version `

func scanPolicy(r *stmt) *gatehouse.PolicyVersion {
	return &gatehouse.PolicyVersion{
		Tenant: r.text(), Version: int(r.int()), SHA256: r.text(), Active: r.bool(), AppliedBy: r.text(), AppliedAt: r.time(), ActionID: r.text(),
	}
}

// ActivePolicy finds the version that is in force.
func (t *readTx) ActivePolicy(tenant string) (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+policyColumns+`, v.source FROM policy_active a
JOIN policy_version v ON v.tenant = a.tenant AND v.version = a.version WHERE a.tenant = ?`,
		func(r *stmt) error { p = scanPolicy(r); p.Source = r.text(); return nil }, tenant)
	return p, err
}

// ActivePolicyVersion is its number; 0 for none.
func (t *readTx) ActivePolicyVersion(tenant string) (int, error) {
	n, err := t.number(`SELECT version FROM policy_active WHERE tenant = ?`, tenant)
	return int(n), err
}

// ActivePolicyVersion is known to the writer until it puts another in force.
func (t *tx) ActivePolicyVersion(tenant string) (int, error) {
	return t.w.actives.find(tenant, func() (int, error) { return t.readTx.ActivePolicyVersion(tenant) })
}

// FindPolicy finds by number.
func (t *readTx) FindPolicy(tenant string, version int) (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+policyColumns+`, v.source`+policyTables+`WHERE v.tenant = ? AND v.version = ?`,
		func(r *stmt) error { p = scanPolicy(r); p.Source = r.text(); return nil }, tenant, version)
	return p, err
}

// ListPolicies lists all versions, the newest first, without their source.
func (t *readTx) ListPolicies(tenant string) (list []*gatehouse.PolicyVersion, err error) {
	err = t.each(`SELECT `+policyColumns+policyTables+`WHERE v.tenant = ? ORDER BY v.version DESC`,
		func(r *stmt) error { list = append(list, scanPolicy(r)); return nil }, tenant)
	return list, err
}

// InsertPolicy stores the next version and puts it in force.
func (t *tx) InsertPolicy(p *gatehouse.PolicyVersion) (int, error) {
	last, err := t.number(`SELECT max(version) FROM policy_version WHERE tenant = ?`, p.Tenant)
	if err != nil {
		return 0, err
	}
	version := int(last) + 1
	_, err = t.exec(`INSERT INTO policy_version (tenant, version, source, sha256, applied_by, applied_at, action_id) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		p.Tenant, version, p.Source, p.SHA256, p.AppliedBy, p.AppliedAt, p.ActionID)
	if err != nil {
		return 0, err
	}
	return version, t.ActivatePolicy(p.Tenant, version)
}

// ActivatePolicy puts a stored version in force.
func (t *tx) ActivatePolicy(tenant string, version int) error {
	t.w.actives.touch()
	return t.found(`INSERT INTO policy_active (tenant, version) SELECT tenant, version FROM policy_version WHERE tenant = ? AND version = ?
ON CONFLICT (tenant) DO UPDATE SET version = excluded.version`, tenant, version)
}
