package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindIdentity finds by issuer and subject.
func (t *readTx) FindIdentity(issuer, subject string) (i *gatehouse.ExternalIdentity, err error) {
	err = t.one(`SELECT `+shared.IdentityColumns+` FROM external_identity
WHERE tenant = ? AND issuer = ? AND subject = ?`,
		func(r *stmt) error { i = shared.ScanIdentity(r); return nil }, t.tenant, issuer, subject)
	return i, err
}

// ListIdentities lists the linked identities of a principal.
func (t *readTx) ListIdentities(principalID string) (list []*gatehouse.ExternalIdentity, err error) {
	err = t.each(`SELECT `+shared.IdentityColumns+` FROM external_identity WHERE tenant = ? AND principal_id = ?
ORDER BY issuer, subject`,
		func(r *stmt) error { list = append(list, shared.ScanIdentity(r)); return nil }, t.tenant, principalID)
	return list, err
}

// InsertIdentity links an identity; ErrConflict when it is already linked.
func (t *tx) InsertIdentity(i *gatehouse.ExternalIdentity) error {
	if err := t.owns(i.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO external_identity (tenant, issuer, subject, principal_id, created_at) VALUES (?, ?, ?, ?, ?)`,
		i.Tenant, i.Issuer, i.Subject, i.PrincipalID, i.CreatedAt)
	return err
}

// DeleteIdentity unlinks an identity.
func (t *tx) DeleteIdentity(issuer, subject string) error {
	return t.found(`DELETE FROM external_identity WHERE tenant = ? AND issuer = ? AND subject = ?`,
		t.tenant, issuer, subject)
}

// FindPasskey finds by id.
func (t *readTx) FindPasskey(id string) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+shared.PasskeyColumns+` FROM passkey WHERE tenant = ? AND id = ?`,
		func(r *stmt) error { p = shared.ScanPasskey(r); return nil }, t.tenant, id)
	return p, err
}

// FindPasskeyByCredential finds by the authenticator's id.
func (t *readTx) FindPasskeyByCredential(credentialID []byte) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+shared.PasskeyColumns+` FROM passkey WHERE credential_id = ?`,
		func(r *stmt) error { p = shared.ScanPasskey(r); return nil }, credentialID)
	return p, err
}

// ListPasskeys lists a principal's passkeys, oldest first.
func (t *readTx) ListPasskeys(principalID string) (list []*gatehouse.Passkey, err error) {
	err = t.each(`SELECT `+shared.PasskeyColumns+` FROM passkey WHERE tenant = ? AND principal_id = ? ORDER BY id`,
		func(r *stmt) error { list = append(list, shared.ScanPasskey(r)); return nil }, t.tenant, principalID)
	return list, err
}

// InsertPasskey stores a passkey; ErrConflict when its id or credential exists.
func (t *tx) InsertPasskey(p *gatehouse.Passkey) error {
	if err := t.owns(p.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO passkey (tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Tenant, p.ID, p.PrincipalID, p.Name, p.CredentialID, p.Credential, int64(p.SignCount), p.CreatedAt, p.LastUsedAt)
	return err
}

// UsePasskey stores the credential and the signature counter after a use.
func (t *tx) UsePasskey(id string, credential []byte, signCount, from uint32) error {
	return t.guarded(`UPDATE passkey SET credential = ?, sign_count = ?, last_used_at = ?
WHERE tenant = ? AND id = ? AND sign_count = ?`,
		credential, int64(signCount), t.at, t.tenant, id, int64(from))
}

// DeletePasskey deletes a passkey.
func (t *tx) DeletePasskey(id string) error {
	return t.found(`DELETE FROM passkey WHERE tenant = ? AND id = ?`, t.tenant, id)
}

// InsertCeremony stores a ceremony and deletes expired ones.
func (t *tx) InsertCeremony(c *gatehouse.Ceremony) error {
	_, err := t.exec(`DELETE FROM ceremony WHERE hash IN (SELECT hash FROM ceremony WHERE expires_at <= ?
ORDER BY expires_at LIMIT 16)`, t.at)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO ceremony (hash, tenant, session_id, data, expires_at) VALUES (?, ?, ?, ?, ?)`,
		c.Hash[:], c.Tenant, c.SessionID, c.Data, c.ExpiresAt)
	return err
}

// TakeCeremony returns a ceremony and deletes it.
func (t *tx) TakeCeremony(hash [32]byte) (c *gatehouse.Ceremony, err error) {
	err = t.each(`DELETE FROM ceremony WHERE hash = ? AND expires_at > ?
RETURNING hash, tenant, session_id, data, expires_at`,
		func(r *stmt) error {
			c = &gatehouse.Ceremony{Hash: r.Hash(), Tenant: r.Text(), SessionID: r.Text(), Data: r.Blob(),
				ExpiresAt: r.Time()}
			return nil
		}, hash[:], t.at)
	if err == nil && c == nil {
		err = gatehouse.ErrNotFound
	}
	return c, err
}

// FindStepUp finds the newest unused step-up.
func (t *readTx) FindStepUp(
	sessionID, actionID string,
	digest gatehouse.Digest,
	since time.Time,
) (u *gatehouse.StepUp, err error) {
	err = t.one(`SELECT tenant, id, session_id, action_id, digest, method, at, used_at FROM step_up
WHERE tenant = ? AND session_id = ? AND action_id = ? AND digest = ? AND used_at IS NULL AND at > ?
ORDER BY id DESC LIMIT 1`,
		func(r *stmt) error {
			u = &gatehouse.StepUp{
				Tenant: r.Text(), ID: r.Text(), SessionID: r.Text(), ActionID: r.Text(),
				Digest: gatehouse.Digest(r.Text()),
				Method: gatehouse.StepUpMethod(r.Text()), At: r.Time(), UsedAt: r.TimePtr(),
			}
			return nil
		}, t.tenant, sessionID, actionID, string(digest), since)
	return u, err
}

// InsertStepUp stores a step-up.
func (t *tx) InsertStepUp(u *gatehouse.StepUp) error {
	if err := t.owns(u.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO step_up (tenant, id, session_id, action_id, digest, method, at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		u.Tenant, u.ID, u.SessionID, u.ActionID, string(u.Digest), string(u.Method), u.At, u.UsedAt)
	return err
}

// UseStepUp marks a step-up as used.
func (t *tx) UseStepUp(id string) error {
	return t.guarded(`UPDATE step_up SET used_at = ? WHERE tenant = ? AND id = ? AND used_at IS NULL`,
		t.at, t.tenant, id)
}
