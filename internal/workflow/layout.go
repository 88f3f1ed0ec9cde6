package workflow

import (
	"cmp"
	"slices"
)

// The dimensions of a drawing, in pixels.
const (
	boxHeight  = 58
	rowGap     = 44
	columnGap  = 24
	laneWidth  = 16
	margin     = 12
	charWidth  = 7 // of the small font; ids use the larger one
	idWidth    = 8
	minBox     = 150
	maxBox     = 330
	maxPassing = 2000
)

// place is the position of a step or, without a step, of a line that passes a
// row.
type place struct {
	step       *Step
	x, y, w    int // upper left corner, and width
	order      float64
	up         []*place // in the row above
	row, index int
}

func (p *place) middle() int { return p.x + p.w/2 }

// layout is a graph in rows. Lines connect adjacent rows, unless there are too many; see connect.
type layout struct {
	rows          [][]*place
	width, height int
}

// arrange puts the steps into rows, in an order that keeps lines short. box is the width
// of a step's box, in pixels.
func arrange(layers [][]*Step, needs map[string][]string, box int) *layout {
	l := &layout{rows: make([][]*place, len(layers))}
	at := make(map[string]*place)
	for i, layer := range layers {
		for _, s := range layer {
			p := &place{step: s, w: box, row: i}
			at[s.ID] = p
			l.rows[i] = append(l.rows[i], p)
		}
	}
	passing := 0
	for _, layer := range layers {
		for _, s := range layer {
			for _, need := range needs[s.ID] {
				passing += l.connect(at[need], at[s.ID], passing < maxPassing)
			}
		}
	}
	l.sort()
	l.measure()
	return l
}

// connect draws a line between two places and, if lanes is true, adds a passing place in
// each row between them. It returns the number of passing places.
func (l *layout) connect(from, to *place, lanes bool) (passing int) {
	above := from
	for row := from.row + 1; row < to.row && lanes; row++ {
		p := &place{w: laneWidth, row: row, up: []*place{above}}
		l.rows[row] = append(l.rows[row], p)
		above = p
		passing++
	}
	to.up = append(to.up, above)
	return passing
}

// sort orders each row by the mean position of the places above.
func (l *layout) sort() {
	for _, row := range l.rows {
		for i, p := range row {
			p.order = float64(i)
			if len(p.up) > 0 {
				sum := 0.0
				for _, above := range p.up {
					sum += float64(above.index)
				}
				p.order = sum / float64(len(p.up))
			}
		}
		slices.SortStableFunc(row, func(a, b *place) int { return cmp.Compare(a.order, b.order) })
		for i, p := range row {
			p.index = i
		}
	}
}

func (l *layout) measure() {
	widths := make([]int, len(l.rows))
	for i, row := range l.rows {
		for j, p := range row {
			if j > 0 {
				widths[i] += columnGap
			}
			widths[i] += p.w
		}
		l.width = max(l.width, widths[i]+2*margin)
	}
	for i, row := range l.rows {
		x := (l.width - widths[i]) / 2
		for _, p := range row {
			p.x, p.y = x, margin+i*(boxHeight+rowGap)
			x += p.w + columnGap
		}
	}
	l.height = 2*margin + len(l.rows)*(boxHeight+rowGap) - rowGap
}
