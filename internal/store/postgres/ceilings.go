package postgres

import (
	"hash/fnv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// lockFor locks a name until the end of the transaction. Two names with the same hash wait for
// each other, which is harmless.
func lockFor(name ...string) query {
	return ask(`SELECT pg_advisory_xact_lock($1)`, nil, hashOf(name...))
}

func hashOf(name ...string) int64 {
	h := fnv.New64a()
	for _, part := range name {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return int64(h.Sum64())
}

// ceilingLock is the hash of a ceiling and scope of a tenant.
type ceilingLock struct{ Hash int64 }

// lockCeilings locks ceilings, in one order for all transactions.
var lockCeilings = writes[ceilingLock](rankLockCeiling, "", `
SELECT pg_advisory_xact_lock(hash)
FROM (SELECT DISTINCT hash FROM unnest($1::bigint[]) AS hash ORDER BY hash LIMIT $2) r`).withDistinct()

// claimsRow is the claims of an action, encoded.
type claimsRow struct {
	Tenant, ActionID, Claims string
	CountedAt                int64
	ReservedAt               time.Time
}

// reserveClaims stores claims in place of earlier ones. A trigger adds them to the sums.
var reserveClaims = writes[claimsRow](rankClaims, "ActionID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS action_id, ($3::text[])[n] AS claims, ($4::bigint[])[n] AS counted_at,
    ($5::bigint[])[n] AS reserved_at
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $6
),
w AS (
  INSERT INTO ceiling_claim (action_seq, tenant, claims, counted_at, reserved_at)
  SELECT a.seq, r.tenant, r.claims, r.counted_at, r.reserved_at
  FROM r
  CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = r.tenant AND id = r.action_id OFFSET 0) a
  ON CONFLICT (action_seq) DO UPDATE
  SET claims = excluded.claims, counted_at = excluded.counted_at, reserved_at = excluded.reserved_at,
    released_at = NULL
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $6 THEN 0 ELSE gatehouse_refuse('GH002') END`)

// ceilingRow is a ceiling and scope with its limit, and the time after which claims count.
type ceilingRow struct {
	Tenant, Ceiling, Scope string
	Since, Limit           int64
}

// checkCeilings refuses if the claims on a ceiling exceed its limit, those of this transaction included.
var checkCeilings = writes[ceilingRow](rankCheckCeiling, "", `
SELECT CASE WHEN EXISTS (
  SELECT 1
  FROM (
    SELECT tenant, ($2::text[])[n] AS ceiling, ($3::text[])[n] AS scope, ($4::bigint[])[n] AS since,
      ($5::bigint[])[n] AS "limit"
    FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $6
  ) r
  WHERE (
    SELECT sum(amount) FROM ceiling_sum s
    WHERE s.tenant = r.tenant AND s.ceiling = r.ceiling AND s.scope = r.scope AND s.counted_at > r.since
  ) > r."limit"
) THEN gatehouse_refuse('GH001') ELSE 0 END`).withDistinct()

// ReserveCeilings stores the claims of an action if each fits under its limit.
//
// A member of a group (see the package comment) does not read the sums. The group locks the ceilings of all
// members in one statement, in one order. Then it adds their claims, and the server checks the sums. If a sum
// exceeds its limit, the group is undone, and each member runs again, alone. A member does not claim in the group,
// but runs alone, if one of its ceilings was full lately, or if it has written something before.
func (t *tx) ReserveCeilings(actionID string, claims ...gatehouse.CeilingClaim) (*gatehouse.CeilingExcess, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	list, err := shared.ClaimsAt(t.Now(), claims)
	if err != nil {
		return nil, err
	}
	text, latest := shared.EncodeClaims(list)
	reserve := reserveClaims.row(t, claimsRow{t.tenant, actionID, text, latest, t.Now()})
	locks := t.lockQuery(list)
	if t.member != nil && len(t.queue) == 0 && !t.s.fullCeilings.any(locks) {
		check := query{statement: checkCeilings.arrayStatement, tenant: t.tenant}
		for _, c := range list {
			check.rows = append(check.rows, ceilingRow{t.tenant, c.Ceiling, c.Scope, c.Since, c.Limit})
		}
		for _, q := range []query{locks, reserve, check} {
			if err := t.queueWrite(q); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	used, err := t.lockSums(list)
	if err != nil {
		return nil, err
	}
	for i, c := range list {
		if !c.Fits(used[i]) {
			t.s.fullCeilings.add(locks.rows[i].(ceilingLock).Hash)
			return shared.ExcessOf(claims[i], used[i]), nil
		}
	}
	return nil, t.queueWrite(reserve)
}

// lockQuery locks the ceilings of claims.
func (t *tx) lockQuery(list []shared.Claim) query {
	q := query{statement: lockCeilings.arrayStatement, tenant: t.tenant}
	for _, c := range list {
		q.rows = append(q.rows, ceilingLock{hashOf("ceiling", t.tenant, c.Ceiling, c.Scope)})
	}
	return q
}

// lockSums locks ceilings, then sums their claims.
func (t *tx) lockSums(list []shared.Claim) (used []int64, err error) {
	return used, t.lockAndRead([]query{t.lockQuery(list)}, askSums(t.tenant, list, &used))
}

// LockCeilings locks each ceiling and scope, then sums the claims. A sum that overflows is an error, so that it
// cannot pass the ceiling.
func (t *tx) LockCeilings(spans ...gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	if len(spans) == 0 {
		return nil, nil
	}
	used, err := t.lockSums(spansOf(spans))
	return decimals(used), err
}

// ListCeilingUse sums the claims on a ceiling by scope. A sum that overflows is an error.
func (t *readTx) ListCeilingUse(
	ceiling, scope string,
	since time.Time,
	limit int,
) (list []gatehouse.CeilingUse, err error) {
	err = t.each(`SELECT scope, sum(amount)::bigint FROM ceiling_sum
WHERE tenant = $1 AND ceiling = $2 AND counted_at > $4
  AND ($3 = '' OR scope = $3 OR starts_with(scope, $3 || '/'))
GROUP BY scope HAVING sum(amount) > 0 ORDER BY sum(amount) DESC, scope COLLATE "C" LIMIT $5`,
		func(r *row) error {
			list = append(list, gatehouse.CeilingUse{Scope: r.Text(), Used: gatehouse.DecimalFromMicros(r.Int())})
			return nil
		}, t.tenant, ceiling, scope, since, limit)
	return list, err
}

// CeilingUses sums the claims in each span. A sum that overflows is an error.
func (t *readTx) CeilingUses(spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	var used []int64
	err := t.read(askSums(t.tenant, spansOf(spans), &used))
	return decimals(used), err
}

func spansOf(spans []gatehouse.CeilingSpan) []shared.Claim {
	list := make([]shared.Claim, len(spans))
	for i, s := range spans {
		list[i] = shared.Claim{Ceiling: s.Ceiling, Scope: s.Scope, Since: s.Since.UnixMicro()}
	}
	return list
}

func decimals(micros []int64) []gatehouse.Decimal {
	list := make([]gatehouse.Decimal, len(micros))
	for i, n := range micros {
		list[i] = gatehouse.DecimalFromMicros(n)
	}
	return list
}

// askSums appends to used, for each claim of the list, the sum of the claims on its ceiling and scope that are
// counted after its Since.
func askSums(tenant string, list []shared.Claim, used *[]int64) query {
	ceilings, scopes, since := make([]string, len(list)), make([]string, len(list)), make([]int64, len(list))
	for i, c := range list {
		ceilings[i], scopes[i], since[i] = c.Ceiling, c.Scope, c.Since
	}
	return ask(`
SELECT coalesce((
  SELECT sum(c.amount) FROM ceiling_sum c
  WHERE c.tenant = $1 AND c.ceiling = u.ceiling AND c.scope = u.scope AND c.counted_at > u.since), 0)::bigint
FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY u (ceiling, scope, since, n) ORDER BY u.n`,
		func(r *row) error {
			*used = append(*used, r.Int())
			return nil
		}, tenant, ceilings, scopes, since)
}

// ReleaseCeilings releases the claims of an action. A trigger takes them from the sums.
func (t *tx) ReleaseCeilings(actionID string) error {
	return t.Write(`UPDATE ceiling_claim SET released_at = $1
WHERE action_seq = (SELECT seq FROM action WHERE tenant = $2 AND id = $3) AND released_at IS NULL`,
		t.Now(), t.tenant, actionID)
}
