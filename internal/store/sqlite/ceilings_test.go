package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// BenchmarkCeiling reserves from a ceiling whose window already holds many
// claims.
func BenchmarkCeiling(b *testing.B) {
	for _, claims := range []int{0, 1_000, 20_000} {
		b.Run(fmt.Sprintf("claims=%d", claims), func(b *testing.B) {
			s := openTest(b, Config{})
			populate(b, s, claims+b.N, 1, "86400")
			day := gatehouse.Duration(24 * time.Hour)
			c := gatehouse.CeilingClaim{
				Ceiling: "daily", Scope: "tenant", Amount: "1", Limit: "1000000000", Window: day,
			}
			err := s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) error {
				_, err := x.(*tx).exec(`
INSERT INTO ceiling_sum (tenant, ceiling, scope, counted_at, amount)
SELECT 'default', 'daily', 'tenant', counted_at, 1000000 * count(*)
FROM (
  SELECT (at / 1350000000 + 1) * 1350000000 AS counted_at
  FROM (SELECT ? - seq * 86400000000 / ? AS at FROM action WHERE seq <= ?)
) GROUP BY counted_at`,
					x.Now(), max(claims, 1), claims)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := range b.N {
				err := s.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
					_, err := tx.ReserveCeilings(fmt.Sprintf("act_%09d", claims+i+1), c)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
