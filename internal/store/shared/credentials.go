package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func scanIdentity(r Row) (*gatehouse.ExternalIdentity, error) {
	return &gatehouse.ExternalIdentity{
		Tenant: r.Text(), Issuer: r.Text(), Subject: r.Text(), PrincipalID: r.Text(), CreatedAt: r.Time(),
	}, nil
}

// FindIdentity finds an identity by issuer and subject.
func (t Reads) FindIdentity(issuer, subject string) (*gatehouse.ExternalIdentity, error) {
	return find(t, scanIdentity, `
SELECT tenant, issuer, subject, principal_id, created_at FROM external_identity
WHERE tenant = $1 AND issuer = $2 AND subject = $3`, t.Tenant(), issuer, subject)
}

// ListIdentities lists the identities of a principal.
func (t Reads) ListIdentities(principalID string) ([]*gatehouse.ExternalIdentity, error) {
	return list(t, scanIdentity, `
SELECT tenant, issuer, subject, principal_id, created_at FROM external_identity
WHERE tenant = $1 AND principal_id = $2 ORDER BY issuer, subject`, t.Tenant(), principalID)
}

// InsertIdentity links an identity; ErrConflict if it is linked already.
func (t Writes) InsertIdentity(i *gatehouse.ExternalIdentity) error {
	if err := t.Owns(i.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO external_identity (tenant, issuer, subject, principal_id, created_at) VALUES ($1, $2, $3, $4, $5)`,
		i.Tenant, i.Issuer, i.Subject, i.PrincipalID, i.CreatedAt)
}

// DeleteIdentity unlinks an identity.
func (t Writes) DeleteIdentity(issuer, subject string) error {
	return t.WriteOrFail(gatehouse.ErrNotFound, `
DELETE FROM external_identity WHERE tenant = $1 AND issuer = $2 AND subject = $3`, t.Tenant(), issuer, subject)
}

func scanPasskey(r Row) (*gatehouse.Passkey, error) {
	return &gatehouse.Passkey{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), Name: r.Text(), CredentialID: r.Blob(),
		Credential: r.Blob(), SignCount: uint32(r.Int()), CreatedAt: r.Time(), LastUsedAt: r.TimePtr(),
	}, nil
}

// FindPasskey finds a passkey by id.
func (t Reads) FindPasskey(id string) (*gatehouse.Passkey, error) {
	return find(t, scanPasskey, `
SELECT tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at
FROM passkey WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

// FindPasskeyByCredential finds a passkey by its credential id, in all tenants.
func (t Reads) FindPasskeyByCredential(credentialID []byte) (*gatehouse.Passkey, error) {
	defer t.AllTenants()()
	return find(t, scanPasskey, `
SELECT tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at
FROM passkey WHERE credential_id = $1`, credentialID)
}

// ListPasskeys lists the passkeys of a principal, oldest first.
func (t Reads) ListPasskeys(principalID string) ([]*gatehouse.Passkey, error) {
	return list(t, scanPasskey, `
SELECT tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at
FROM passkey WHERE tenant = $1 AND principal_id = $2 ORDER BY id`, t.Tenant(), principalID)
}

// InsertPasskey stores a passkey; ErrConflict if the id or the credential is known.
func (t Writes) InsertPasskey(p *gatehouse.Passkey) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO passkey (tenant, id, principal_id, name, credential_id, credential, sign_count, created_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		p.Tenant, p.ID, p.PrincipalID, p.Name, p.CredentialID, p.Credential, int64(p.SignCount), p.CreatedAt,
		p.LastUsedAt)
}

// UsePasskey stores the result of a use; ErrConflict unless the stored sign count is from.
func (t Writes) UsePasskey(id string, credential []byte, signCount, from uint32) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE passkey SET credential = $1, sign_count = $2, last_used_at = $3
WHERE tenant = $4 AND id = $5 AND sign_count = $6`,
		credential, int64(signCount), t.Now(), t.Tenant(), id, int64(from))
}

// DeletePasskey deletes a passkey.
func (t Writes) DeletePasskey(id string) error {
	return t.WriteOrFail(gatehouse.ErrNotFound,
		`DELETE FROM passkey WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

// TakeCeremony deletes and returns a ceremony that has not expired, of any tenant.
func (t Writes) TakeCeremony(hash [32]byte) (c *gatehouse.Ceremony, err error) {
	defer t.AllTenants()()
	err = t.Returning(`
DELETE FROM ceremony WHERE hash = $1 AND expires_at > $2 RETURNING hash, tenant, session_id, data, expires_at`,
		func(r Row) error {
			c = &gatehouse.Ceremony{Hash: r.Hash(), Tenant: r.Text(), SessionID: r.Text(), Data: r.Blob(),
				ExpiresAt: r.Time()}
			return nil
		}, hash[:], t.Now())
	if err == nil && c == nil {
		err = gatehouse.ErrNotFound
	}
	return c, err
}

// FindStepUp finds the newest unused step-up.
func (t Reads) FindStepUp(
	sessionID, actionID string, digest gatehouse.Digest, since time.Time,
) (*gatehouse.StepUp, error) {
	return find(t, func(r Row) (*gatehouse.StepUp, error) {
		return &gatehouse.StepUp{
			Tenant: r.Text(), ID: r.Text(), SessionID: r.Text(), ActionID: r.Text(), Digest: gatehouse.Digest(r.Text()),
			Method: gatehouse.StepUpMethod(r.Text()), At: r.Time(), UsedAt: r.TimePtr(),
		}, nil
	}, `
SELECT tenant, id, session_id, action_id, digest, method, at, used_at FROM step_up
WHERE tenant = $1 AND session_id = $2 AND action_id = $3 AND digest = $4 AND used_at IS NULL AND at > $5
ORDER BY id DESC LIMIT 1`, t.Tenant(), sessionID, actionID, string(digest), since)
}

// InsertStepUp stores a step-up.
func (t Writes) InsertStepUp(u *gatehouse.StepUp) error {
	if err := t.Owns(u.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO step_up (tenant, id, session_id, action_id, digest, method, at, used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		u.Tenant, u.ID, u.SessionID, u.ActionID, string(u.Digest), string(u.Method), u.At, u.UsedAt)
}

// UseStepUp marks a step-up as used; ErrConflict if it is used already.
func (t Writes) UseStepUp(id string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE step_up SET used_at = $1 WHERE tenant = $2 AND id = $3 AND used_at IS NULL`, t.Now(), t.Tenant(), id)
}
