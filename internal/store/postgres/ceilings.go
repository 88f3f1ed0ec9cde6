package postgres

import (
	"cmp"
	"hash/fnv"
	"slices"
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

// ReserveCeilings stores claims, in place of earlier claims of the same action, ceiling and scope.
// Amounts are stored in millionths, rounded away from zero, so a sum is never too low.
func (t *tx) ReserveCeilings(actionID string, claims ...gatehouse.CeilingClaim) error {
	if len(claims) == 0 {
		return nil
	}
	ceilings, scopes := make([]string, len(claims)), make([]string, len(claims))
	amounts, counted := make([]int64, len(claims)), make([]int64, len(claims))
	for i, c := range claims {
		var err error
		if amounts[i], err = c.Amount.Micros(); err != nil {
			return err
		}
		ceilings[i], scopes[i], counted[i] = c.Ceiling, c.Scope, c.CountedAt(t.Now()).UnixMicro()
	}
	return t.Write(`
WITH w AS (
  INSERT INTO ceiling_claim (action_seq, ceiling, scope, tenant, amount, reserved_at, counted_at)
  SELECT a.seq, c.ceiling, c.scope, a.tenant, c.amount, $3, c.counted_at
  FROM action a
  CROSS JOIN unnest($4::text[], $5::text[], $6::bigint[], $7::bigint[]) AS c(ceiling, scope, amount, counted_at)
  WHERE a.tenant = $1 AND a.id = $2
  ON CONFLICT (action_seq, ceiling, scope) DO UPDATE
  SET amount = excluded.amount, reserved_at = excluded.reserved_at, counted_at = excluded.counted_at,
    released_at = NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`,
		t.tenant, actionID, t.Now(), ceilings, scopes, amounts, counted)
}

// LockCeilings locks each ceiling and scope, in one order for all transactions, then sums the claims. A
// sum that overflows is an error, so that it cannot pass the ceiling.
func (t *tx) LockCeilings(spans ...gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	if len(spans) == 0 {
		return nil, nil
	}
	ordered := slices.SortedFunc(slices.Values(spans), func(a, b gatehouse.CeilingSpan) int {
		return cmp.Or(cmp.Compare(a.Ceiling, b.Ceiling), cmp.Compare(a.Scope, b.Scope))
	})
	locks := make([]query, len(spans))
	for i, s := range ordered {
		locks[i] = lockFor("ceiling", t.tenant, s.Ceiling, s.Scope)
	}
	used := make([]gatehouse.Decimal, 0, len(spans))
	err := t.lockAndRead(locks, askCeilings(t.tenant, spans, &used))
	return used, err
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
	used := make([]gatehouse.Decimal, 0, len(spans))
	err := t.read(askCeilings(t.tenant, spans, &used))
	return used, err
}

// askCeilings appends the sum of each span to used.
func askCeilings(tenant string, spans []gatehouse.CeilingSpan, used *[]gatehouse.Decimal) query {
	ceilings, scopes, since := make([]string, len(spans)), make([]string, len(spans)), make([]int64, len(spans))
	for i, s := range spans {
		ceilings[i], scopes[i], since[i] = s.Ceiling, s.Scope, s.Since.UnixMicro()
	}
	return ask(`
SELECT coalesce((
  SELECT sum(c.amount) FROM ceiling_sum c
  WHERE c.tenant = $1 AND c.ceiling = u.ceiling AND c.scope = u.scope AND c.counted_at > u.since), 0)::bigint
FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY u (ceiling, scope, since, n) ORDER BY u.n`,
		func(r *row) error {
			*used = append(*used, gatehouse.DecimalFromMicros(r.Int()))
			return nil
		}, tenant, ceilings, scopes, since)
}

// ReleaseCeilings releases the claims of an action.
func (t *tx) ReleaseCeilings(actionID string) error {
	return t.Write(`UPDATE ceiling_claim SET released_at = $1
WHERE action_seq = (SELECT seq FROM action WHERE tenant = $2 AND id = $3) AND released_at IS NULL`,
		t.Now(), t.tenant, actionID)
}
