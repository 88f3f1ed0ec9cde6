package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const sessionColumns = `s.tenant, s.id, s.principal_id, s.method, s.credential, s.user_agent, s.created_at, s.last_seen_at, s.expires_at,
s.revoked_at`

func scanSession(r *stmt) *gatehouse.Session {
	return &gatehouse.Session{
		Tenant: r.text(), ID: r.text(), PrincipalID: r.text(), Method: gatehouse.SignInMethod(r.text()), Credential: r.text(),
		UserAgent: r.text(), CreatedAt: r.time(), LastSeenAt: r.time(), ExpiresAt: r.time(), RevokedAt: r.timePtr(),
	}
}

// FindSession finds a session and its principal, ended or not.
func (t *readTx) FindSession(hash [32]byte) (n *gatehouse.Session, p *gatehouse.Principal, err error) {
	err = t.one(`SELECT `+sessionColumns+`, `+principalColumns+` FROM session s
JOIN principal p ON p.tenant = s.tenant AND p.id = s.principal_id WHERE s.hash = ?`,
		func(r *stmt) (err error) {
			n = scanSession(r)
			p, err = scanPrincipal(r)
			return err
		}, hash[:])
	return n, p, err
}

// FindSessionByID finds a session, ended or not.
func (t *readTx) FindSessionByID(tenant, id string) (n *gatehouse.Session, err error) {
	err = t.one(`SELECT `+sessionColumns+` FROM session s WHERE s.tenant = ? AND s.id = ?`,
		func(r *stmt) error { n = scanSession(r); return nil }, tenant, id)
	return n, err
}

// ListSessions lists the newest first.
func (t *readTx) ListSessions(tenant, principalID string, ended bool, cursor string, limit int) (page gatehouse.Page[*gatehouse.Session], err error) {
	filter := shared.SessionFilter(tenant, principalID, ended)
	c, err := parseCursor(cursor, shared.KindSessions, filter...)
	if err != nil {
		return page, err
	}
	var where condition
	where.add("s.tenant = ?", tenant)
	if principalID != "" {
		where.add("s.principal_id = ?", principalID)
	}
	if !ended {
		where.add("s.revoked_at IS NULL AND s.expires_at > ?", t.at)
	}
	if c.ID != "" {
		where.add("s.id < ?", c.ID)
	}
	limit = pageLimit(limit)
	page.Items = []*gatehouse.Session{}
	err = t.each(`SELECT `+sessionColumns+` FROM session s WHERE `+where.sql()+` ORDER BY s.id DESC LIMIT ?`,
		func(r *stmt) error { page.Items = append(page.Items, scanSession(r)); return nil }, append(where.args, limit+1)...)
	return finish(page, limit, func(n *gatehouse.Session) cursorAt { return cursorAt{ID: n.ID} }, shared.KindSessions, filter...), err
}

// InsertSession stores a session; a known id or hash, and one of somebody who
// is no person, is ErrConflict.
func (t *tx) InsertSession(n *gatehouse.Session, hash [32]byte) error {
	_, err := t.exec(`INSERT INTO session (hash, tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at,
expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		hash[:], n.Tenant, n.ID, n.PrincipalID, string(n.Method), n.Credential, n.UserAgent, n.CreatedAt, n.LastSeenAt, n.ExpiresAt, n.RevokedAt)
	return err
}

// TouchSession moves the session's end forward.
func (t *tx) TouchSession(tenant, id string, seen, expires time.Time) error {
	_, err := t.exec(`UPDATE session SET last_seen_at = ?1, expires_at = ?2
WHERE tenant = ?3 AND id = ?4 AND revoked_at IS NULL AND last_seen_at < ?1`, seen, expires, tenant, id)
	return err
}

// RevokeSession ends a session. Of a revoked one the first time stays.
func (t *tx) RevokeSession(tenant, id string) error {
	n, err := t.exec(`UPDATE session SET revoked_at = ? WHERE tenant = ? AND id = ? AND revoked_at IS NULL`, t.at, tenant, id)
	if err != nil || n > 0 {
		return err
	}
	if err := t.absent(`SELECT 1 FROM session WHERE tenant = ? AND id = ?`, tenant, id); err != gatehouse.ErrConflict { //nolint:errorlint // own
		return err
	}
	return nil
}

// RevokeSessions ends a principal's live sessions.
func (t *tx) RevokeSessions(tenant, principalID, credential string) (ids []string, err error) {
	err = t.each(`UPDATE session SET revoked_at = ?1 WHERE tenant = ?2 AND principal_id = ?3 AND (?4 = '' OR credential = ?4)
AND revoked_at IS NULL AND expires_at > ?1 RETURNING id`,
		func(r *stmt) error { ids = append(ids, r.text()); return nil }, t.at, tenant, principalID, credential)
	return ids, err
}

// FindSetupLink finds a link, used or not.
func (t *readTx) FindSetupLink(hash [32]byte) (l *gatehouse.SetupLink, err error) {
	err = t.one(`SELECT hash, tenant, id, principal_id, created_at, expires_at, used_at FROM setup_link WHERE hash = ?`, func(r *stmt) error {
		l = &gatehouse.SetupLink{
			Hash: r.hash(), Tenant: r.text(), ID: r.text(), PrincipalID: r.text(), CreatedAt: r.time(), ExpiresAt: r.time(), UsedAt: r.timePtr(),
		}
		return nil
	}, hash[:])
	return l, err
}

// InsertSetupLink stores a link, and ends the person's others.
func (t *tx) InsertSetupLink(l *gatehouse.SetupLink) error {
	_, err := t.exec(`UPDATE setup_link SET expires_at = ?1 WHERE tenant = ?2 AND principal_id = ?3 AND used_at IS NULL AND expires_at > ?1`,
		t.at, l.Tenant, l.PrincipalID)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO setup_link (hash, tenant, id, principal_id, created_at, expires_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		l.Hash[:], l.Tenant, l.ID, l.PrincipalID, l.CreatedAt, l.ExpiresAt, l.UsedAt)
	return err
}

// UseSetupLink uses a link up.
func (t *tx) UseSetupLink(tenant, id string) error {
	return t.guarded(`UPDATE setup_link SET used_at = ? WHERE tenant = ? AND id = ? AND used_at IS NULL`, t.at, tenant, id)
}

// PurgeSessions deletes what has been over for long: step-ups first, since
// they belong to sessions.
func (t *tx) PurgeSessions(olderThan time.Time, limit int) (int, error) {
	total := 0
	for _, sql := range []string{
		`DELETE FROM step_up WHERE (tenant, id) IN (SELECT tenant, id FROM step_up WHERE at < ?1 LIMIT ?2)`,
		`DELETE FROM session WHERE hash IN (SELECT hash FROM session s WHERE coalesce(revoked_at, expires_at) < ?1
  AND NOT EXISTS (SELECT 1 FROM step_up u WHERE u.tenant = s.tenant AND u.session_id = s.id) LIMIT ?2)`,
		`DELETE FROM setup_link WHERE hash IN (SELECT hash FROM setup_link WHERE coalesce(used_at, expires_at) < ?1 LIMIT ?2)`,
	} {
		n, err := t.exec(sql, olderThan, limit-total)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
