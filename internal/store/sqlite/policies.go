package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
)

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

// InsertPolicy stores the next version and activates it.
func (t *tx) InsertPolicy(p *gatehouse.PolicyVersion) (int, error) {
	if err := t.Owns(p.Tenant); err != nil {
		return 0, err
	}
	last, err := t.number(`SELECT max(version) FROM policy_version WHERE tenant = ?`, p.Tenant)
	if err != nil {
		return 0, err
	}
	version := int(last) + 1
	_, err = t.exec(`INSERT INTO policy_version (tenant, version, source, sha256, applied_by, applied_at, action_id)
VALUES (?, ?, ?, ?, ?, ?, ?)`,
		p.Tenant, version, p.Source, p.SHA256, p.AppliedBy, p.AppliedAt, p.ActionID)
	if err != nil {
		return 0, err
	}
	return version, t.ActivatePolicy(version)
}

// ActivatePolicy activates a stored version, and drops the cached number.
func (t *tx) ActivatePolicy(version int) error {
	t.w.actives.touch()
	return t.Writes.ActivatePolicy(version)
}
