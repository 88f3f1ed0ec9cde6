package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectSecret = `SELECT s.tenant, s.name, s.version, s.set_at, s.set_by, coalesce(p.name, s.set_by), s.revoked_at, s.revoked_by,
s.used_at, s.sealed, coalesce(s.ring_key, '')
FROM secret s LEFT JOIN principal p ON p.tenant = s.tenant AND p.id = s.set_by WHERE s.tenant = $1`

// ListSecrets lists secrets by name.
func (t *readTx) ListSecrets() (list []*gatehouse.Secret, err error) {
	err = t.each(selectSecret+` ORDER BY s.name`,
		func(r *row) error { list = append(list, shared.ScanSecret(r)); return nil }, t.tenant)
	return list, err
}

// FindSecret finds a secret by name.
func (t *readTx) FindSecret(name string) (s *gatehouse.Secret, err error) {
	err = t.one(selectSecret+` AND s.name = $2`, func(r *row) error { s = shared.ScanSecret(r); return nil }, t.tenant,
		name)
	return s, err
}

// PutSecret stores a value of the next version.
func (t *tx) PutSecret(s *gatehouse.Secret) error {
	if err := t.checkTenant(s.Tenant); err != nil {
		return err
	}
	if s.Version == 1 {
		return t.write(`INSERT INTO secret (tenant, name, version, ring_key, sealed, set_at, set_by, revoked_by)
VALUES ($1, $2, 1, $3, $4, $5, $6, '')`, s.Tenant, s.Name, s.RingKey, s.Sealed, s.SetAt, s.SetBy)
	}
	return t.write(`
WITH w AS (
  UPDATE secret SET version = $3, ring_key = $4, sealed = $5, set_at = $6, set_by = $7, revoked_at = NULL,
  revoked_by = '' WHERE tenant = $1 AND name = $2 AND version = $3 - 1
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		s.Tenant, s.Name, s.Version, s.RingKey, s.Sealed, s.SetAt, s.SetBy)
}

// RevokeSecret deletes a value; ErrConflict if there is none.
func (t *tx) RevokeSecret(name, by string) error {
	return t.write(`
WITH w AS (
  UPDATE secret SET sealed = NULL, ring_key = NULL, revoked_at = $3, revoked_by = $4
  WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`, t.tenant, name, t.Now(), by)
}

// UseSecret stores the time of the last use.
func (t *tx) UseSecret(name string, at time.Time) error {
	return t.write(`UPDATE secret SET used_at = $3 WHERE tenant = $1 AND name = $2 AND (used_at IS NULL OR used_at < $3)`,
		t.tenant, name, at)
}

// ResealRingKey stores a key as sealed under another master key.
func (t *tx) ResealRingKey(id, from string, sealed []byte, to string) error {
	return t.write(`
WITH w AS (
  UPDATE ring_key SET sealed = $3, master = $4 WHERE tenant = $1 AND id = $2 AND master = $5
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		t.tenant, id, sealed, to, from)
}

// RingKeysUnder lists keys in use that are sealed under a master key, of all tenants.
func (t *readTx) RingKeysUnder(
	purpose gatehouse.RingPurpose, master string, limit int,
) (list []*gatehouse.RingKey, err error) {
	defer t.useAllTenants()()
	err = t.each(selectRingKey+`purpose = $1 AND retired_at IS NULL AND master = $2 ORDER BY created_at LIMIT $3`,
		func(r *row) error { list = append(list, shared.ScanRingKey(r)); return nil }, string(purpose), master, limit)
	return list, err
}
