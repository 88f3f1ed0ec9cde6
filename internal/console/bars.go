package console

import "strconv"

// The size of a bar chart, in its own units.
const (
	chartWidth  = 480
	chartHeight = 72
)

// measure is one bar of a chart: its size, the emphasised part of it (0 for none), its
// label and title, and the rows that it opens ("" for none).
type measure struct {
	size, emphasised   float64
	label, title, href string
}

// bar is a measure as drawn; without an emphasised part, partHeight and partY are "".
type bar struct {
	measure

	x, y, width, height, partHeight, partY string
}

// bars draws measures from left to right. A measure of size 0 has no bar.
func bars(list []measure) (drawn []bar) {
	top := largest(list).size
	step := float64(chartWidth) / float64(len(list))
	for i, f := range list {
		if f.size == 0 {
			continue
		}
		height := max(2, chartHeight*f.size/top)
		b := bar{
			measure: f, x: decimals(float64(i) * step), y: decimals(chartHeight - height), width: decimals(step * .9),
			height: decimals(height),
		}
		if f.emphasised > 0 {
			part := height * f.emphasised / f.size
			b.partHeight, b.partY = decimals(part), decimals(chartHeight-part)
		}
		drawn = append(drawn, b)
	}
	return drawn
}

// largest is the first measure of the largest size.
func largest(list []measure) (most measure) {
	for i, f := range list {
		if i == 0 || f.size > most.size {
			most = f
		}
	}
	return most
}

func last(list []measure) (f measure) {
	if len(list) > 0 {
		f = list[len(list)-1]
	}
	return f
}

func decimals(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
