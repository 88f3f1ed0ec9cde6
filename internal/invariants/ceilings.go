package invariants

import (
	"context"
	"database/sql"
)

// checkSums compares the running sum of each ceiling, scope and time slice with
// the claims behind it.
func (c *checker) checkSums(ctx context.Context) error {
	const query = `SELECT coalesce(s.tenant, c.tenant), coalesce(s.ceiling, c.ceiling), coalesce(s.scope, c.scope),
  CAST(coalesce(s.amount, 0) AS TEXT), CAST(coalesce(c.amount, 0) AS TEXT)
FROM ceiling_sum s FULL JOIN (
  SELECT tenant, ceiling, scope, counted_at, sum(amount) AS amount FROM ceiling_claim WHERE released_at IS NULL
  GROUP BY tenant, ceiling, scope, counted_at) c
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
