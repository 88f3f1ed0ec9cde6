package bench

import (
	"math"
	"slices"
	"time"
)

// Spread summarises a value over the rounds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// spreadOf returns the spread of values; zero without values.
func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	s := slices.Sorted(slices.Values(values))
	mid := len(s) / 2
	median := s[mid]
	if len(s)%2 == 0 {
		median = (s[mid-1] + s[mid]) / 2
	}
	return Spread{Min: s[0], Median: median, Max: s[len(s)-1]}
}

// ratios divides round by round. A round without a baseline is left out.
func ratios(ours, bare []float64) []float64 {
	out := make([]float64, 0, len(ours))
	for i, b := range bare[:min(len(ours), len(bare))] {
		if b > 0 {
			out = append(out, ours[i]/b)
		}
	}
	return out
}

// quantile returns the nearest-rank quantile of sorted durations, in milliseconds; 0 without
// durations. q is between 0 and 1.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return milliseconds(sorted[min(max(rank, 0), len(sorted)-1)])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
