package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindSession finds a session and its principal, ended or not.
func (t *readTx) FindSession(hash [32]byte) (n *gatehouse.Session, p *gatehouse.Principal, err error) {
	defer t.useAllTenants()()
	err = t.one(`SELECT `+shared.SessionColumns+`, `+shared.PrincipalColumns+` FROM session s
JOIN principal p ON p.tenant = s.tenant AND p.id = s.principal_id WHERE s.hash = $1`,
		func(r *row) (err error) {
			n = shared.ScanSession(r)
			p, err = shared.ScanPrincipal(r)
			return err
		}, hash[:])
	return n, p, err
}

// FindSessionByID finds a session, ended or not.
func (t *readTx) FindSessionByID(id string) (n *gatehouse.Session, err error) {
	err = t.one(`SELECT `+shared.SessionColumns+` FROM session s WHERE s.tenant = $1 AND s.id = $2`,
		func(r *row) error { n = shared.ScanSession(r); return nil }, t.tenant, id)
	return n, err
}

// ListSessions lists sessions, newest first.
func (t *readTx) ListSessions(principalID string, ended bool, cursor string, limit int) (page gatehouse.Page[*gatehouse.Session], err error) {
	filter := shared.SessionFilter(t.tenant, principalID, ended)
	c, err := shared.ParseCursor(cursor, shared.KindSessions, filter...)
	if err != nil {
		return page, err
	}
	var where condition
	where.add("s.tenant = ?", t.tenant)
	if principalID != "" {
		where.add("s.principal_id = ?", principalID)
	}
	if !ended {
		where.add("s.revoked_at IS NULL AND s.expires_at > ?", t.Now())
	}
	if c.ID != "" {
		where.add("s.id < ?", c.ID)
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.Session{}
	sql := `SELECT ` + shared.SessionColumns + ` FROM session s WHERE ` + where.sql() + where.number(
		` ORDER BY s.id DESC LIMIT ?`,
		limit+1,
	)
	err = t.each(sql,
		func(r *row) error { page.Items = append(page.Items, shared.ScanSession(r)); return nil }, where.args...)
	return shared.Finish(page, limit, func(n *gatehouse.Session) shared.Cursor { return shared.Cursor{ID: n.ID} },
		shared.KindSessions, filter...), err
}

// InsertSession stores a session; ErrConflict if the id or hash is known, or if the principal
// is not a person.
func (t *tx) InsertSession(n *gatehouse.Session, hash [32]byte) error {
	if err := t.checkTenant(n.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO session (hash, tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at,
expires_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		hash[:], n.Tenant, n.ID, n.PrincipalID, string(n.Method), n.Credential, n.UserAgent, n.CreatedAt, n.LastSeenAt, n.ExpiresAt, n.RevokedAt)
}

// TouchSession moves the end of a session forward.
func (t *tx) TouchSession(id string, seen, expires time.Time) error {
	return t.write(`UPDATE session SET last_seen_at = $1, expires_at = $2
WHERE tenant = $3 AND id = $4 AND revoked_at IS NULL AND last_seen_at < $1`, seen, expires, t.tenant, id)
}

// RevokeSession revokes a session. A second revocation keeps the first time.
func (t *tx) RevokeSession(id string) error {
	return t.write(`
WITH w AS (
  UPDATE session SET revoked_at = $3 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) OR EXISTS (SELECT 1 FROM session WHERE tenant = $1 AND id = $2) THEN 0
  ELSE gatehouse_refuse('GH002') END`, t.tenant, id, t.Now())
}

// RevokeSessions revokes the live sessions of a principal.
func (t *tx) RevokeSessions(principalID, credential string) (ids []string, err error) {
	err = t.each(`UPDATE session SET revoked_at = $1 WHERE tenant = $2 AND principal_id = $3 AND ($4 = '' OR credential = $4)
AND revoked_at IS NULL AND expires_at > $1 RETURNING id`,
		func(r *row) error { ids = append(ids, r.Text()); return nil }, t.Now(), t.tenant, principalID, credential)
	t.wrote = t.wrote || len(ids) > 0
	return ids, err
}

// FindSetupLink finds a link, used or not.
func (t *readTx) FindSetupLink(hash [32]byte) (l *gatehouse.SetupLink, err error) {
	defer t.useAllTenants()()
	err = t.one(`SELECT hash, tenant, id, principal_id, created_at, expires_at, used_at FROM setup_link WHERE hash = $1`, func(r *row) error {
		l = &gatehouse.SetupLink{
			Hash: r.Hash(), Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), CreatedAt: r.Time(),
			ExpiresAt: r.Time(), UsedAt: r.TimePtr(),
		}
		return nil
	}, hash[:])
	return l, err
}

// InsertSetupLink stores a link and ends the person's other links.
func (t *tx) InsertSetupLink(l *gatehouse.SetupLink) error {
	if err := t.checkTenant(l.Tenant); err != nil {
		return err
	}
	err := t.write(`UPDATE setup_link SET expires_at = $1 WHERE tenant = $2 AND principal_id = $3 AND used_at IS NULL AND expires_at > $1`,
		t.Now(), l.Tenant, l.PrincipalID)
	if err != nil {
		return err
	}
	return t.write(`INSERT INTO setup_link (hash, tenant, id, principal_id, created_at, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		l.Hash[:], l.Tenant, l.ID, l.PrincipalID, l.CreatedAt, l.ExpiresAt, l.UsedAt)
}

// UseSetupLink marks a link as used; ErrConflict if it is used already.
func (t *tx) UseSetupLink(id string) error {
	return t.write(`
WITH w AS (
  UPDATE setup_link SET used_at = $3 WHERE tenant = $1 AND id = $2 AND used_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`, t.tenant, id, t.Now())
}

// PurgeSessions deletes sessions, step-ups and links that ended long ago: step-ups first, since
// they refer to sessions. It skips rows that another process is deleting.
func (t *tx) PurgeSessions(olderThan time.Time, limit int) (int, error) {
	defer t.useAllTenants()()
	total := 0
	for _, sql := range []string{
		`WITH old AS MATERIALIZED (SELECT tenant, id FROM step_up WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM step_up u USING old WHERE u.tenant = old.tenant AND u.id = old.id RETURNING 1)
SELECT count(*) FROM d`,
		`WITH old AS MATERIALIZED (SELECT hash FROM session s WHERE coalesce(revoked_at, expires_at) < $1
  AND NOT EXISTS (SELECT 1 FROM step_up u WHERE u.tenant = s.tenant AND u.session_id = s.id) LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM session s USING old WHERE s.hash = old.hash RETURNING 1)
SELECT count(*) FROM d`,
		`WITH old AS MATERIALIZED (SELECT hash FROM setup_link WHERE coalesce(used_at, expires_at) < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM setup_link l USING old WHERE l.hash = old.hash RETURNING 1)
SELECT count(*) FROM d`,
	} {
		n, err := t.number(sql, olderThan, limit-total)
		if err != nil {
			return 0, err
		}
		total += int(n)
	}
	t.wrote = t.wrote || total > 0
	return total, nil
}
