package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// TestCeilingSums compares the sums that the writer remembers with those that are stored, over more slices of time
// than it remembers.
func TestCeilingSums(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const n = maxSlices + 50
	populate(t, s, n, 1, "86400")
	update := func(fn func(tx gatehouse.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), "default", fn); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		update(func(tx gatehouse.Tx) error {
			window := gatehouse.Duration(10 * time.Millisecond)
			excess, err := tx.ReserveCeilings(fmt.Sprintf("act_%09d", i+1),
				gatehouse.CeilingClaim{Ceiling: "c", Scope: "tenant", Amount: "1", Limit: "1000", Window: window},
				gatehouse.CeilingClaim{Ceiling: "c", Scope: fmt.Sprint(i % 7), Amount: "2", Limit: "1000", Window: window})
			if excess != nil {
				t.Errorf("%s are used", excess.Used)
			}
			if i%5 == 4 {
				err = errors.Join(err, tx.ReleaseCeilings(fmt.Sprintf("act_%09d", i)))
			}
			return err
		})
		if i%50 != 0 && i < n-1 {
			continue
		}
		for range 2 { // if the sums were cleared in between, they are read again
			var spans []gatehouse.CeilingSpan
			for _, ago := range []time.Duration{0, 5 * time.Millisecond, time.Hour} {
				for scope := range 8 {
					name := fmt.Sprint(scope)
					if scope == 7 {
						name = "tenant"
					}
					spans = append(spans, gatehouse.CeilingSpan{Ceiling: "c", Scope: name, Since: time.Now().Add(-ago)})
				}
			}
			var remembered, stored []gatehouse.Decimal
			update(func(tx gatehouse.Tx) (err error) { remembered, err = tx.LockCeilings(spans...); return err })
			err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) (err error) {
				stored, err = tx.CeilingUses(spans)
				return err
			})
			if err != nil || !slices.Equal(remembered, stored) {
				t.Fatalf("after %d: remembered %v, stored %v, %v", i+1, remembered, stored, err)
			}
			if i%100 == 0 {
				clear(s.writer.sums.known)
			}
		}
	}
}

// TestSumsOutliveAReadOnlyUpdate: the writer keeps the sums after an Update that writes nothing, and no change is left
// to store for a claim that is reserved and released in one batch.
func TestSumsOutliveAReadOnlyUpdate(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	populate(t, s, 1, 1, "86400")
	update(t, s, func(tx gatehouse.Tx) error {
		_, err := tx.ReserveCeilings("act_000000001", gatehouse.CeilingClaim{
			Ceiling: "c", Scope: "tenant", Amount: "1", Limit: "9", Window: gatehouse.Duration(time.Hour),
		})
		return errors.Join(err, tx.ReleaseCeilings("act_000000001"))
	})
	if n := len(s.writer.sums.changes); n != 0 {
		t.Errorf("%d changes are left after a commit", n)
	}
	update(t, s, func(gatehouse.Tx) error { return nil })
	if n := len(s.writer.sums.known); n != 1 {
		t.Errorf("%d sums are known after an Update without writes, want 1", n)
	}
}

// TestEmptySumsAreDeleted: a sum whose claims are all released has no row.
func TestEmptySumsAreDeleted(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	populate(t, s, 2, 1, "86400")
	rows := func() (n int64) {
		update(t, s, func(x gatehouse.Tx) (err error) {
			n, err = x.(*tx).number(`SELECT count(*) FROM ceiling_sum`)
			return err
		})
		return n
	}
	for i := range 2 {
		update(t, s, func(tx gatehouse.Tx) error {
			_, err := tx.ReserveCeilings(fmt.Sprintf("act_%09d", i+1), gatehouse.CeilingClaim{Ceiling: "c",
				Scope: fmt.Sprint(i), Amount: "1", Limit: "9", Window: gatehouse.Duration(time.Hour)})
			return err
		})
	}
	update(t, s, func(tx gatehouse.Tx) error { return tx.ReleaseCeilings("act_000000001") })
	if n := rows(); n != 1 {
		t.Errorf("%d sums, want 1", n)
	}
}
