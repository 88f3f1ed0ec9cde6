package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func scanSecret(r Row) (*gatehouse.Secret, error) {
	return &gatehouse.Secret{
		Tenant: r.Text(), Name: r.Text(), Version: int(r.Int()), SetAt: r.TimePtr(), SetBy: r.Text(),
		SetByName: r.Text(), RevokedAt: r.TimePtr(), RevokedBy: r.Text(), LastUsedAt: r.TimePtr(), Sealed: r.Blob(),
		RingKey: r.Text(),
	}, nil
}

// ListSecrets lists secrets by name.
func (t Reads) ListSecrets() ([]*gatehouse.Secret, error) {
	return list(t, scanSecret, `
SELECT s.tenant, s.name, s.version, s.set_at, s.set_by, coalesce(p.name, s.set_by), s.revoked_at, s.revoked_by,
  s.used_at, s.sealed, coalesce(s.ring_key, '')
FROM secret s LEFT JOIN principal p ON p.tenant = s.tenant AND p.id = s.set_by
WHERE s.tenant = $1 ORDER BY s.name`, t.Tenant())
}

// FindSecret finds a secret by name.
func (t Reads) FindSecret(name string) (*gatehouse.Secret, error) {
	return find(t, scanSecret, `
SELECT s.tenant, s.name, s.version, s.set_at, s.set_by, coalesce(p.name, s.set_by), s.revoked_at, s.revoked_by,
  s.used_at, s.sealed, coalesce(s.ring_key, '')
FROM secret s LEFT JOIN principal p ON p.tenant = s.tenant AND p.id = s.set_by
WHERE s.tenant = $1 AND s.name = $2`, t.Tenant(), name)
}

// PutSecret stores the value of the next version.
func (t Writes) PutSecret(s *gatehouse.Secret) error {
	if err := t.Owns(s.Tenant); err != nil {
		return err
	}
	if s.Version == 1 {
		return t.Write(`
INSERT INTO secret (tenant, name, version, ring_key, sealed, set_at, set_by, revoked_by)
VALUES ($1, $2, 1, $3, $4, $5, $6, '')`, s.Tenant, s.Name, s.RingKey, s.Sealed, s.SetAt, s.SetBy)
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE secret SET version = $3, ring_key = $4, sealed = $5, set_at = $6, set_by = $7, revoked_at = NULL,
  revoked_by = ''
WHERE tenant = $1 AND name = $2 AND version = $3 - 1`,
		s.Tenant, s.Name, s.Version, s.RingKey, s.Sealed, s.SetAt, s.SetBy)
}

// RevokeSecret deletes a value; ErrConflict if there is none.
func (t Writes) RevokeSecret(name, by string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE secret SET sealed = NULL, ring_key = NULL, revoked_at = $3, revoked_by = $4
WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL`, t.Tenant(), name, t.Now(), by)
}

// UseSecret stores the time of the last use, unless a later one is stored.
func (t Writes) UseSecret(name string, at time.Time) error {
	return t.Write(`
UPDATE secret SET used_at = $3 WHERE tenant = $1 AND name = $2 AND (used_at IS NULL OR used_at < $3)`,
		t.Tenant(), name, at)
}
