package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const policyTables = ` FROM policy_version v LEFT JOIN policy_active a ON a.tenant = v.tenant AND a.version = v.version `

// ActivePolicy finds the active version.
func (t *readTx) ActivePolicy() (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+shared.PolicyColumns+`, v.source FROM policy_active a
JOIN policy_version v ON v.tenant = a.tenant AND v.version = a.version WHERE a.tenant = ?`,
		func(r *stmt) error { p = shared.ScanPolicy(r); p.Source = r.Text(); return nil }, t.tenant)
	return p, err
}

// ActivePolicyVersion returns the active version's number; 0 for none.
func (t *readTx) ActivePolicyVersion() (int, error) {
	n, err := t.number(`SELECT version FROM policy_active WHERE tenant = ?`, t.tenant)
	return int(n), err
}

// ActivePolicyVersion of the writer is cached until the writer activates
// another version.
func (t *tx) ActivePolicyVersion() (int, error) {
	return t.w.actives.find(t.tenant, func() (int, error) { return t.readTx.ActivePolicyVersion() })
}

// FindPolicy finds by number.
func (t *readTx) FindPolicy(version int) (p *gatehouse.PolicyVersion, err error) {
	err = t.one(`SELECT `+shared.PolicyColumns+`, v.source`+policyTables+`WHERE v.tenant = ? AND v.version = ?`,
		func(r *stmt) error { p = shared.ScanPolicy(r); p.Source = r.Text(); return nil }, t.tenant, version)
	return p, err
}

// ListPolicies lists all versions without their source, newest first.
func (t *readTx) ListPolicies() (list []*gatehouse.PolicyVersion, err error) {
	err = t.each(`SELECT `+shared.PolicyColumns+policyTables+`WHERE v.tenant = ? ORDER BY v.version DESC`,
		func(r *stmt) error { list = append(list, shared.ScanPolicy(r)); return nil }, t.tenant)
	return list, err
}

// InsertPolicy stores the next version and activates it.
func (t *tx) InsertPolicy(p *gatehouse.PolicyVersion) (int, error) {
	if err := t.owns(p.Tenant); err != nil {
		return 0, err
	}
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
	return version, t.ActivatePolicy(version)
}

// ActivatePolicy activates a stored version.
func (t *tx) ActivatePolicy(version int) error {
	t.w.actives.touch()
	return t.found(`INSERT INTO policy_active (tenant, version) SELECT tenant, version FROM policy_version WHERE tenant = ? AND version = ?
ON CONFLICT (tenant) DO UPDATE SET version = excluded.version`, t.tenant, version)
}
