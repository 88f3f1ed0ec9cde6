package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const identityColumns = `tenant, issuer, subject, principal_id, created_at`

func scanIdentity(r *row) *gatehouse.ExternalIdentity {
	return &gatehouse.ExternalIdentity{
		Tenant: r.text(), Issuer: r.text(), Subject: r.text(), PrincipalID: r.text(), CreatedAt: r.time(),
	}
}

// FindIdentity finds by issuer and subject.
func (t *readTx) FindIdentity(tenant, issuer, subject string) (i *gatehouse.ExternalIdentity, err error) {
	err = t.one(`SELECT `+identityColumns+` FROM external_identity WHERE tenant = $1 AND issuer = $2 AND subject = $3`,
		func(r *row) error { i = scanIdentity(r); return nil }, tenant, issuer, subject)
	return i, err
}

// ListIdentities lists a principal's.
func (t *readTx) ListIdentities(tenant, principalID string) (list []*gatehouse.ExternalIdentity, err error) {
	err = t.each(`SELECT `+identityColumns+` FROM external_identity WHERE tenant = $1 AND principal_id = $2 ORDER BY issuer, subject`,
		func(r *row) error { list = append(list, scanIdentity(r)); return nil }, tenant, principalID)
	return list, err
}

// InsertIdentity links one; a linked one is ErrConflict.
func (t *tx) InsertIdentity(i *gatehouse.ExternalIdentity) error {
	return t.write(`INSERT INTO external_identity (tenant, issuer, subject, principal_id, created_at) VALUES ($1, $2, $3, $4, $5)`,
		i.Tenant, i.Issuer, i.Subject, i.PrincipalID, i.CreatedAt)
}

// DeleteIdentity unlinks one.
func (t *tx) DeleteIdentity(tenant, issuer, subject string) error {
	return t.write(guarded+`DELETE FROM external_identity WHERE tenant = $1 AND issuer = $2 AND subject = $3`+orMissing, tenant, issuer, subject)
}

const passkeyColumns = `tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at`

func scanPasskey(r *row) *gatehouse.Passkey {
	return &gatehouse.Passkey{
		Tenant: r.text(), ID: r.text(), PrincipalID: r.text(), Name: r.text(), CredentialID: r.blob(), Credential: r.blob(),
		SignCount: uint32(r.int()), CreatedAt: r.time(), LastUsedAt: r.timePtr(),
	}
}

// FindPasskey finds by id.
func (t *readTx) FindPasskey(tenant, id string) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+passkeyColumns+` FROM passkey WHERE tenant = $1 AND id = $2`,
		func(r *row) error { p = scanPasskey(r); return nil }, tenant, id)
	return p, err
}

// FindPasskeyByCredential finds by the authenticator's id.
func (t *readTx) FindPasskeyByCredential(credentialID []byte) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+passkeyColumns+` FROM passkey WHERE credential_id = $1`,
		func(r *row) error { p = scanPasskey(r); return nil }, credentialID)
	return p, err
}

// ListPasskeys lists a principal's, the oldest first.
func (t *readTx) ListPasskeys(tenant, principalID string) (list []*gatehouse.Passkey, err error) {
	err = t.each(`SELECT `+passkeyColumns+` FROM passkey WHERE tenant = $1 AND principal_id = $2 ORDER BY id`,
		func(r *row) error { list = append(list, scanPasskey(r)); return nil }, tenant, principalID)
	return list, err
}

// InsertPasskey stores one; a known id or credential is ErrConflict.
func (t *tx) InsertPasskey(p *gatehouse.Passkey) error {
	return t.write(`INSERT INTO passkey (tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		p.Tenant, p.ID, p.PrincipalID, p.Name, p.CredentialID, p.Credential, int64(p.SignCount), p.CreatedAt, p.LastUsedAt)
}

// UsePasskey stores what a use changed.
func (t *tx) UsePasskey(tenant, id string, credential []byte, signCount, from uint32) error {
	return t.write(guarded+`UPDATE passkey SET credential = $3, sign_count = $4, last_used_at = $5
WHERE tenant = $1 AND id = $2 AND sign_count = $6`+orConflict, tenant, id, credential, int64(signCount), t.Now(), int64(from))
}

// DeletePasskey removes one.
func (t *tx) DeletePasskey(tenant, id string) error {
	return t.write(guarded+`DELETE FROM passkey WHERE tenant = $1 AND id = $2`+orMissing, tenant, id)
}

// InsertCeremony stores one, and deletes what is over.
func (t *tx) InsertCeremony(c *gatehouse.Ceremony) error {
	err := t.write(`DELETE FROM ceremony WHERE hash IN (
  SELECT hash FROM ceremony WHERE expires_at <= $1 ORDER BY expires_at LIMIT 16 FOR UPDATE SKIP LOCKED)`, t.Now())
	if err != nil {
		return err
	}
	return t.write(`INSERT INTO ceremony (hash, tenant, session_id, data, expires_at) VALUES ($1, $2, $3, $4, $5)`,
		c.Hash[:], c.Tenant, c.SessionID, c.Data, c.ExpiresAt)
}

// TakeCeremony takes one out.
func (t *tx) TakeCeremony(hash [32]byte) (c *gatehouse.Ceremony, err error) {
	err = t.each(`DELETE FROM ceremony WHERE hash = $1 AND expires_at > $2 RETURNING hash, tenant, session_id, data, expires_at`,
		func(r *row) error {
			c = &gatehouse.Ceremony{Hash: r.hash(), Tenant: r.text(), SessionID: r.text(), Data: r.blob(), ExpiresAt: r.time()}
			return nil
		}, hash[:], t.Now())
	if err == nil && c == nil {
		return nil, gatehouse.ErrNotFound
	}
	t.wrote = t.wrote || err == nil
	return c, err
}

// FindStepUp finds the newest open one.
func (t *readTx) FindStepUp(tenant, sessionID, actionID string, digest gatehouse.Digest, since time.Time) (u *gatehouse.StepUp, err error) {
	err = t.one(`SELECT tenant, id, session_id, action_id, digest, method, at, used_at FROM step_up
WHERE tenant = $1 AND session_id = $2 AND action_id = $3 AND digest = $4 AND used_at IS NULL AND at > $5 ORDER BY id DESC LIMIT 1`,
		func(r *row) error {
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
	return t.write(`INSERT INTO step_up (tenant, id, session_id, action_id, digest, method, at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		u.Tenant, u.ID, u.SessionID, u.ActionID, string(u.Digest), string(u.Method), u.At, u.UsedAt)
}

// UseStepUp uses one up.
func (t *tx) UseStepUp(tenant, id string) error {
	return t.write(guarded+`UPDATE step_up SET used_at = $3 WHERE tenant = $1 AND id = $2 AND used_at IS NULL`+orConflict, tenant, id, t.Now())
}
