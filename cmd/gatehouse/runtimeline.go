package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// phase is what a step does for a while.
type phase int

// The phases. Each has a sign, so that nothing hangs on colour.
const (
	phaseQueued phase = iota // for its turn, or its next attempt
	phaseWaits               // for a time, an event, another run, or its items
	phasePeople
	phaseWorks
	phaseFails // an attempt that came to nothing
)

func (p phase) sign() string {
	return [...]string{"·", "░", "▒", "█", "✗"}[p]
}

func (p phase) style() string {
	return [...]string{dim, dim, yellow, blue, red}[p]
}

// span is a phase between two times.
type span struct {
	from, to time.Time
	phase    phase
}

// spansOf says what a step did from when to when, in order; now is the end of
// what goes on. A step that never began, or was taken over from another run,
// has none.
func spansOf(d *gatehouse.RunDetail, step *gatehouse.Step, now time.Time) []span {
	if takenOver(d.Run, step) {
		return nil
	}
	end := now
	if step.FinishedAt != nil {
		end = *step.FinishedAt
	}
	var attempts []*gatehouse.StepAttempt
	for _, a := range d.Attempts {
		if a.StepID == step.ID {
			attempts = append(attempts, a)
		}
	}
	slices.SortFunc(attempts, func(a, b *gatehouse.StepAttempt) int { return a.StartedAt.Compare(b.StartedAt) })
	var out []span
	var at time.Time
	until := func(to time.Time, p phase) {
		switch {
		case at.IsZero():
			at = to
		case to.After(at):
			out = append(out, span{at, to, p})
			at = to
		}
	}
	begun := func(t *time.Time) {
		if t != nil && (at.IsZero() || t.Before(at)) {
			at = *t
		}
	}
	begun(step.ReadyAt)
	begun(step.StartedAt)
	for _, a := range attempts {
		begun(&a.StartedAt)
		until(a.StartedAt, phaseQueued)
		p := phaseWorks
		if failedAttempt(a) {
			p = phaseFails
		}
		until(a.FinishedAt, p)
	}
	if at.IsZero() {
		return nil
	}
	rest(d, step, len(attempts), end, until)
	return out
}

// rest is what followed the last attempt.
func rest(d *gatehouse.RunDetail, step *gatehouse.Step, attempts int, end time.Time, until func(time.Time, phase)) {
	a := actionOf(d, step)
	switch {
	case a != nil && a.DecidedVia == gatehouse.ViaPolicy:
		until(end, phaseWorks)
	case a != nil:
		if a.DecidedAt != nil && a.DecidedAt.Before(end) {
			until(*a.DecidedAt, phasePeople)
			until(end, phaseWorks)
		}
		until(end, phasePeople)
	case step.Status == gatehouse.StepReady, step.Status == gatehouse.StepRetrying:
		until(end, phaseQueued)
	case step.Status == gatehouse.StepRunning, attempts == 0 && step.Uses != "wait" && step.ChildRun == "":
		if step.StartedAt != nil {
			until(*step.StartedAt, phaseQueued)
		}
		until(end, phaseWorks)
	default:
		until(end, phaseWaits)
	}
}

// takenOver reports whether a retried run had the step's result before it began.
func takenOver(r *gatehouse.Run, step *gatehouse.Step) bool {
	return r.RetryOf != "" && step.FinishedAt != nil && step.FinishedAt.Before(r.CreatedAt)
}

// axis maps times to columns. Time in which no step worked counts at most a
// quarter of the time in which one did, each stretch of it.
type axis struct {
	times   []time.Time
	offsets []float64 // of each time, of the whole
	columns int
	// cuts are the columns at which time is left out, and omitted how much.
	cuts    []int
	omitted time.Duration
}

// idleShare is how much of the working time one idle stretch may take.
const idleShare = 4

func newAxis(all [][]span, columns int) *axis {
	x := &axis{columns: columns}
	for _, spans := range all {
		for _, s := range spans {
			x.times = append(x.times, s.from, s.to)
		}
	}
	slices.SortFunc(x.times, time.Time.Compare)
	x.times = slices.CompactFunc(x.times, time.Time.Equal)
	if len(x.times) < 2 {
		return x
	}
	busy := make([]bool, len(x.times)-1)
	var work time.Duration
	for i := range busy {
		busy[i] = slices.ContainsFunc(all, func(spans []span) bool { return worksAt(spans, x.times[i]) })
		if busy[i] {
			work += x.times[i+1].Sub(x.times[i])
		}
	}
	most := work / idleShare
	x.offsets = make([]float64, len(x.times))
	var cut []int
	for i := 0; i < len(busy); {
		// A stretch is all that follows each other of one sort.
		j := i
		for j < len(busy) && busy[j] == busy[i] {
			j++
		}
		length, scale := x.times[j].Sub(x.times[i]), 1.0
		if !busy[i] && work > 0 && length > most {
			scale = float64(most) / float64(length)
			x.omitted += length - most
			cut = append(cut, i, j)
		}
		for ; i < j; i++ {
			x.offsets[i+1] = x.offsets[i] + scale*float64(x.times[i+1].Sub(x.times[i]))
		}
	}
	whole := x.offsets[len(x.offsets)-1]
	for i := range x.offsets {
		x.offsets[i] /= max(whole, 1)
	}
	for i := 0; i < len(cut); i += 2 {
		middle := (x.offsets[cut[i]] + x.offsets[cut[i+1]]) / 2
		x.cuts = append(x.cuts, min(int(middle*float64(columns)), columns-1))
	}
	return x
}

// worksAt reports whether one of the spans is work that goes on at a time.
func worksAt(spans []span, at time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool {
		return s.phase >= phaseWorks && !at.Before(s.from) && at.Before(s.to)
	})
}

// column is where a time stands; it must be one of a span.
func (x *axis) column(t time.Time) int {
	i, _ := slices.BinarySearchFunc(x.times, t, time.Time.Compare)
	return int(x.offsets[i]*float64(x.columns) + 0.5)
}

// bar draws the spans of a step. Whatever lasted, but queueing, shows.
func (x *axis) bar(spans []span, color bool) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		from, to := max(x.column(s.from), at), x.column(s.to)
		if s.phase != phaseQueued {
			to = max(to, from+1)
		}
		from, to = min(from, x.columns), min(to, x.columns)
		if to <= from {
			continue
		}
		b.WriteString(strings.Repeat(" ", from-at))
		b.WriteString(paint(color, s.phase.style(), strings.Repeat(s.phase.sign(), to-from)))
		at = to
	}
	b.WriteString(strings.Repeat(" ", max(x.columns-at, 0)))
	return b.String()
}

// marks draws where time is left out; "" for nowhere.
func (x *axis) marks() string {
	if len(x.cuts) == 0 {
		return ""
	}
	line := []rune(strings.Repeat(" ", x.columns))
	for _, c := range x.cuts {
		line[c] = '╱'
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
	now := s.g.now()
	if d.FinishedAt != nil {
		now = *d.FinishedAt
	}
	all := make([][]span, len(d.Steps))
	keys, outcomes := make([]string, len(d.Steps)), make([]string, len(d.Steps))
	key, outcome := 0, 0
	for i, step := range d.Steps {
		all[i] = spansOf(d, step, now)
		keys[i] = shorten(safe(step.Key), maxKey)
		outcomes[i] = shorten(safe(outcomeText(d, step, all[i])), maxOutcome)
		key, outcome = max(key, columnsOf(keys[i])), max(outcome, columnsOf(outcomes[i]))
	}
	x := newAxis(all, max(s.columns-key-outcome-2*columnGap, minBar))
	lines := make([]string, 0, len(d.Steps)+2)
	gap := strings.Repeat(" ", columnGap)
	seen := [phaseFails + 1]bool{}
	for i, step := range d.Steps {
		for _, one := range all[i] {
			seen[one.phase] = true
		}
		pad := strings.Repeat(" ", key-columnsOf(keys[i]))
		lines = append(lines, keys[i]+pad+gap+x.bar(all[i], s.color)+gap+paint(s.color, stepStyle(step), outcomes[i]))
	}
	if marks := x.marks(); marks != "" {
		lines = append(lines, strings.Repeat(" ", key)+gap+paint(s.color, dim, strings.TrimRight(marks, " ")))
	}
	var legend bytes.Buffer
	for _, p := range []phase{phaseWorks, phaseFails, phasePeople, phaseWaits, phaseQueued} {
		if seen[p] {
			fmt.Fprintf(&legend, "%s %s   ", paint(s.color, p.style(), p.sign()), [...]string{"queued", "waits", "waits for people", "works", "failed"}[p])
		}
	}
	if x.omitted > 0 {
		fmt.Fprintf(&legend, "╱ %s of idle time left out", tookText(x.omitted))
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
func outcomeText(d *gatehouse.RunDetail, s *gatehouse.Step, spans []span) string {
	text := stepWord(s)
	if takenOver(d.Run, s) {
		return text + " before"
	}
	if n := len(spans); n > 0 {
		text += " " + tookText(spans[n-1].to.Sub(spans[0].from))
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
