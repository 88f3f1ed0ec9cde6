package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const identityColumns = `tenant, issuer, subject, principal_id, created_at`

func scanIdentity(r *stmt) *gatehouse.ExternalIdentity {
	return &gatehouse.ExternalIdentity{
		Tenant: r.text(), Issuer: r.text(), Subject: r.text(), PrincipalID: r.text(), CreatedAt: r.time(),
	}
}

// FindIdentity finds by issuer and subject.
func (t *readTx) FindIdentity(tenant, issuer, subject string) (i *gatehouse.ExternalIdentity, err error) {
	err = t.one(`SELECT `+identityColumns+` FROM external_identity WHERE tenant = ? AND issuer = ? AND subject = ?`,
		func(r *stmt) error { i = scanIdentity(r); return nil }, tenant, issuer, subject)
	return i, err
}

// ListIdentities lists a principal's.
func (t *readTx) ListIdentities(tenant, principalID string) (list []*gatehouse.ExternalIdentity, err error) {
	err = t.each(`SELECT `+identityColumns+` FROM external_identity WHERE tenant = ? AND principal_id = ? ORDER BY issuer, subject`,
		func(r *stmt) error { list = append(list, scanIdentity(r)); return nil }, tenant, principalID)
	return list, err
}

// InsertIdentity links one; a linked one is ErrConflict.
func (t *tx) InsertIdentity(i *gatehouse.ExternalIdentity) error {
	_, err := t.exec(`INSERT INTO external_identity (tenant, issuer, subject, principal_id, created_at) VALUES (?, ?, ?, ?, ?)`,
		i.Tenant, i.Issuer, i.Subject, i.PrincipalID, i.CreatedAt)
	return err
}

// DeleteIdentity unlinks one.
func (t *tx) DeleteIdentity(tenant, issuer, subject string) error {
	return t.found(`DELETE FROM external_identity WHERE tenant = ? AND issuer = ? AND subject = ?`, tenant, issuer, subject)
}

const passkeyColumns = `tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at`

func scanPasskey(r *stmt) *gatehouse.Passkey {
	return &gatehouse.Passkey{
		Tenant: r.text(), ID: r.text(), PrincipalID: r.text(), Name: r.text(), CredentialID: r.blob(), Credential: r.blob(),
		SignCount: uint32(r.int()), CreatedAt: r.time(), LastUsedAt: r.timePtr(),
	}
}

// FindPasskey finds by id.
func (t *readTx) FindPasskey(tenant, id string) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+passkeyColumns+` FROM passkey WHERE tenant = ? AND id = ?`,
		func(r *stmt) error { p = scanPasskey(r); return nil }, tenant, id)
	return p, err
}

// FindPasskeyByCredential finds by the authenticator's id.
func (t *readTx) FindPasskeyByCredential(credentialID []byte) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+passkeyColumns+` FROM passkey WHERE credential_id = ?`,
		func(r *stmt) error { p = scanPasskey(r); return nil }, credentialID)
	return p, err
}

// ListPasskeys lists a principal's, the oldest first.
func (t *readTx) ListPasskeys(tenant, principalID string) (list []*gatehouse.Passkey, err error) {
	err = t.each(`SELECT `+passkeyColumns+` FROM passkey WHERE tenant = ? AND principal_id = ? ORDER BY id`,
		func(r *stmt) error { list = append(list, scanPasskey(r)); return nil }, tenant, principalID)
	return list, err
}

// InsertPasskey stores one; a known id or credential is ErrConflict.
func (t *tx) InsertPasskey(p *gatehouse.Passkey) error {
	_, err := t.exec(`INSERT INTO passkey (tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Tenant, p.ID, p.PrincipalID, p.Name, p.CredentialID, p.Credential, int64(p.SignCount), p.CreatedAt, p.LastUsedAt)
	return err
}

// UsePasskey stores what a use changed.
func (t *tx) UsePasskey(tenant, id string, credential []byte, signCount, from uint32) error {
	return t.guarded(`UPDATE passkey SET credential = ?, sign_count = ?, last_used_at = ? WHERE tenant = ? AND id = ? AND sign_count = ?`,
		credential, int64(signCount), t.at, tenant, id, int64(from))
}

// DeletePasskey removes one.
func (t *tx) DeletePasskey(tenant, id string) error {
	return t.found(`DELETE FROM passkey WHERE tenant = ? AND id = ?`, tenant, id)
}

// InsertCeremony stores one, and deletes what is over.
func (t *tx) InsertCeremony(c *gatehouse.Ceremony) error {
	_, err := t.exec(`DELETE FROM ceremony WHERE hash IN (SELECT hash FROM ceremony WHERE expires_at <= ? ORDER BY expires_at LIMIT 16)`, t.at)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO ceremony (hash, tenant, session_id, data, expires_at) VALUES (?, ?, ?, ?, ?)`,
		c.Hash[:], c.Tenant, c.SessionID, c.Data, c.ExpiresAt)
	return err
}

// TakeCeremony takes one out.
func (t *tx) TakeCeremony(hash [32]byte) (c *gatehouse.Ceremony, err error) {
	err = t.each(`DELETE FROM ceremony WHERE hash = ? AND expires_at > ? RETURNING hash, tenant, session_id, data, expires_at`,
		func(r *stmt) error {
			c = &gatehouse.Ceremony{Hash: r.hash(), Tenant: r.text(), SessionID: r.text(), Data: r.blob(), ExpiresAt: r.time()}
			return nil
		}, hash[:], t.at)
	if err == nil && c == nil {
		err = gatehouse.ErrNotFound
	}
	return c, err
}

// FindStepUp finds the newest open one.
func (t *readTx) FindStepUp(tenant, sessionID, actionID string, digest gatehouse.Digest, since time.Time) (u *gatehouse.StepUp, err error) {
	err = t.one(`SELECT tenant, id, session_id, action_id, digest, method, at, used_at FROM step_up
WHERE tenant = ? AND session_id = ? AND action_id = ? AND digest = ? AND used_at IS NULL AND at > ? ORDER BY id DESC LIMIT 1`,
		func(r *stmt) error {
			u = &gatehouse.StepUp{
				Tenant: r.text(), ID: r.text(), SessionID: r.text(), ActionID: r.text(), Digest: gatehouse.Digest(r.text()),
				Method: gatehouse.StepUpMethod(r.text()), At: r.time(), UsedAt: r.timePtr(),
			}
			return nil
		}, tenant, sessionID, actionID, string(digest), since)
	return u, err
}

// InsertStepUp stores one.
func (t *tx) InsertStepUp(u *gatehouse.StepUp) error {
	_, err := t.exec(`INSERT INTO step_up (tenant, id, session_id, action_id, digest, method, at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		u.Tenant, u.ID, u.SessionID, u.ActionID, string(u.Digest), string(u.Method), u.At, u.UsedAt)
	return err
}

// UseStepUp uses one up.
func (t *tx) UseStepUp(tenant, id string) error {
	return t.guarded(`UPDATE step_up SET used_at = ? WHERE tenant = ? AND id = ? AND used_at IS NULL`, t.at, tenant, id)
}
