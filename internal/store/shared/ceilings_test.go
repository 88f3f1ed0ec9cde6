package shared

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestClaimsAt rounds amounts up and limits down.
func TestClaimsAt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	of := func(amount, limit gatehouse.Decimal) (Claim, error) {
		list, err := ClaimsAt(now, []gatehouse.CeilingClaim{{Amount: amount, Limit: limit, Window: 64e9}})
		if err != nil {
			return Claim{}, err
		}
		return list[0], nil
	}
	for _, c := range []struct {
		amount, limit gatehouse.Decimal
		micros, most  int64
	}{
		{"1.5", "2", 1_500_000, 2_000_000},
		{"0.0000001", "0.0000019", 1, 1},
		{"", "1e30", 0, math.MaxInt64},
		{"1e2", "-1.0000001", 100_000_000, -1_000_001},
	} {
		got, err := of(c.amount, c.limit)
		want := Claim{Amount: c.micros, Limit: c.most, CountedAt: 1000e6, Since: 936e6}
		if err != nil || got != want {
			t.Errorf("%s of %s: %+v, %v, want %+v", c.amount, c.limit, got, err, want)
		}
	}
	for _, amount := range []gatehouse.Decimal{"-1", "1e30"} {
		if _, err := of(amount, "1"); err == nil {
			t.Errorf("a claim of %s is taken", amount)
		}
	}
}

func TestStoredClaims(t *testing.T) {
	t.Parallel()
	list := []Claim{
		{Ceiling: "a \"b\"", Scope: "target:ü\n", Amount: math.MaxInt64, CountedAt: 7},
		{Ceiling: "c", Scope: "tenant", CountedAt: 3},
	}
	text, latest := EncodeClaims(list)
	got, err := DecodeClaims(text)
	if diff := cmp.Diff(list, got); diff != "" || err != nil || latest != 7 {
		t.Errorf("%s, latest %d: %v (-want +got):\n%s", text, latest, err, diff)
	}
	if _, err := DecodeClaims(`[["c","tenant",1]]`); err == nil {
		t.Error("a claim of three values is decoded")
	}
}
