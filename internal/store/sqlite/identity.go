package sqlite

import (
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindPrincipal finds by id first, then by name.
func (t *readTx) FindPrincipal(idOrName string) (p *gatehouse.Principal, err error) {
	p, err = t.principalByID(t.tenant, idOrName)
	if err == gatehouse.ErrNotFound { //nolint:errorlint // the package's own, unwrapped
		err = t.one(`SELECT `+shared.PrincipalColumns+` FROM principal p WHERE p.tenant = ? AND p.name = ?`,
			func(r *stmt) (err error) { p, err = shared.ScanPrincipal(r); return err }, t.tenant, idOrName)
	}
	return p, err
}

func (t *readTx) principalByID(tenant, id string) (p *gatehouse.Principal, err error) {
	err = t.one(`SELECT `+shared.PrincipalColumns+` FROM principal p WHERE p.tenant = ? AND p.id = ?`,
		func(r *stmt) (err error) { p, err = shared.ScanPrincipal(r); return err }, tenant, id)
	return p, err
}

// ListPrincipals lists by id, oldest first.
func (t *readTx) ListPrincipals(cursor string, limit int) (page gatehouse.Page[*gatehouse.Principal], err error) {
	c, err := shared.ParseCursor(cursor, shared.KindPrincipals, t.tenant)
	if err != nil {
		return page, err
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.Principal{}
	err = t.each(`SELECT `+shared.PrincipalColumns+` FROM principal p WHERE p.tenant = ? AND p.id > ?
ORDER BY p.id LIMIT ?`, func(r *stmt) error {
		p, err := shared.ScanPrincipal(r)
		page.Items = append(page.Items, p)
		return err
	}, t.tenant, c.ID, limit+1)
	return shared.Finish(page, limit, func(p *gatehouse.Principal) shared.Cursor { return shared.Cursor{ID: p.ID} },
		shared.KindPrincipals, t.tenant), err
}

// InsertPrincipal stores a principal; ErrConflict when its id or name exists.
func (t *tx) InsertPrincipal(p *gatehouse.Principal) error {
	if err := t.owns(p.Tenant); err != nil {
		return err
	}
	t.w.people.touch()
	_, err := t.exec(`INSERT INTO principal (tenant, id, name, kind, roles, person, sponsor, disabled, created_at, approver_since, groups)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Tenant, p.ID, p.Name, string(p.Kind), shared.EncodeList(p.Roles), p.Person, p.Sponsor, p.Disabled,
		p.CreatedAt, p.ApproverSince,
		shared.EncodeMemberships(p.Groups))
	return err
}

// UpdatePrincipal writes everything except the kind and the creation time.
func (t *tx) UpdatePrincipal(p *gatehouse.Principal) error {
	if err := t.owns(p.Tenant); err != nil {
		return err
	}
	t.w.people.touch()
	return t.found(`UPDATE principal SET name = ?, roles = ?, person = ?, sponsor = ?, disabled = ?, approver_since = ?, groups = ?
WHERE tenant = ? AND id = ?`,
		p.Name, shared.EncodeList(p.Roles), p.Person, p.Sponsor, p.Disabled, p.ApproverSince,
		shared.EncodeMemberships(p.Groups), p.Tenant, p.ID)
}

// FindPrincipal of the writer caches its result.
func (t *tx) FindPrincipal(idOrName string) (*gatehouse.Principal, error) {
	return t.w.people.find(t.tenant, idOrName, func() (*gatehouse.Principal, error) { return t.readTx.FindPrincipal(idOrName) })
}

// PrincipalsForShare reads principals; the writer's transaction is the lock.
func (t *tx) PrincipalsForShare(ids []string) ([]*gatehouse.Principal, error) {
	list := make([]*gatehouse.Principal, 0, len(ids))
	for _, id := range ids {
		p, err := t.w.people.find(t.tenant, id, func() (*gatehouse.Principal, error) { return t.principalByID(t.tenant, id) })
		switch {
		case err == nil && p.ID == id: // not another principal with this name
			list = append(list, p)
		case err != nil && !errors.Is(err, gatehouse.ErrNotFound):
			return nil, err
		}
	}
	return list, nil
}

// FindKey finds an unrevoked key and its principal.
func (t *readTx) FindKey(hash [32]byte) (k *gatehouse.Key, p *gatehouse.Principal, err error) {
	kept := t.credentialCache()
	var epoch uint64
	if kept != nil {
		if k, p, epoch = kept.key(hash); k != nil {
			return k, p, nil
		}
	}
	err = t.one(`SELECT `+shared.KeyColumns+`, `+shared.PrincipalColumns+` FROM api_key k
JOIN principal p ON p.tenant = k.tenant AND p.id = k.principal_id WHERE k.hash = ? AND k.revoked_at IS NULL`,
		func(r *stmt) (err error) {
			k = shared.ScanKey(r)
			p, err = shared.ScanPrincipal(r)
			return err
		}, hash[:])
	if err == nil && kept != nil {
		kept.keepKey(epoch, k, p)
	}
	return k, p, err
}

// credentialCache returns the credential cache, but only to a View that has read nothing
// yet: an open snapshot may be older than the cache.
func (t *readTx) credentialCache() *credentials {
	if t.c != nil || t.s.writer == nil {
		return nil
	}
	return &t.s.credentials
}

// ListKeys lists a principal's keys, including revoked ones, oldest first.
func (t *readTx) ListKeys(principalID string) (list []*gatehouse.Key, err error) {
	err = t.each(`SELECT `+shared.KeyColumns+` FROM api_key k WHERE k.tenant = ? AND k.principal_id = ? ORDER BY k.id`,
		func(r *stmt) error { list = append(list, shared.ScanKey(r)); return nil }, t.tenant, principalID)
	return list, err
}

// FindKeyByID finds a key, revoked or not.
func (t *readTx) FindKeyByID(id string) (k *gatehouse.Key, err error) {
	err = t.one(`SELECT `+shared.KeyColumns+` FROM api_key k WHERE k.tenant = ? AND k.id = ?`,
		func(r *stmt) error { k = shared.ScanKey(r); return nil }, t.tenant, id)
	return k, err
}

// InsertKey stores a key; ErrConflict when its id or hash exists.
func (t *tx) InsertKey(k *gatehouse.Key) error {
	if err := t.owns(k.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO api_key (hash, tenant, id, principal_id, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?)`,
		k.Hash[:], k.Tenant, k.ID, k.PrincipalID, k.CreatedAt, k.RevokedAt)
	return err
}

// RevokeKey revokes a key. A revoked key keeps its first revocation time.
func (t *tx) RevokeKey(keyID string) error {
	t.w.people.touch()
	n, err := t.exec(`UPDATE api_key SET revoked_at = ? WHERE tenant = ? AND id = ? AND revoked_at IS NULL`,
		t.at, t.tenant, keyID)
	if err != nil || n > 0 {
		return err
	}
	if err := t.whyUnmatched(`SELECT 1 FROM api_key WHERE tenant = ? AND id = ?`,
		t.tenant, keyID); err != gatehouse.ErrConflict { //nolint:errorlint // own
		return err
	}
	return nil
}

// FindEditToken returns the hash of a person's edit token.
func (t *readTx) FindEditToken(id string) (hash [32]byte, err error) {
	kept, of := t.credentialCache(), principalID{t.tenant, id}
	var epoch uint64
	if kept != nil {
		var found bool
		if hash, found, epoch = kept.token(of); found {
			return hash, nil
		}
	}
	err = t.one(`SELECT hash FROM edit_token WHERE tenant = ? AND principal_id = ?`,
		func(r *stmt) error { hash = r.Hash(); return nil }, t.tenant, id)
	if err == nil && kept != nil {
		kept.keepToken(epoch, of, hash)
	}
	return hash, err
}

// credential finds a key's principal in the transaction's tenant, and the
// principal's edit token.
func (t *readTx) credential(hash [32]byte) (p *gatehouse.Principal, editToken [32]byte, err error) {
	_, p, err = t.FindKey(hash)
	if err == nil && p.Tenant != t.tenant {
		return nil, editToken, gatehouse.ErrNotFound
	}
	if err != nil {
		return nil, editToken, err
	}
	if editToken, err = t.FindEditToken(p.ID); errors.Is(err, gatehouse.ErrNotFound) {
		err = nil
	}
	return p, editToken, err
}

// PutEditToken stores the token's hash and replaces an earlier one.
func (t *tx) PutEditToken(principalID string, hash [32]byte) error {
	t.w.people.touch()
	_, err := t.exec(`INSERT INTO edit_token (tenant, principal_id, hash) VALUES (?, ?, ?)
ON CONFLICT (tenant, principal_id) DO UPDATE SET hash = excluded.hash`, t.tenant, principalID, hash[:])
	return err
}

// LockFirstPrincipal does nothing: there is only one writer.
func (t *tx) LockFirstPrincipal() error { return nil }

// FindTenant finds by id.
func (t *readTx) FindTenant() (n *gatehouse.Tenant, err error) {
	err = t.one(`SELECT id, created_at FROM tenant WHERE id = ?`,
		func(r *stmt) error { n = &gatehouse.Tenant{ID: r.Text(), CreatedAt: r.Time()}; return nil }, t.tenant)
	return n, err
}

// ListTenants lists all, by id.
func (t *readTx) ListTenants() (list []*gatehouse.Tenant, err error) {
	err = t.each(`SELECT id, created_at FROM tenant ORDER BY id`, func(r *stmt) error {
		list = append(list, &gatehouse.Tenant{ID: r.Text(), CreatedAt: r.Time()})
		return nil
	})
	return list, err
}

// InsertTenant stores a tenant; ErrConflict when it exists.
func (t *tx) InsertTenant(n *gatehouse.Tenant) error {
	if err := t.owns(n.ID); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO tenant (id, created_at) VALUES (?, ?)`, n.ID, n.CreatedAt)
	return err
}

// answer finds a stored answer that is still within its window.
func (t *readTx) answer(principalID, route, key string) (a *gatehouse.IdempotencyRecord, err error) {
	err = t.one(`SELECT tenant, principal_id, route, key, body_hash, created_at, body FROM idempotency
WHERE tenant = ? AND principal_id = ? AND route = ? AND key = ? AND created_at > ?`, func(r *stmt) error {
		a = &gatehouse.IdempotencyRecord{
			Tenant: r.Text(), PrincipalID: r.Text(), Route: r.Text(), Key: r.Text(), BodyHash: r.Hash(),
			CreatedAt: r.Time(), Body: r.Blob(),
		}
		return nil
	}, t.tenant, principalID, route, key, t.windowStart())
	return a, err
}

func (t *readTx) windowStart() time.Time { return t.at.Add(-gatehouse.IdempotencyWindow) }

// InsertIdempotency stores an answer. An expired answer that has not been
// purged yet is replaced; one within its window is ErrConflict.
func (t *tx) InsertIdempotency(a *gatehouse.IdempotencyRecord) error {
	if err := t.owns(a.Tenant); err != nil {
		return err
	}
	return t.guarded(`INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, principal_id, route, key) DO UPDATE SET body_hash = excluded.body_hash, created_at = excluded.created_at,
  body = excluded.body WHERE created_at <= ?`,
		a.Tenant, a.PrincipalID, a.Route, a.Key, a.BodyHash[:], a.CreatedAt, a.Body, t.windowStart())
}

// PurgeIdempotency deletes old answers, oldest first.
func (t *tx) PurgeIdempotency(olderThan time.Time, limit int) (int, error) {
	return t.exec(`DELETE FROM idempotency WHERE seq IN (SELECT seq FROM idempotency WHERE created_at < ?
ORDER BY created_at LIMIT ?)`,
		olderThan, limit)
}
