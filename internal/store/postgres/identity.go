package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// nameRow names a principal by id or name.
type nameRow struct{ Tenant, Name string }

// findNamed finds principals by id (0 in the column by) and by folded name (1).
var findNamed = reads[nameRow](`
SELECT r.n, p.by, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups
FROM (
  SELECT tenant, ($2::text[])[n] AS name, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT 0 AS by, principal.* FROM principal WHERE tenant = r.tenant AND id = r.name
  UNION ALL SELECT 1, principal.* FROM principal WHERE tenant = r.tenant AND folded = lower(r.name COLLATE "C")
  OFFSET 0
) p`)

// FindPrincipal finds a principal by id, or else by name.
func (t *readTx) FindPrincipal(idOrName string) (p *gatehouse.Principal, err error) {
	var n named
	if err = t.read(findNamed.ask(n.scan, nameRow{t.tenant, idOrName})); err == nil && n.principal == nil {
		err = gatehouse.ErrNotFound
	}
	return n.principal, err
}

// named collects the rows of findNamed: an id precedes a name.
type named struct {
	principal *gatehouse.Principal
	byID      bool
}

func (n *named) scan(r *row) error {
	byID := r.Int() == 0
	p, err := shared.ScanPrincipal(r)
	if !n.byID {
		n.principal, n.byID = p, byID
	}
	return err
}

// ListPrincipals lists principals by id, oldest first.
func (t *readTx) ListPrincipals(cursor string, limit int) (page gatehouse.Page[*gatehouse.Principal], err error) {
	c, err := shared.ParseCursor(cursor, shared.KindPrincipals, t.tenant)
	if err != nil {
		return page, err
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.Principal{}
	err = t.each(`SELECT `+shared.PrincipalColumns+` FROM principal p WHERE p.tenant = $1 AND p.id > $2
ORDER BY p.id LIMIT $3`, func(r *row) error {
		p, err := shared.ScanPrincipal(r)
		page.Items = append(page.Items, p)
		return err
	}, t.tenant, c.ID, limit+1)
	return shared.Finish(page, limit, func(p *gatehouse.Principal) shared.Cursor { return shared.Cursor{ID: p.ID} },
		shared.KindPrincipals, t.tenant), err
}

// InsertPrincipal stores a principal; a known id or name is ErrConflict.
func (t *tx) InsertPrincipal(p *gatehouse.Principal) error {
	if err := t.checkTenant(p.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO principal (tenant, id, name, kind, roles, person, sponsor, disabled, created_at, approver_since, groups)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		p.Tenant, p.ID, p.Name, string(p.Kind), shared.EncodeList(p.Roles), p.Person, p.Sponsor, p.Disabled, p.CreatedAt, p.ApproverSince,
		shared.EncodeMemberships(p.Groups))
}

// UpdatePrincipal writes all fields except the kind and the creation time.
func (t *tx) UpdatePrincipal(p *gatehouse.Principal) error {
	if err := t.checkTenant(p.Tenant); err != nil {
		return err
	}
	return t.write(`
WITH w AS (
  UPDATE principal SET name = $3, roles = $4, person = $5, sponsor = $6, disabled = $7, approver_since = $8,
    groups = $9
  WHERE tenant = $1 AND id = $2
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`,
		p.Tenant, p.ID, p.Name, shared.EncodeList(p.Roles), p.Person, p.Sponsor, p.Disabled,
		p.ApproverSince, shared.EncodeMemberships(p.Groups))
}

// PrincipalsForShare reads principals and locks them against change, in order of id.
func (t *tx) PrincipalsForShare(ids []string) ([]*gatehouse.Principal, error) {
	list := make([]*gatehouse.Principal, 0, len(ids))
	err := t.lockAndRead([]query{ask(`SELECT `+shared.PrincipalColumns+` FROM principal p
WHERE p.tenant = $1 AND p.id = ANY($2) ORDER BY p.id FOR SHARE`,
		func(r *row) error {
			p, err := shared.ScanPrincipal(r)
			list = append(list, p)
			return err
		}, t.tenant, ids)})
	return list, err
}

// FindKey finds an unrevoked key and its principal.
func (t *readTx) FindKey(hash [32]byte) (k *gatehouse.Key, p *gatehouse.Principal, err error) {
	defer t.useAllTenants()()
	err = t.one(`SELECT `+shared.KeyColumns+`, `+shared.PrincipalColumns+` FROM api_key k
JOIN principal p ON p.tenant = k.tenant AND p.id = k.principal_id WHERE k.hash = $1 AND k.revoked_at IS NULL`,
		func(r *row) (err error) {
			k = shared.ScanKey(r)
			p, err = shared.ScanPrincipal(r)
			return err
		}, hash[:])
	return k, p, err
}

// credentialRow is the hash of a key.
type credentialRow struct {
	Tenant string
	Key    [32]byte
}

// findCredentials finds the principals of keys, and their edit tokens.
var findCredentials = reads[credentialRow](`
SELECT r.n, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups, e.hash
FROM (
  SELECT tenant, ($2::bytea[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM api_key WHERE hash = r.key AND tenant = r.tenant AND revoked_at IS NULL OFFSET 0
) k
CROSS JOIN LATERAL (
  SELECT * FROM principal WHERE tenant = k.tenant AND id = k.principal_id OFFSET 0
) p
LEFT JOIN LATERAL (
  SELECT * FROM edit_token WHERE tenant = p.tenant AND principal_id = p.id OFFSET 0
) e ON true`)

// lockCredentials also locks the principals against changes.
var lockCredentials = locks[credentialRow](`
SELECT r.n, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups, e.hash
FROM (
  SELECT tenant, ($2::bytea[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM api_key WHERE hash = r.key AND tenant = r.tenant AND revoked_at IS NULL OFFSET 0
) k
CROSS JOIN LATERAL (
  SELECT * FROM principal WHERE tenant = k.tenant AND id = k.principal_id FOR SHARE
) p
LEFT JOIN LATERAL (
  SELECT * FROM edit_token WHERE tenant = p.tenant AND principal_id = p.id OFFSET 0
) e ON true`, `
SELECT r.n, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups, e.hash
FROM (
  SELECT tenant, ($2::bytea[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM api_key WHERE hash = r.key AND tenant = r.tenant AND revoked_at IS NULL OFFSET 0
) k
CROSS JOIN LATERAL (
  SELECT * FROM principal WHERE tenant = k.tenant AND id = k.principal_id FOR SHARE SKIP LOCKED
) p
LEFT JOIN LATERAL (
  SELECT * FROM edit_token WHERE tenant = p.tenant AND principal_id = p.id OFFSET 0
) e ON true`)

// ListKeys lists the keys of a principal, including revoked ones, oldest first.
func (t *readTx) ListKeys(principalID string) (list []*gatehouse.Key, err error) {
	err = t.each(`SELECT `+shared.KeyColumns+` FROM api_key k WHERE k.tenant = $1 AND k.principal_id = $2
ORDER BY k.id`,
		func(r *row) error { list = append(list, shared.ScanKey(r)); return nil }, t.tenant, principalID)
	return list, err
}

// FindKeyByID finds a key, revoked or not.
func (t *readTx) FindKeyByID(id string) (k *gatehouse.Key, err error) {
	err = t.one(`SELECT `+shared.KeyColumns+` FROM api_key k WHERE k.tenant = $1 AND k.id = $2`,
		func(r *row) error { k = shared.ScanKey(r); return nil }, t.tenant, id)
	return k, err
}

// InsertKey stores a key; a known id or hash is ErrConflict.
func (t *tx) InsertKey(k *gatehouse.Key) error {
	if err := t.checkTenant(k.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO api_key (hash, tenant, id, principal_id, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		k.Hash[:], k.Tenant, k.ID, k.PrincipalID, k.CreatedAt, k.RevokedAt)
}

// RevokeKey revokes a key. A second revocation keeps the first time.
func (t *tx) RevokeKey(keyID string) error {
	return t.write(`
WITH w AS (
  UPDATE api_key SET revoked_at = $3 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) OR EXISTS (SELECT 1 FROM api_key WHERE tenant = $1 AND id = $2) THEN 0
  ELSE gatehouse_refuse('GH002') END`, t.tenant, keyID, t.Now())
}

// FindEditToken finds the hash of a person's edit token.
func (t *readTx) FindEditToken(principalID string) (hash [32]byte, err error) {
	err = t.one(`SELECT hash FROM edit_token WHERE tenant = $1 AND principal_id = $2`,
		func(r *row) error { hash = r.Hash(); return nil }, t.tenant, principalID)
	return hash, err
}

// PutEditToken stores the hash and replaces an earlier one.
func (t *tx) PutEditToken(principalID string, hash [32]byte) error {
	return t.write(`INSERT INTO edit_token (tenant, principal_id, hash) VALUES ($1, $2, $3)
ON CONFLICT (tenant, principal_id) DO UPDATE SET hash = excluded.hash`, t.tenant, principalID, hash[:])
}

// LockFirstPrincipal serializes the creation of a tenant's first principal.
func (t *tx) LockFirstPrincipal() error {
	return t.lockAndRead([]query{lockFor("first principal", t.tenant)})
}

// FindTenant finds the transaction's tenant.
func (t *readTx) FindTenant() (n *gatehouse.Tenant, err error) {
	err = t.one(`SELECT id, created_at FROM tenant WHERE id = $1`,
		func(r *row) error { n = &gatehouse.Tenant{ID: r.Text(), CreatedAt: r.Time()}; return nil }, t.tenant)
	return n, err
}

// ListTenants lists all tenants by id.
func (t *readTx) ListTenants() (list []*gatehouse.Tenant, err error) {
	defer t.useAllTenants()()
	err = t.each(`SELECT id, created_at FROM tenant ORDER BY id`, func(r *row) error {
		list = append(list, &gatehouse.Tenant{ID: r.Text(), CreatedAt: r.Time()})
		return nil
	})
	return list, err
}

// InsertTenant stores a tenant; a known one is ErrConflict.
func (t *tx) InsertTenant(n *gatehouse.Tenant) error {
	if err := t.checkTenant(n.ID); err != nil {
		return err
	}
	return t.write(`INSERT INTO tenant (id, created_at) VALUES ($1, $2)`, n.ID, n.CreatedAt)
}

// answerName names a stored answer.
type answerName struct{ Tenant, PrincipalID, Route, Key string }

var findAnswers = reads[answerName](`
SELECT r.n, i.tenant, i.principal_id, i.route, i.key, i.body_hash, i.created_at, i.body
FROM (
  SELECT tenant, ($2::text[])[n] AS principal_id, ($3::text[])[n] AS route, ($4::text[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $5
) r
CROSS JOIN LATERAL (
  SELECT * FROM idempotency
  WHERE tenant = r.tenant AND principal_id = r.principal_id AND route = r.route AND key = r.key OFFSET 0
) i`)

func scanAnswer(r *row) *gatehouse.IdempotencyRecord {
	return &gatehouse.IdempotencyRecord{
		Tenant: r.Text(), PrincipalID: r.Text(), Route: r.Text(), Key: r.Text(), BodyHash: r.Hash(),
		CreatedAt: r.Time(), Body: r.Blob(),
	}
}

func (t *readTx) windowStart() time.Time { return t.Now().Add(-gatehouse.IdempotencyWindow) }

// answerRow is an answer, and the time from which on an earlier one is kept.
type answerRow struct {
	gatehouse.IdempotencyRecord
	WindowStart time.Time
}

// insertAnswers stores answers, each in place of one from before the window.
var insertAnswers = writes[answerRow](rankAnswer, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS principal_id, ($3::text[])[n] AS route, ($4::text[])[n] AS key,
    ($5::bytea[])[n] AS body_hash, ($6::bytea[])[n] AS body, ($7::bigint[])[n] AS created_at,
    ($8::bigint[])[n] AS window_start, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $9
),
w AS (
  INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body)
  SELECT tenant, principal_id, route, key, body_hash, created_at, body FROM r
  ON CONFLICT (tenant, principal_id, route, key) DO UPDATE
  SET body_hash = excluded.body_hash, created_at = excluded.created_at, body = excluded.body
  WHERE idempotency.created_at <= (SELECT min(window_start) FROM r)
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $9 THEN 0 ELSE gatehouse_refuse('GH001') END`)

// InsertIdempotency stores an answer. It replaces an unpurged answer past its window; within
// the window the result is ErrConflict.
func (t *tx) InsertIdempotency(a *gatehouse.IdempotencyRecord) error {
	if err := t.checkTenant(a.Tenant); err != nil {
		return err
	}
	return insertAnswers.write(t, answerRow{*a, t.windowStart()})
}

// PurgeIdempotency deletes old answers, oldest first. It skips rows that another process is
// deleting.
func (t *tx) PurgeIdempotency(olderThan time.Time, limit int) (int, error) {
	defer t.useAllTenants()()
	n, err := t.number(`WITH old AS MATERIALIZED (
  SELECT seq FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM idempotency i USING old WHERE i.seq = old.seq RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
	t.wrote = t.wrote || n > 0
	return int(n), err
}
