package runline

import (
	"math"
	"time"
)

// logFrom is the ratio of the longest wait to the shortest span above which a logarithmic axis is used.
const logFrom = 50

// Uneven reports whether a wait is so much longer than the shortest span that a linear axis
// cannot show both.
func Uneven(all [][]Span) bool {
	var shortest, wait time.Duration
	for _, list := range all {
		for _, s := range list {
			length := s.To.Sub(s.From)
			if shortest == 0 || length < shortest {
				shortest = length
			}
			if !s.Phase.Working() {
				wait = max(wait, length)
			}
		}
	}
	return shortest > 0 && wait/logFrom > shortest
}

// NewLogAxis makes an axis on which the width of each interval between two events is the
// logarithm of its length. It has no cuts.
func NewLogAxis(all [][]Span) *Axis {
	x := &Axis{times: eventTimes(all)}
	if len(x.times) < 2 {
		return x
	}
	unit := x.times[1].Sub(x.times[0])
	for i := 2; i < len(x.times); i++ {
		unit = min(unit, x.times[i].Sub(x.times[i-1]))
	}
	unit = max(unit, time.Millisecond)
	x.places = make([]float64, len(x.times))
	for i := 1; i < len(x.times); i++ {
		length := x.times[i].Sub(x.times[i-1])
		x.places[i] = x.places[i-1] + math.Log1p(float64(length)/float64(unit))
	}
	whole := x.places[len(x.places)-1]
	for i := range x.places {
		x.places[i] /= whole
	}
	return x
}
