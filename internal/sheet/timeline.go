package sheet

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// signOf returns the sign of a phase: no phase is shown by colour alone.
func signOf(p runline.Phase) string {
	switch p {
	case runline.Waits:
		return "░"
	case runline.People:
		return "▒"
	case runline.Works:
		return "█"
	case runline.Fails:
		return "✗"
	}
	return "·"
}

func phaseStyle(p runline.Phase) string {
	switch p {
	case runline.People:
		return term.Yellow
	case runline.Works:
		return term.Blue
	case runline.Fails:
		return term.Red
	}
	return term.Dim
}

// phaseWord is the word for a phase in the legend.
func phaseWord(p runline.Phase) string {
	switch p {
	case runline.People:
		return "waits for people"
	case runline.Fails:
		return "failed"
	}
	return string(p)
}

// axis maps times to columns.
type axis struct {
	*runline.Axis
	columns int
}

// column returns the column of a time at which a span begins or ends.
func (x axis) column(t time.Time) int { return int(x.Place(t)*float64(x.columns) + 0.5) }

// bar draws the spans of a step. Each span except a queued one takes at least one column. If the last
// spans have too few columns, bar draws the first of them and leaves out the others.
func (x axis) bar(spans []runline.Span, color bool) string {
	var b strings.Builder
	at := 0
	for i, s := range spans {
		from, to := max(x.column(s.From), at), x.column(s.To)
		switch {
		case s.Phase != runline.Queued:
			from = max(min(from, x.columns-1), at) // also for a span that begins at the right edge
			to = max(to, from+1)
		case i < len(spans)-1:
			to = min(to, x.columns-1) // leaves a column for the next span
		}
		from, to = min(from, x.columns), min(to, x.columns)
		if to <= from {
			continue
		}
		b.WriteString(strings.Repeat(" ", from-at))
		b.WriteString(term.Paint(color, phaseStyle(s.Phase), strings.Repeat(signOf(s.Phase), to-from)))
		at = to
	}
	b.WriteString(strings.Repeat(" ", max(x.columns-at, 0)))
	return b.String()
}

// marks draws the places where time is left out; "" for none.
func (x axis) marks() string {
	if len(x.Cuts) == 0 {
		return ""
	}
	line := []rune(strings.Repeat(" ", x.columns))
	for _, c := range x.Cuts {
		line[min(int(c.At*float64(x.columns)), x.columns-1)] = '╱'
	}
	return string(line)
}

// The measures of a timeline on a terminal, in columns.
const (
	maxKey     = 24
	maxOutcome = 34
	minBar     = 8
)

// timeline writes a row for each step.
func (s *Sheet) timeline(d *gatehouse.RunDetail) {
	if s.columns == 0 {
		for _, step := range d.Steps {
			of := step.ActionID + step.ChildRun
			cells := []string{
				step.Key, step.Word(), step.Uses, strconv.Itoa(step.Attempts), of, exact(step.StartedAt),
				exact(step.FinishedAt),
			}
			for i, c := range cells {
				cells[i] = term.Safe(c)
			}
			fmt.Fprintln(s.W, strings.Join(cells, "\t"))
		}
		return
	}
	for _, line := range s.TimelineRows(d) {
		fmt.Fprintln(s.W, line)
	}
}

func exact(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// TimelineRows draws the timeline for a terminal: the rows of the steps, then the marks of the
// omitted time, if any, and the legend.
func (s *Sheet) TimelineRows(d *gatehouse.RunDetail) []string {
	all := runline.Spans(d, d.Steps, s.now())
	keys, outcomes := make([]string, len(d.Steps)), make([]string, len(d.Steps))
	key, outcome := 0, 0
	for i, step := range d.Steps {
		keys[i] = term.Shorten(term.Safe(step.Key), maxKey)
		outcomes[i] = term.Shorten(term.Safe(outcomeText(d, step, all[i])), maxOutcome)
		key, outcome = max(key, term.ColumnsOf(keys[i])), max(outcome, term.ColumnsOf(outcomes[i]))
	}
	x := axis{runline.NewAxis(all), max(s.columns-key-outcome-2*term.ColumnGap, minBar)}
	lines := make([]string, 0, len(d.Steps)+2)
	gap := strings.Repeat(" ", term.ColumnGap)
	seen := make(map[runline.Phase]bool)
	for i, step := range d.Steps {
		for _, one := range all[i] {
			seen[one.Phase] = true
		}
		pad := strings.Repeat(" ", key-term.ColumnsOf(keys[i]))
		lines = append(lines, keys[i]+pad+gap+x.bar(all[i], s.color)+gap+term.Paint(s.color, stepStyle(step),
			outcomes[i]))
	}
	if marks := x.marks(); marks != "" {
		lines = append(lines, strings.Repeat(" ", key)+gap+term.Paint(s.color, term.Dim,
			strings.TrimRight(marks, " ")))
	}
	var legend bytes.Buffer
	for _, p := range runline.Phases() {
		if seen[p] {
			fmt.Fprintf(&legend, "%s %s   ", term.Paint(s.color, phaseStyle(p), signOf(p)), phaseWord(p))
		}
	}
	if omitted := x.Omitted(); omitted > 0 {
		fmt.Fprintf(&legend, "╱ %s of idle time left out", tookText(omitted))
	}
	return append(lines, strings.TrimRight(legend.String(), " "))
}

// outcomeText is the text beside a bar: the state, the duration of the step, and the number of
// attempts if there were several.
func outcomeText(d *gatehouse.RunDetail, s *gatehouse.Step, spans []runline.Span) string {
	text := s.Word()
	if runline.TakenOver(d.Run, s) {
		return text + " in an earlier run"
	}
	if n := len(spans); n > 0 {
		text += " " + tookText(spans[n-1].To.Sub(spans[0].From))
	}
	if s.Attempts > 1 {
		text += ", " + term.Count(s.Attempts, "attempt")
	}
	return text
}

func stepStyle(s *gatehouse.Step) string {
	switch s.Status {
	case gatehouse.StepSucceeded:
		if s.Skipped {
			return term.Dim
		}
		return term.Green
	case gatehouse.StepFailed:
		return term.Red
	case gatehouse.StepWaitingApproval:
		return term.Yellow
	case gatehouse.StepRunning, gatehouse.StepRetrying:
		return term.Blue
	}
	return term.Dim
}

// tookText returns a duration in its two largest units, or in one if it is under a minute.
func tookText(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
