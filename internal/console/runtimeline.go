package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
)

// phaseWord describes a phase of a step as part of a sentence. In the drawing, the phases differ not
// only in colour, but also in height or pattern.
func phaseWord(p runline.Phase) string {
	switch p {
	case runline.Queued:
		return "queued"
	case runline.Waits:
		return "waited"
	case runline.People:
		return "waited for people"
	case runline.Fails:
		return "failed attempt"
	}
	return "worked"
}

// timeline is a run drawn along a time axis.
type timeline struct {
	rows []timelineRow
	// phases are the phases that occur, in the order of the legend.
	phases []runline.Phase
	cuts   []timelineCut
	total  time.Duration
	// log is set when the axis is logarithmic; ticks are the times on it.
	log   bool
	ticks []timelineTick
	// left counts the steps that have no row of their own.
	left int
}

// timelineRow is a step with its bars.
type timelineRow struct {
	step  *gatehouse.Step
	bars  []timelineBar
	words string
}

// timelineBar is a span and its position, in percent of the width.
type timelineBar struct {
	phase    runline.Phase
	x, width float64
	length   time.Duration
}

// timelineTick is a mark on a logarithmic axis. Its text is the time since the beginning of the axis.
type timelineTick struct {
	x    float64
	text string
}

// label is the length of a span, written within its bar where it fits; "" for less than a second,
// for queued time, and for a failed attempt.
func (b timelineBar) label() string {
	if b.length < time.Second || b.phase == runline.Queued || b.phase == runline.Fails {
		return ""
	}
	text := span(b.length)
	if b.width < letterWidth*float64(len(text)+1) {
		return ""
	}
	return text
}

// letterWidth is about the width of a letter within a bar on a narrow window, in percent of the
// drawing.
const letterWidth = 2.2

// timelineCut is a stretch in which no step worked; it is drawn shorter.
type timelineCut struct {
	x      float64 // its middle, in percent of the width
	length time.Duration
}

// minBar is the least width of a bar, in percent of the full width, so that even short spans are
// visible.
const minBar = 0.6

// newTimeline draws a run; spans that have not ended end at now.
func newTimeline(d *gatehouse.RunDetail, now time.Time) *timeline {
	shown := firstSteps(d.Steps)
	t := &timeline{left: len(d.Steps) - len(shown)}
	all := runline.Spans(d, shown, now)
	x := runline.NewAxis(all)
	if t.log = runline.Uneven(all); t.log {
		x = runline.NewLogAxis(all)
		t.ticks = logTicks(all, x)
	}
	t.total = x.Total()
	for _, c := range x.Cuts {
		t.cuts = append(t.cuts, timelineCut{x: 100 * c.At, length: c.Length})
	}
	seen := make(map[runline.Phase]bool)
	for i, s := range shown {
		row := timelineRow{step: s, words: spanWords(d.Run, s, all[i])}
		for _, one := range all[i] {
			seen[one.Phase] = true
			from, to := 100*x.Place(one.From), 100*x.Place(one.To)
			row.bars = append(row.bars, timelineBar{
				phase: one.Phase, x: min(from, 100-minBar), width: max(to-from, minBar), length: one.To.Sub(one.From),
			})
		}
		t.rows = append(t.rows, row)
	}
	for _, p := range runline.Phases() {
		if seen[p] {
			t.phases = append(t.phases, p)
		}
	}
	return t
}

// tickGap is the least distance between two ticks, in percent of the width.
const tickGap = 14

// logTicks returns the ticks of a logarithmic axis, from left to right: the ends of the axis, and the
// beginnings and ends of waits. Where the room is too small, long waits take precedence.
func logTicks(all [][]runline.Span, x *runline.Axis) []timelineTick {
	var begin, end time.Time
	var waits []runline.Span
	for _, list := range all {
		for _, s := range list {
			if begin.IsZero() || s.From.Before(begin) {
				begin = s.From
			}
			if s.To.After(end) {
				end = s.To
			}
			if !s.Phase.Working() {
				waits = append(waits, s)
			}
		}
	}
	ticks := []timelineTick{{0, "0"}, {100, span(end.Sub(begin))}}
	slices.SortStableFunc(waits, func(a, b runline.Span) int { return cmp.Compare(b.To.Sub(b.From), a.To.Sub(a.From)) })
	for _, s := range waits {
		for _, at := range []time.Time{s.To, s.From} {
			place := 100 * x.Place(at)
			text := span(at.Sub(begin))
			if !slices.ContainsFunc(ticks, func(t timelineTick) bool {
				return t.text == text || math.Abs(t.x-place) < tickGap
			}) {
				ticks = append(ticks, timelineTick{place, text})
			}
		}
	}
	slices.SortFunc(ticks, func(a, b timelineTick) int { return cmp.Compare(a.x, b.x) })
	return ticks
}

// anchor is the alignment of a tick's text to the tick; it keeps the text within the drawing.
func (t timelineTick) anchor() string {
	switch {
	case t.x < tickGap/2:
		return "start"
	case t.x > 100-tickGap/2:
		return "end"
	}
	return "middle"
}

// spanWords describes a row for screen readers: the state, and the duration of each phase.
func spanWords(r *gatehouse.Run, s *gatehouse.Step, list []runline.Span) string {
	text := stateWord(s.Word())
	if runline.TakenOver(r, s) {
		return text + " in the run before"
	}
	var order []runline.Phase
	sum := make(map[runline.Phase]time.Duration)
	for _, x := range list {
		if !slices.Contains(order, x.Phase) {
			order = append(order, x.Phase)
		}
		sum[x.Phase] += x.To.Sub(x.From)
	}
	var parts []string
	for _, p := range order {
		if sum[p] >= time.Millisecond || len(order) == 1 {
			parts = append(parts, phaseWord(p)+" "+span(sum[p]))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if s.Attempts > 1 {
		text += ", " + plural(s.Attempts, "attempt", "attempts")
	}
	return text
}

// percent formats a position for a drawing.
func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

// cutWords says how long the shortened stretches are.
func (t *timeline) cutWords() string {
	parts := make([]string, len(t.cuts))
	for i, c := range t.cuts {
		parts[i] = span(c.length)
	}
	return strings.Join(parts, ", ")
}
