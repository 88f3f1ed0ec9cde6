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

// named collects the rows of findNamed: a match by id wins over a match by name.
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

// LockPrincipals reads principals and locks them against change, in order of id.
func (t *tx) LockPrincipals(ids []string) ([]*gatehouse.Principal, error) {
	list := make([]*gatehouse.Principal, 0, len(ids))
	err := t.lockAndRead(
		[]query{ask(`SELECT p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups FROM principal p
WHERE p.tenant = $1 AND p.id = ANY($2) ORDER BY p.id FOR SHARE`,
			func(r *row) error {
				p, err := shared.ScanPrincipal(r)
				list = append(list, p)
				return err
			}, t.tenant, ids)})
	return list, err
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
  SELECT * FROM principal WHERE tenant = k.tenant AND id = k.principal_id FOR SHARE /* SKIP LOCKED */
) p
LEFT JOIN LATERAL (
  SELECT * FROM edit_token WHERE tenant = p.tenant AND principal_id = p.id OFFSET 0
) e ON true`)

// idempotencyName names a stored answer.
type idempotencyName struct{ Tenant, PrincipalID, Route, Key string }

var findAnswers = reads[idempotencyName](`
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

// idempotencyRow is an answer to store. An earlier answer from after WindowStart is kept.
type idempotencyRow struct {
	gatehouse.IdempotencyRecord
	WindowStart time.Time
}

// insertAnswers stores answers, each in place of an earlier answer from before the window.
var insertAnswers = writes[idempotencyRow](rankAnswer, "", `
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
	if err := t.Owns(a.Tenant); err != nil {
		return err
	}
	return insertAnswers.write(t, idempotencyRow{*a, t.windowStart()})
}
