package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{5, 1, 3}, Spread{1, 3, 5}},
		{[]float64{4, 1, 3, 2}, Spread{1, 2.5, 4}},
	} {
		before := append([]float64(nil), c.values...)
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("spreadOf(%v) = %v, want %v", c.values, got, c.want)
		}
		if diff := cmp.Diff(before, c.values); diff != "" {
			t.Errorf("spreadOf changed its argument: %s", diff)
		}
	}
}

// Ratios are taken within a round, so that a round in which the machine is slow for both sides does
// not change them.
func TestRatiosAreTakenRoundByRound(t *testing.T) {
	t.Parallel()
	got := spreadOf(ratios([]float64{10, 100, 1000}, []float64{20, 200, 2000}))
	if want := (Spread{0.5, 0.5, 0.5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ratios([]float64{1, 2}, []float64{0, 4}); !cmp.Equal(got, []float64{0.5}) {
		t.Errorf("with an empty baseline: %v", got)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i+1) * time.Millisecond
	}
	for _, c := range []struct {
		sorted []time.Duration
		q      float64
		want   float64
	}{
		{nil, 0.5, 0}, {hundred, 0, 1}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred[:1], 0.99, 1},
		{hundred[:3], 0.5, 2},
	} {
		if got := quantile(c.sorted, c.q); got != c.want {
			t.Errorf("quantile of %d at %v = %v, want %v", len(c.sorted), c.q, got, c.want)
		}
	}
}

// The share of values at or below the quantile is at least q, and the share of values below the
// quantile is less than q.
func TestQuantileProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 60).Draw(t, "values")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		sorted := make([]time.Duration, 0, len(values))
		for _, v := range values {
			sorted = append(sorted, time.Duration(v)*time.Millisecond)
		}
		slices.Sort(sorted)
		at := quantile(sorted, q)
		below, upTo := 0, 0
		for _, d := range sorted {
			if milliseconds(d) < at {
				below++
			}
			if milliseconds(d) <= at {
				upTo++
			}
		}
		if n := q * float64(len(sorted)); float64(upTo) < n-1e-9 || float64(below) >= n {
			t.Fatalf("quantile %v of %v is %v", q, sorted, at)
		}
	})
}

func TestLineMet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line Line
		want bool
	}{
		{Line{Ratio: Spread{Median: 0.6}, Target: 0.6}, true},
		{Line{Ratio: Spread{Median: 0.59}, Target: 0.6}, false},
		{Line{Ratio: Spread{Median: 2.6}, Target: 2.5, Lower: true}, false},
		{Line{Ratio: Spread{Median: 9}, Ours: Spread{Median: 2}, Target: 3, Lower: true, Absolute: true}, true},
		{Line{Ratio: Spread{Median: 9}, Ours: Spread{Median: 2}, Target: 3, Absolute: true}, false},
	} {
		if got := c.line.Met(); got != c.want {
			t.Errorf("%+v: met = %t", c.line, got)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{12345.6: "12346", 100: "100", 34.56: "34.6", 1.234: "1.23", 0.5: "0.50",
		0.0123: "0.0123", 0: "0", -0.25: "-0.25", -34.56: "-34.6"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}
