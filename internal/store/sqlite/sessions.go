package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindSession finds a session and its principal, ended or not.
func (t *readTx) FindSession(hash [32]byte) (n *gatehouse.Session, p *gatehouse.Principal, err error) {
	err = t.one(`SELECT `+shared.SessionColumns+`, `+shared.PrincipalColumns+` FROM session s
JOIN principal p ON p.tenant = s.tenant AND p.id = s.principal_id WHERE s.hash = ?`,
		func(r *stmt) (err error) {
			n = shared.ScanSession(r)
			p, err = shared.ScanPrincipal(r)
			return err
		}, hash[:])
	return n, p, err
}

// FindSessionByID finds a session, ended or not.
func (t *readTx) FindSessionByID(id string) (n *gatehouse.Session, err error) {
	err = t.one(`SELECT `+shared.SessionColumns+` FROM session s WHERE s.tenant = ? AND s.id = ?`,
		func(r *stmt) error { n = shared.ScanSession(r); return nil }, t.tenant, id)
	return n, err
}

// ListSessions lists newest first.
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
		where.add("s.revoked_at IS NULL AND s.expires_at > ?", t.at)
	}
	if c.ID != "" {
		where.add("s.id < ?", c.ID)
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.Session{}
	err = t.each(`SELECT `+shared.SessionColumns+` FROM session s WHERE `+where.sql()+` ORDER BY s.id DESC LIMIT ?`,
		func(r *stmt) error { page.Items = append(page.Items, shared.ScanSession(r)); return nil },
		append(where.args, limit+1)...)
	return shared.Finish(page, limit, func(n *gatehouse.Session) shared.Cursor { return shared.Cursor{ID: n.ID} },
		shared.KindSessions, filter...), err
}

// InsertSession stores a session; ErrConflict when its id or hash exists, or
// when the principal is not a person.
func (t *tx) InsertSession(n *gatehouse.Session, hash [32]byte) error {
	if err := t.owns(n.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO session (hash, tenant, id, principal_id, method, credential, user_agent, created_at, last_seen_at,
expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		hash[:], n.Tenant, n.ID, n.PrincipalID, string(n.Method), n.Credential, n.UserAgent, n.CreatedAt, n.LastSeenAt, n.ExpiresAt, n.RevokedAt)
	return err
}

// TouchSession moves a session's expiry forward.
func (t *tx) TouchSession(id string, seen, expires time.Time) error {
	_, err := t.exec(`UPDATE session SET last_seen_at = ?1, expires_at = ?2
WHERE tenant = ?3 AND id = ?4 AND revoked_at IS NULL AND last_seen_at < ?1`, seen, expires, t.tenant, id)
	return err
}

// RevokeSession revokes a session. A revoked session keeps its first revocation
// time.
func (t *tx) RevokeSession(id string) error {
	n, err := t.exec(`UPDATE session SET revoked_at = ? WHERE tenant = ? AND id = ? AND revoked_at IS NULL`,
		t.at, t.tenant, id)
	if err != nil || n > 0 {
		return err
	}
	if err := t.whyUnmatched(`SELECT 1 FROM session WHERE tenant = ? AND id = ?`,
		t.tenant, id); err != gatehouse.ErrConflict { //nolint:errorlint // own
		return err
	}
	return nil
}

// RevokeSessions revokes a principal's live sessions.
func (t *tx) RevokeSessions(principalID, credential string) (ids []string, err error) {
	err = t.each(`UPDATE session SET revoked_at = ?1 WHERE tenant = ?2 AND principal_id = ?3 AND (?4 = '' OR credential = ?4)
AND revoked_at IS NULL AND expires_at > ?1 RETURNING id`,
		func(r *stmt) error { ids = append(ids, r.Text()); return nil }, t.at, t.tenant, principalID, credential)
	return ids, err
}

// FindSetupLink finds a link, used or not.
func (t *readTx) FindSetupLink(hash [32]byte) (l *gatehouse.SetupLink, err error) {
	err = t.one(`SELECT hash, tenant, id, principal_id, created_at, expires_at, used_at FROM setup_link WHERE hash = ?`, func(r *stmt) error {
		l = &gatehouse.SetupLink{
			Hash: r.Hash(), Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), CreatedAt: r.Time(),
			ExpiresAt: r.Time(), UsedAt: r.TimePtr(),
		}
		return nil
	}, hash[:])
	return l, err
}

// InsertSetupLink stores a link and expires the person's other links.
func (t *tx) InsertSetupLink(l *gatehouse.SetupLink) error {
	if err := t.owns(l.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE setup_link SET expires_at = ?1 WHERE tenant = ?2 AND principal_id = ?3 AND used_at IS NULL AND expires_at > ?1`,
		t.at, l.Tenant, l.PrincipalID)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO setup_link (hash, tenant, id, principal_id, created_at, expires_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		l.Hash[:], l.Tenant, l.ID, l.PrincipalID, l.CreatedAt, l.ExpiresAt, l.UsedAt)
	return err
}

// UseSetupLink marks a link as used.
func (t *tx) UseSetupLink(id string) error {
	return t.guarded(`UPDATE setup_link SET used_at = ? WHERE tenant = ? AND id = ? AND used_at IS NULL`,
		t.at, t.tenant, id)
}

// PurgeSessions deletes sessions that ended long ago, and before them their
// step-ups, which refer to them.
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
