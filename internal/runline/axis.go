package runline

import (
	"slices"
	"time"
)

// idleShare: an idle stretch takes at most 1/idleShare of the working time.
const idleShare = 4

// Axis maps times to positions between 0 and 1. On an axis of [NewAxis], each stretch in which no
// step worked takes at most a quarter of the total working time, if any step worked at all.
type Axis struct {
	// Cuts are the shortened stretches, in order.
	Cuts   []Cut
	times  []time.Time
	places []float64
}

// Cut is a shortened stretch in which no step worked.
type Cut struct {
	At     float64       // position of its middle
	Length time.Duration // its real length
	// Omitted is the part that is left out.
	Omitted time.Duration
}

// NewAxis makes the axis for the spans of all steps.
func NewAxis(all [][]Span) *Axis {
	x := &Axis{times: eventTimes(all)}
	if len(x.times) < 2 {
		return x
	}
	busy, work := x.busy(all)
	most := work / idleShare
	at := make([]float64, len(x.times))
	var ends [][2]int
	for i := 0; i < len(busy); {
		// A stretch is a sequence of intervals that are all busy or all idle.
		j := i
		for j < len(busy) && busy[j] == busy[i] {
			j++
		}
		length, scale := x.times[j].Sub(x.times[i]), 1.0
		if !busy[i] && work > 0 && length > most {
			scale = float64(most) / float64(length)
			ends = append(ends, [2]int{i, j})
			x.Cuts = append(x.Cuts, Cut{Length: length, Omitted: length - most})
		}
		for ; i < j; i++ {
			at[i+1] = at[i] + scale*float64(x.times[i+1].Sub(x.times[i]))
		}
	}
	whole := max(at[len(at)-1], 1)
	for i := range at {
		at[i] /= whole
	}
	x.places = at
	for i, e := range ends {
		x.Cuts[i].At = (at[e[0]] + at[e[1]]) / 2
	}
	return x
}

// eventTimes returns the sorted times at which spans begin or end.
func eventTimes(all [][]Span) (times []time.Time) {
	for _, list := range all {
		for _, s := range list {
			times = append(times, s.From, s.To)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return slices.CompactFunc(times, time.Time.Equal)
}

// busy reports for each interval whether a step worked in it, and returns the total working
// time.
func (x *Axis) busy(all [][]Span) (busy []bool, work time.Duration) {
	busy = make([]bool, len(x.times)-1)
	for _, list := range all {
		for _, s := range list {
			if !s.Phase.Working() {
				continue
			}
			from, _ := slices.BinarySearchFunc(x.times, s.From, time.Time.Compare)
			for i := from; i < len(busy) && x.times[i].Before(s.To); i++ {
				busy[i] = true
			}
		}
	}
	for i, b := range busy {
		if b {
			work += x.times[i+1].Sub(x.times[i])
		}
	}
	return busy, work
}

// Place returns the position of a time, from 0 to 1. A span must begin or end at the time.
func (x *Axis) Place(t time.Time) float64 {
	i, ok := slices.BinarySearchFunc(x.times, t, time.Time.Compare)
	if !ok || i >= len(x.places) {
		return 0
	}
	return x.places[i]
}

// Total is the time from the first beginning to the last end.
func (x *Axis) Total() time.Duration {
	if len(x.times) < 2 {
		return 0
	}
	return x.times[len(x.times)-1].Sub(x.times[0])
}

// Omitted is the total omitted idle time.
func (x *Axis) Omitted() (d time.Duration) {
	for _, c := range x.Cuts {
		d += c.Omitted
	}
	return d
}
