package shared

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func scanSession(r Row) (*gatehouse.Session, error) {
	return &gatehouse.Session{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), Method: gatehouse.SignInMethod(r.Text()),
		Credential: r.Text(), UserAgent: r.Text(), CreatedAt: r.Time(), LastSeenAt: r.Time(), ExpiresAt: r.Time(),
		RevokedAt: r.TimePtr(),
	}, nil
}

// FindSession finds a session and its principal, ended or not, in all tenants.
func (t Reads) FindSession(hash [32]byte) (s *gatehouse.Session, p *gatehouse.Principal, err error) {
	defer t.AllTenants()()
	p, err = find(t, func(r Row) (*gatehouse.Principal, error) {
		s, _ = scanSession(r)
		return ScanPrincipal(r)
	}, `
SELECT s.tenant, s.id, s.principal_id, s.method, s.credential, s.user_agent, s.created_at, s.last_seen_at,
  s.expires_at, s.revoked_at,
  p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at, p.approver_since, p.groups
FROM session s JOIN principal p ON p.tenant = s.tenant AND p.id = s.principal_id
WHERE s.hash = $1`, hash[:])
	return s, p, err
}

// FindSessionByID finds a session, ended or not.
func (t Reads) FindSessionByID(id string) (*gatehouse.Session, error) {
	return find(t, scanSession, `
SELECT tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at, expires_at, revoked_at
FROM session WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

// ListSessions lists sessions, newest first. The sessions of all principals and those of one principal have
// different indexes, so there are two statements.
func (t Reads) ListSessions(
	principalID string, ended bool, cursor string, limit int,
) (gatehouse.Page[*gatehouse.Session], error) {
	l := listing{
		kind: KindSessions, cursor: cursor, first: MaxText, limit: limit,
		filter: []string{t.Tenant(), principalID, strconv.FormatBool(ended)},
	}
	id := func(s *gatehouse.Session) string { return s.ID }
	if principalID == "" {
		return page(t, l, scanSession, id, `
SELECT tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at, expires_at, revoked_at
FROM session WHERE tenant = $1 AND id < $2 AND ($4 OR revoked_at IS NULL AND expires_at > $5)
ORDER BY id DESC LIMIT $3`, ended, t.Now())
	}
	return page(t, l, scanSession, id, `
SELECT tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at, expires_at, revoked_at
FROM session
WHERE tenant = $1 AND principal_id = $6 AND id < $2 AND ($4 OR revoked_at IS NULL AND expires_at > $5)
ORDER BY id DESC LIMIT $3`, ended, t.Now(), principalID)
}

// InsertSession stores a session; ErrConflict if the id or hash is known, or if the principal is not a person.
func (t Writes) InsertSession(s *gatehouse.Session, hash [32]byte) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO session (hash, tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at,
  expires_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		hash[:], s.Tenant, s.ID, s.PrincipalID, string(s.Method), s.Credential, s.UserAgent, s.CreatedAt,
		s.LastSeenAt, s.ExpiresAt, s.RevokedAt)
}

// TouchSession stores the last use and the new end of an unrevoked session, unless a later use is stored.
func (t Writes) TouchSession(id string, seen, expires time.Time) error {
	return t.Write(`
UPDATE session SET last_seen_at = $1, expires_at = $2
WHERE tenant = $3 AND id = $4 AND revoked_at IS NULL AND last_seen_at < $1`, seen, expires, t.Tenant(), id)
}

// RevokeSession revokes a session. A second revocation keeps the first time.
func (t Writes) RevokeSession(id string) error {
	if _, err := (Reads{t}).FindSessionByID(id); err != nil {
		return err
	}
	return t.Write(`UPDATE session SET revoked_at = $1 WHERE tenant = $2 AND id = $3 AND revoked_at IS NULL`,
		t.Now(), t.Tenant(), id)
}

// RevokeSessions revokes the sessions of a principal, live or expired, and returns the ids of those that were not
// revoked before. If credential is not "", it revokes only the sessions that began with this credential.
func (t Writes) RevokeSessions(principalID, credential string) (ids []string, err error) {
	err = t.Returning(`
UPDATE session SET revoked_at = $1
WHERE tenant = $2 AND principal_id = $3 AND ($4 = '' OR credential = $4) AND revoked_at IS NULL
RETURNING id`, Append(&ids, scanText), t.Now(), t.Tenant(), principalID, credential)
	return ids, err
}

// FindSetupLink finds a link, used or not, in all tenants.
func (t Reads) FindSetupLink(hash [32]byte) (*gatehouse.SetupLink, error) {
	defer t.AllTenants()()
	return find(t, func(r Row) (*gatehouse.SetupLink, error) {
		return &gatehouse.SetupLink{
			Hash: r.Hash(), Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), CreatedAt: r.Time(),
			ExpiresAt: r.Time(), UsedAt: r.TimePtr(),
		}, nil
	}, `
SELECT hash, tenant, id, principal_id, created_at, expires_at, used_at FROM setup_link WHERE hash = $1`, hash[:])
}

// InsertSetupLink stores a link and ends the person's other links.
func (t Writes) InsertSetupLink(l *gatehouse.SetupLink) error {
	if err := t.Owns(l.Tenant); err != nil {
		return err
	}
	if err := t.EndSetupLinks(l.PrincipalID); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO setup_link (hash, tenant, id, principal_id, created_at, expires_at, used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		l.Hash[:], l.Tenant, l.ID, l.PrincipalID, l.CreatedAt, l.ExpiresAt, l.UsedAt)
}

// EndSetupLinks ends a person's unused links.
func (t Writes) EndSetupLinks(principalID string) error {
	return t.Write(`
UPDATE setup_link SET expires_at = $1
WHERE tenant = $2 AND principal_id = $3 AND used_at IS NULL AND expires_at > $1`,
		t.Now(), t.Tenant(), principalID)
}

// UseSetupLink marks a link as used; ErrConflict if it is used already.
func (t Writes) UseSetupLink(id string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE setup_link SET used_at = $1 WHERE tenant = $2 AND id = $3 AND used_at IS NULL`, t.Now(), t.Tenant(), id)
}
