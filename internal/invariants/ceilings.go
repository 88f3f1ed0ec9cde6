package invariants

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// claimsWhere returns a query of claims with one row per claim: the seq of its action, tenant, ceiling, scope,
// amount, and the times of reservation and release.
func (c *checker) claimsWhere(condition string) string {
	return `SELECT action_seq, tenant, x.value ->> 0, x.value ->> 1,
CAST(x.value ->> 2 AS BIGINT), reserved_at, released_at FROM ` + c.eachClaim() + ` WHERE ` + condition
}

// eachClaim joins the rows of claims with the claims in each.
func (c *checker) eachClaim() string {
	if c.t.sqlite {
		return `ceiling_claim, json_each(claims) x`
	}
	return `ceiling_claim, json_array_elements(claims::json) x (value)`
}

// runningTotal is a running total of an account, one for each held claim: sum is the sum of the claims that were
// reserved at or before at.
type runningTotal struct{ at, sum int64 }

// account identifies the claims to which one limit applies together.
type account struct{ tenant, ceiling, scope string }

// loadHeld reads all claims that are held, and adds them up by account in the order of their reservation.
func (c *checker) loadHeld(ctx context.Context, tx *sql.Tx) error {
	c.heldTotals = make(map[account][]runningTotal)
	err := each(ctx, tx, c.claimsWhere("released_at IS NULL"), func(rows *sql.Rows) error {
		var seq int64
		var a account
		var h runningTotal
		var released sql.NullInt64
		err := rows.Scan(&seq, &a.tenant, &a.ceiling, &a.scope, &h.sum, &h.at, &released)
		c.heldTotals[a] = append(c.heldTotals[a], h)
		return err
	})
	for _, list := range c.heldTotals {
		slices.SortFunc(list, func(a, b runningTotal) int { return cmp.Compare(a.at, b.at) })
		for i := range list[1:] {
			list[i+1].sum += list[i].sum
		}
	}
	return err
}

// heldUntil is the sum of the claims on an account that were reserved at or before a time.
func (c *checker) heldUntil(a account, at int64) int64 {
	list := c.heldTotals[a]
	after, _ := slices.BinarySearchFunc(list, at+1, func(h runningTotal, at int64) int { return cmp.Compare(h.at, at) })
	if after == 0 {
		return 0
	}
	return list[after-1].sum
}

// sumClaims sets others of each held claim. It counts the claims of other actions that were held at the beginning
// of the check. Claims that were released before are missing, so the sum for a claim that was made before the check
// is never too high.
func (c *checker) sumClaims(ctx context.Context, tx *sql.Tx, actions []*actionRows) error {
	if c.heldTotals == nil {
		if err := c.loadHeld(ctx, tx); err != nil {
			return err
		}
	}
	for _, f := range actions {
		for i := range f.claims {
			l := &f.claims[i]
			limit := f.ceiling(l)
			if l.released || limit == nil {
				continue
			}
			a := account{l.tenant, l.ceiling, l.scope}
			since := l.reservedAt - limit.Window.D().Microseconds()
			l.others = max(0, c.heldUntil(a, l.reservedAt)-c.heldUntil(a, since)-l.amount)
		}
	}
	return nil
}

// checkSums compares the running sum of each ceiling, scope and time slice with
// the claims behind it.
func (c *checker) checkSums(ctx context.Context) error {
	query := `SELECT coalesce(s.tenant, c.tenant), coalesce(s.ceiling, c.ceiling), coalesce(s.scope, c.scope),
  CAST(coalesce(s.amount, 0) AS TEXT), CAST(coalesce(c.amount, 0) AS TEXT)
FROM ceiling_sum s FULL JOIN (
  SELECT tenant, x.value ->> 0 AS ceiling, x.value ->> 1 AS scope,
    CAST(x.value ->> 3 AS BIGINT) AS counted_at, sum(CAST(x.value ->> 2 AS BIGINT)) AS amount
  FROM ` + c.eachClaim() + ` WHERE released_at IS NULL GROUP BY 1, 2, 3, 4) c
ON c.tenant = s.tenant AND c.ceiling = s.ceiling AND c.scope = s.scope AND c.counted_at = s.counted_at
WHERE coalesce(s.amount, 0) <> coalesce(c.amount, 0)`
	return c.in(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, query, func(rows *sql.Rows) error {
			var tenant, ceiling, scope, sum, claims string
			err := rows.Scan(&tenant, &ceiling, &scope, &sum, &claims)
			if err == nil {
				c.r.violated(10, tenant, ceiling, "the sum of %s is %s millionths, its claims are %s",
					scope, sum, claims)
			}
			return err
		})
	})
}
