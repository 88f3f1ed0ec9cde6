package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindIdentity finds an identity by issuer and subject.
func (t *readTx) FindIdentity(issuer, subject string) (i *gatehouse.ExternalIdentity, err error) {
	err = t.one(`SELECT `+shared.IdentityColumns+` FROM external_identity
WHERE tenant = $1 AND issuer = $2 AND subject = $3`,
		func(r *row) error { i = shared.ScanIdentity(r); return nil }, t.tenant, issuer, subject)
	return i, err
}

// ListIdentities lists the identities of a principal.
func (t *readTx) ListIdentities(principalID string) (list []*gatehouse.ExternalIdentity, err error) {
	err = t.each(`SELECT `+shared.IdentityColumns+` FROM external_identity WHERE tenant = $1 AND principal_id = $2
ORDER BY issuer, subject`,
		func(r *row) error { list = append(list, shared.ScanIdentity(r)); return nil }, t.tenant, principalID)
	return list, err
}

// InsertIdentity links an identity; ErrConflict if it is linked already.
func (t *tx) InsertIdentity(i *gatehouse.ExternalIdentity) error {
	if err := t.checkTenant(i.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO external_identity (tenant, issuer, subject, principal_id, created_at) VALUES ($1, $2, $3, $4, $5)`,
		i.Tenant, i.Issuer, i.Subject, i.PrincipalID, i.CreatedAt)
}

// DeleteIdentity unlinks an identity.
func (t *tx) DeleteIdentity(issuer, subject string) error {
	return t.write(`
WITH w AS (
  DELETE FROM external_identity WHERE tenant = $1 AND issuer = $2 AND subject = $3
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`,
		t.tenant, issuer, subject)
}

// FindPasskey finds a passkey by id.
func (t *readTx) FindPasskey(id string) (p *gatehouse.Passkey, err error) {
	err = t.one(`SELECT `+shared.PasskeyColumns+` FROM passkey WHERE tenant = $1 AND id = $2`,
		func(r *row) error { p = shared.ScanPasskey(r); return nil }, t.tenant, id)
	return p, err
}

// FindPasskeyByCredential finds a passkey by the authenticator's id, in all tenants.
func (t *readTx) FindPasskeyByCredential(credentialID []byte) (p *gatehouse.Passkey, err error) {
	defer t.useAllTenants()()
	err = t.one(`SELECT `+shared.PasskeyColumns+` FROM passkey WHERE credential_id = $1`,
		func(r *row) error { p = shared.ScanPasskey(r); return nil }, credentialID)
	return p, err
}

// ListPasskeys lists the passkeys of a principal, oldest first.
func (t *readTx) ListPasskeys(principalID string) (list []*gatehouse.Passkey, err error) {
	err = t.each(`SELECT `+shared.PasskeyColumns+` FROM passkey WHERE tenant = $1 AND principal_id = $2 ORDER BY id`,
		func(r *row) error { list = append(list, shared.ScanPasskey(r)); return nil }, t.tenant, principalID)
	return list, err
}

// InsertPasskey stores a passkey; ErrConflict if the id or the credential is known.
func (t *tx) InsertPasskey(p *gatehouse.Passkey) error {
	if err := t.checkTenant(p.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO passkey (tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		p.Tenant, p.ID, p.PrincipalID, p.Name, p.CredentialID, p.Credential, int64(p.SignCount), p.CreatedAt, p.LastUsedAt)
}

// UsePasskey stores the result of a use, guarded by the earlier sign count.
func (t *tx) UsePasskey(id string, credential []byte, signCount, from uint32) error {
	return t.write(`
WITH w AS (
  UPDATE passkey SET credential = $3, sign_count = $4, last_used_at = $5
  WHERE tenant = $1 AND id = $2 AND sign_count = $6
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		t.tenant, id, credential, int64(signCount), t.Now(), int64(from))
}

// DeletePasskey deletes a passkey.
func (t *tx) DeletePasskey(id string) error {
	return t.write(`
WITH w AS (
  DELETE FROM passkey WHERE tenant = $1 AND id = $2
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`, t.tenant, id)
}

// InsertCeremony stores a ceremony, and deletes some expired ones.
func (t *tx) InsertCeremony(c *gatehouse.Ceremony) error {
	defer t.useAllTenants()()
	err := t.write(`DELETE FROM ceremony WHERE hash IN (
  SELECT hash FROM ceremony WHERE expires_at <= $1 ORDER BY expires_at LIMIT 16 FOR UPDATE SKIP LOCKED)`, t.Now())
	if err != nil {
		return err
	}
	return t.write(`INSERT INTO ceremony (hash, tenant, session_id, data, expires_at) VALUES ($1, $2, $3, $4, $5)`,
		c.Hash[:], c.Tenant, c.SessionID, c.Data, c.ExpiresAt)
}

// TakeCeremony deletes and returns a ceremony that has not expired.
func (t *tx) TakeCeremony(hash [32]byte) (c *gatehouse.Ceremony, err error) {
	defer t.useAllTenants()()
	err = t.each(`DELETE FROM ceremony WHERE hash = $1 AND expires_at > $2
RETURNING hash, tenant, session_id, data, expires_at`,
		func(r *row) error {
			c = &gatehouse.Ceremony{Hash: r.Hash(), Tenant: r.Text(), SessionID: r.Text(), Data: r.Blob(),
				ExpiresAt: r.Time()}
			return nil
		}, hash[:], t.Now())
	if err == nil && c == nil {
		return nil, gatehouse.ErrNotFound
	}
	t.wrote = t.wrote || err == nil
	return c, err
}

// FindStepUp finds the newest unused step-up.
func (t *readTx) FindStepUp(
	sessionID, actionID string,
	digest gatehouse.Digest,
	since time.Time,
) (u *gatehouse.StepUp, err error) {
	err = t.one(`SELECT tenant, id, session_id, action_id, digest, method, at, used_at FROM step_up
WHERE tenant = $1 AND session_id = $2 AND action_id = $3 AND digest = $4 AND used_at IS NULL AND at > $5
ORDER BY id DESC LIMIT 1`,
		func(r *row) error {
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
	if err := t.checkTenant(u.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO step_up (tenant, id, session_id, action_id, digest, method, at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		u.Tenant, u.ID, u.SessionID, u.ActionID, string(u.Digest), string(u.Method), u.At, u.UsedAt)
}

// UseStepUp marks a step-up as used; ErrConflict if it is used already.
func (t *tx) UseStepUp(id string) error {
	return t.write(`
WITH w AS (
  UPDATE step_up SET used_at = $3
  WHERE tenant = $1 AND id = $2 AND used_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`, t.tenant, id, t.Now())
}
