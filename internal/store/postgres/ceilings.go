package postgres

import (
	"hash/fnv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// lockFor locks a name until the end of the transaction. Two names with the same hash wait for
// each other, which is harmless.
func lockFor(name ...string) query {
	h := fnv.New64a()
	for _, part := range name {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return ask(`SELECT pg_advisory_xact_lock($1)`, nil, int64(h.Sum64()))
}

// ReserveCeiling stores one claim, in place of an earlier claim of the same action, ceiling and
// scope. Amounts are stored in millionths, rounded away from zero, so a sum is never too low.
func (t *tx) ReserveCeiling(actionID string, c gatehouse.CeilingClaim) error {
	amount, err := c.Amount.Micros()
	if err != nil {
		return err
	}
	return t.Write(`
WITH w AS (
  INSERT INTO ceiling_claim (action_seq, ceiling, scope, tenant, amount, reserved_at, counted_at)
  SELECT seq, $3, $4, tenant, $5, $6, $7 FROM action WHERE tenant = $1 AND id = $2
  ON CONFLICT (action_seq, ceiling, scope) DO UPDATE
  SET amount = excluded.amount, reserved_at = excluded.reserved_at, counted_at = excluded.counted_at,
    released_at = NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`,
		t.tenant, actionID, c.Ceiling, c.Scope, amount, t.Now(), c.CountedAt(t.Now()))
}

// CeilingUsed locks the ceiling and scope, then sums the claims counted after since. A sum that
// overflows is an error, so that it cannot pass the ceiling.
func (t *tx) CeilingUsed(ceiling, scope string, since time.Time) (gatehouse.Decimal, error) {
	var sum int64
	err := t.lockAndRead(
		[]query{lockFor("ceiling", t.tenant, ceiling, scope)},
		ask(`SELECT coalesce(sum(amount), 0)::bigint FROM ceiling_sum
WHERE tenant = $1 AND ceiling = $2 AND scope = $3 AND counted_at > $4`,
			func(r *row) error { sum = r.Int(); return nil }, t.tenant, ceiling, scope, since),
	)
	if err != nil {
		return "", err
	}
	return gatehouse.DecimalFromMicros(sum), nil
}

// ListCeilingUse sums by scope. A sum that overflows is an error.
func (t *readTx) ListCeilingUse(
	ceiling, scope string,
	since time.Time,
	limit int,
) (list []gatehouse.CeilingUse, err error) {
	err = t.each(`SELECT scope, sum(amount)::bigint FROM ceiling_sum
WHERE tenant = $1 AND ceiling = $2 AND ($3 = '' OR scope = $3) AND counted_at > $4
GROUP BY scope ORDER BY sum(amount) DESC, scope COLLATE "C" LIMIT $5`,
		func(r *row) error {
			list = append(list, gatehouse.CeilingUse{Scope: r.Text(), Used: gatehouse.DecimalFromMicros(r.Int())})
			return nil
		}, t.tenant, ceiling, scope, since, limit)
	return list, err
}

// CeilingUses sums each span. A sum that overflows is an error.
func (t *readTx) CeilingUses(spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	ceilings, scopes, since := make([]string, len(spans)), make([]string, len(spans)), make([]int64, len(spans))
	for i, s := range spans {
		ceilings[i], scopes[i], since[i] = s.Ceiling, s.Scope, s.Since.UnixMicro()
	}
	used := make([]gatehouse.Decimal, 0, len(spans))
	err := t.each(`SELECT coalesce((SELECT sum(c.amount) FROM ceiling_sum c
  WHERE c.tenant = $1 AND c.ceiling = u.ceiling AND c.scope = u.scope AND c.counted_at > u.since), 0)::bigint
FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY u (ceiling, scope, since, n) ORDER BY u.n`,
		func(r *row) error {
			used = append(used, gatehouse.DecimalFromMicros(r.Int()))
			return nil
		}, t.tenant, ceilings, scopes, since)
	return used, err
}

// ReleaseCeilings releases the claims of an action.
func (t *tx) ReleaseCeilings(actionID string) error {
	return t.Write(`UPDATE ceiling_claim SET released_at = $1
WHERE action_seq = (SELECT seq FROM action WHERE tenant = $2 AND id = $3) AND released_at IS NULL`,
		t.Now(), t.tenant, actionID)
}
