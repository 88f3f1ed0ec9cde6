package cli

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
)

// signOf is how a phase is drawn: each has a sign, so that nothing hangs on
// colour.
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
		return yellow
	case runline.Works:
		return blue
	case runline.Fails:
		return red
	}
	return dim
}

// phaseWord is what the legend says of a phase.
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

// column is where a time stands; it must be one of a span.
func (x axis) column(t time.Time) int { return int(x.Place(t)*float64(x.columns) + 0.5) }

// bar draws the spans of a step. Whatever lasted, but queueing, shows.
func (x axis) bar(spans []runline.Span, color bool) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		from, to := max(x.column(s.From), at), x.column(s.To)
		if s.Phase != runline.Queued {
			to = max(to, from+1)
		}
		from, to = min(from, x.columns), min(to, x.columns)
		if to <= from {
			continue
		}
		b.WriteString(strings.Repeat(" ", from-at))
		b.WriteString(paint(color, phaseStyle(s.Phase), strings.Repeat(signOf(s.Phase), to-from)))
		at = to
	}
	b.WriteString(strings.Repeat(" ", max(x.columns-at, 0)))
	return b.String()
}

// marks draws where time is left out; "" for nowhere.
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
func (s *sheet) timeline(d *gatehouse.RunDetail) {
	if s.columns == 0 {
		for _, step := range d.Steps {
			of := step.ActionID + step.ChildRun
			cells := []string{
				step.Key, stepWord(step), step.Uses, strconv.Itoa(step.Attempts), of, exact(step.StartedAt), exact(step.FinishedAt),
			}
			for i, c := range cells {
				cells[i] = safe(c)
			}
			fmt.Fprintln(s.w, strings.Join(cells, "\t"))
		}
		return
	}
	for _, line := range s.timelineRows(d) {
		fmt.Fprintln(s.w, line)
	}
}

func exact(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// timelineRows draws the timeline for a terminal: the rows of the steps, then
// the axis and what the signs mean.
func (s *sheet) timelineRows(d *gatehouse.RunDetail) []string {
	all := runline.Spans(d, d.Steps, s.now())
	keys, outcomes := make([]string, len(d.Steps)), make([]string, len(d.Steps))
	key, outcome := 0, 0
	for i, step := range d.Steps {
		keys[i] = shorten(safe(step.Key), maxKey)
		outcomes[i] = shorten(safe(outcomeText(d, step, all[i])), maxOutcome)
		key, outcome = max(key, columnsOf(keys[i])), max(outcome, columnsOf(outcomes[i]))
	}
	x := axis{runline.NewAxis(all), max(s.columns-key-outcome-2*columnGap, minBar)}
	lines := make([]string, 0, len(d.Steps)+2)
	gap := strings.Repeat(" ", columnGap)
	seen := make(map[runline.Phase]bool)
	for i, step := range d.Steps {
		for _, one := range all[i] {
			seen[one.Phase] = true
		}
		pad := strings.Repeat(" ", key-columnsOf(keys[i]))
		lines = append(lines, keys[i]+pad+gap+x.bar(all[i], s.color)+gap+paint(s.color, stepStyle(step), outcomes[i]))
	}
	if marks := x.marks(); marks != "" {
		lines = append(lines, strings.Repeat(" ", key)+gap+paint(s.color, dim, strings.TrimRight(marks, " ")))
	}
	var legend bytes.Buffer
	for _, p := range runline.Phases() {
		if seen[p] {
			fmt.Fprintf(&legend, "%s %s   ", paint(s.color, phaseStyle(p), signOf(p)), phaseWord(p))
		}
	}
	if omitted := x.Omitted(); omitted > 0 {
		fmt.Fprintf(&legend, "╱ %s of idle time left out", tookText(omitted))
	}
	return append(lines, strings.TrimRight(legend.String(), " "))
}

// stepWord is the state of a step, where one that was left out is told apart.
func stepWord(s *gatehouse.Step) string {
	if s.Status == gatehouse.StepSucceeded && s.Skipped {
		return "skipped"
	}
	return string(s.Status)
}

// outcomeText is what stands beside a bar: the state, for how long, and how
// often it was tried.
func outcomeText(d *gatehouse.RunDetail, s *gatehouse.Step, spans []runline.Span) string {
	text := stepWord(s)
	if runline.TakenOver(d.Run, s) {
		return text + " before"
	}
	if n := len(spans); n > 0 {
		text += " " + tookText(spans[n-1].To.Sub(spans[0].From))
	}
	if s.Attempts > 1 {
		text += ", " + count(s.Attempts, "attempt")
	}
	return text
}

func stepStyle(s *gatehouse.Step) string {
	switch s.Status {
	case gatehouse.StepSucceeded:
		if s.Skipped {
			return dim
		}
		return green
	case gatehouse.StepFailed:
		return red
	case gatehouse.StepWaitingApproval:
		return yellow
	case gatehouse.StepRunning, gatehouse.StepRetrying:
		return blue
	}
	return dim
}

// tookText is a duration in the two units that matter.
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
