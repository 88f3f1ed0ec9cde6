package shared

import "github.com/gatehouse-dev/gatehouse"

// ListPrincipals lists principals by id, oldest first.
func (t Reads) ListPrincipals(cursor string, limit int) (gatehouse.Page[*gatehouse.Principal], error) {
	l := listing{kind: KindPrincipals, cursor: cursor, limit: limit, filter: []string{t.Tenant()}}
	return page(t, l, ScanPrincipal, func(p *gatehouse.Principal) string { return p.ID }, `
SELECT tenant, id, name, kind, roles, person, sponsor, disabled, created_at, approver_since, groups
FROM principal WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3`)
}

// ListPeople lists the tenant's persons by id.
func (t Reads) ListPeople() ([]*gatehouse.Principal, error) {
	people, err := list(t, ScanPrincipal, `
SELECT tenant, id, name, kind, roles, person, sponsor, disabled, created_at, approver_since, groups
FROM principal WHERE tenant = $1 AND kind = 'person' ORDER BY id`, t.Tenant())
	return append([]*gatehouse.Principal{}, people...), err
}

// InsertPrincipal stores a principal; ErrConflict if the id or name is known.
func (t Writes) InsertPrincipal(p *gatehouse.Principal) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO principal (tenant, id, name, kind, roles, person, sponsor, disabled, created_at, approver_since, groups)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		p.Tenant, p.ID, p.Name, string(p.Kind), EncodeList(p.Roles), p.Person, p.Sponsor, p.Disabled, p.CreatedAt,
		p.ApproverSince, encodeMemberships(p.Groups))
}

// UpdatePrincipal writes all fields except the kind and the creation time.
func (t Writes) UpdatePrincipal(p *gatehouse.Principal) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrNotFound, `
UPDATE principal SET name = $3, roles = $4, person = $5, sponsor = $6, disabled = $7, approver_since = $8, groups = $9
WHERE tenant = $1 AND id = $2`,
		p.Tenant, p.ID, p.Name, EncodeList(p.Roles), p.Person, p.Sponsor, p.Disabled, p.ApproverSince,
		encodeMemberships(p.Groups))
}

func scanKey(r Row) (*gatehouse.Key, error) {
	return &gatehouse.Key{
		Tenant: r.Text(), ID: r.Text(), PrincipalID: r.Text(), Hash: r.Hash(), CreatedAt: r.Time(),
		RevokedAt: r.TimePtr(),
	}, nil
}

// FindKey finds an unrevoked key and its principal, in all tenants.
func (t Reads) FindKey(hash [32]byte) (k *gatehouse.Key, p *gatehouse.Principal, err error) {
	defer t.AllTenants()()
	p, err = find(t, func(r Row) (*gatehouse.Principal, error) {
		k, _ = scanKey(r)
		return ScanPrincipal(r)
	}, `
SELECT k.tenant, k.id, k.principal_id, k.hash, k.created_at, k.revoked_at,
  p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at, p.approver_since, p.groups
FROM api_key k JOIN principal p ON p.tenant = k.tenant AND p.id = k.principal_id
WHERE k.hash = $1 AND k.revoked_at IS NULL`, hash[:])
	return k, p, err
}

// ListKeys lists the keys of a principal, including revoked ones, oldest first.
func (t Reads) ListKeys(principalID string) ([]*gatehouse.Key, error) {
	return list(t, scanKey, `
SELECT tenant, id, principal_id, hash, created_at, revoked_at FROM api_key
WHERE tenant = $1 AND principal_id = $2 ORDER BY id`, t.Tenant(), principalID)
}

// FindKeyByID finds a key, revoked or not.
func (t Reads) FindKeyByID(id string) (*gatehouse.Key, error) {
	return find(t, scanKey, `
SELECT tenant, id, principal_id, hash, created_at, revoked_at FROM api_key WHERE tenant = $1 AND id = $2`,
		t.Tenant(), id)
}

// InsertKey stores a key; ErrConflict if the id or hash is known.
func (t Writes) InsertKey(k *gatehouse.Key) error {
	if err := t.Owns(k.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO api_key (hash, tenant, id, principal_id, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		k.Hash[:], k.Tenant, k.ID, k.PrincipalID, k.CreatedAt, k.RevokedAt)
}

// RevokeKey revokes a key. A second revocation keeps the first time.
func (t Writes) RevokeKey(keyID string) error {
	if _, err := (Reads{t}).FindKeyByID(keyID); err != nil {
		return err
	}
	return t.Write(`UPDATE api_key SET revoked_at = $1 WHERE tenant = $2 AND id = $3 AND revoked_at IS NULL`,
		t.Now(), t.Tenant(), keyID)
}

// FindEditToken finds the hash of a person's edit token.
func (t Reads) FindEditToken(principalID string) ([32]byte, error) {
	return find(t, func(r Row) ([32]byte, error) { return r.Hash(), nil }, `
SELECT hash FROM edit_token WHERE tenant = $1 AND principal_id = $2`, t.Tenant(), principalID)
}

// PutEditToken stores the hash and replaces an earlier one.
func (t Writes) PutEditToken(principalID string, hash [32]byte) error {
	return t.Write(`
INSERT INTO edit_token (tenant, principal_id, hash) VALUES ($1, $2, $3)
ON CONFLICT (tenant, principal_id) DO UPDATE SET hash = excluded.hash`, t.Tenant(), principalID, hash[:])
}

func scanTenant(r Row) (*gatehouse.Tenant, error) {
	return &gatehouse.Tenant{ID: r.Text(), CreatedAt: r.Time()}, nil
}

// FindTenant finds the transaction's tenant.
func (t Reads) FindTenant() (*gatehouse.Tenant, error) {
	return find(t, scanTenant, `SELECT id, created_at FROM tenant WHERE id = $1`, t.Tenant())
}

// ListTenants lists all tenants by id.
func (t Reads) ListTenants() ([]*gatehouse.Tenant, error) {
	defer t.AllTenants()()
	return list(t, scanTenant, `SELECT id, created_at FROM tenant ORDER BY id`)
}

// InsertTenant stores a tenant; ErrConflict if it is known.
func (t Writes) InsertTenant(n *gatehouse.Tenant) error {
	if err := t.Owns(n.ID); err != nil {
		return err
	}
	return t.Write(`INSERT INTO tenant (id, created_at) VALUES ($1, $2)`, n.ID, n.CreatedAt)
}
