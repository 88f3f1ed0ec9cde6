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
		err = t.one(`SELECT p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups FROM principal p WHERE p.tenant = ? AND p.name = ?`,
			func(r *stmt) (err error) { p, err = shared.ScanPrincipal(r); return err }, t.tenant, idOrName)
	}
	return p, err
}

func (t *readTx) principalByID(tenant, id string) (p *gatehouse.Principal, err error) {
	err = t.one(`SELECT p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups FROM principal p WHERE p.tenant = ? AND p.id = ?`,
		func(r *stmt) (err error) { p, err = shared.ScanPrincipal(r); return err }, tenant, id)
	return p, err
}

// InsertPrincipal, UpdatePrincipal, RevokeKey and PutEditToken also drop the caches.

// InsertPrincipal stores a principal.
func (t *tx) InsertPrincipal(p *gatehouse.Principal) error {
	t.w.people.touch()
	return t.Writes.InsertPrincipal(p)
}

// UpdatePrincipal writes all fields except the kind and the creation time.
func (t *tx) UpdatePrincipal(p *gatehouse.Principal) error {
	t.w.people.touch()
	return t.Writes.UpdatePrincipal(p)
}

// RevokeKey revokes a key.
func (t *tx) RevokeKey(keyID string) error {
	t.w.people.touch()
	return t.Writes.RevokeKey(keyID)
}

// PutEditToken stores the hash and replaces an earlier one.
func (t *tx) PutEditToken(principalID string, hash [32]byte) error {
	t.w.people.touch()
	return t.Writes.PutEditToken(principalID, hash)
}

// FindPrincipal of the writer caches its result.
func (t *tx) FindPrincipal(idOrName string) (*gatehouse.Principal, error) {
	return t.w.people.find(t.tenant, idOrName,
		func() (*gatehouse.Principal, error) { return t.readTx.FindPrincipal(idOrName) })
}

// LockPrincipals reads principals; the writer's transaction is the lock.
func (t *tx) LockPrincipals(ids []string) ([]*gatehouse.Principal, error) {
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
	k, p, err = t.Reads.FindKey(hash)
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
	hash, err = t.Reads.FindEditToken(id)
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
// purged yet is replaced; one within its window fails with ErrConflict.
func (t *tx) InsertIdempotency(a *gatehouse.IdempotencyRecord) error {
	if err := t.Owns(a.Tenant); err != nil {
		return err
	}
	return t.guarded(`INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, principal_id, route, key) DO UPDATE
  SET body_hash = excluded.body_hash, created_at = excluded.created_at, body = excluded.body WHERE created_at <= ?`,
		a.Tenant, a.PrincipalID, a.Route, a.Key, a.BodyHash[:], a.CreatedAt, a.Body, t.windowStart())
}
