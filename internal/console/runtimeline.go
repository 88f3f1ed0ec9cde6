package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// phase is what a step does for a while.
type phase string

// The phases. Each has its pattern beside its colour.
const (
	phaseQueued phase = "queued" // for its turn, or its next attempt
	phaseWaits  phase = "waits"  // for a time, an event, another run, or its items
	phasePeople phase = "people"
	phaseWorks  phase = "works"
	phaseFails  phase = "fails" // an attempt that came to nothing
)

func (p phase) word() string {
	switch p {
	case phaseQueued:
		return "queued"
	case phaseWaits:
		return "waited"
	case phasePeople:
		return "waited for people"
	case phaseFails:
		return "worked in vain"
	}
	return "worked"
}

// working reports whether something is done in the phase.
func (p phase) working() bool { return p == phaseWorks || p == phaseFails }

// stretch is a phase between two times.
type stretch struct {
	from, to time.Time
	phase    phase
}

// timeline is a run drawn along one axis of time.
type timeline struct {
	rows []timelineRow
	// phases are those that occur, in the order of the legend.
	phases []phase
	cuts   []timelineCut
	total  time.Duration
	// left counts the steps without a row of their own.
	left int
}

// timelineRow is a step with its bars.
type timelineRow struct {
	step  *gatehouse.Step
	bars  []timelineBar
	words string
}

// timelineBar is a stretch with its place, in hundredths of the width.
type timelineBar struct {
	phase    phase
	x, width float64
}

// timelineCut is a stretch in which no step worked, drawn shorter than it was.
type timelineCut struct {
	x      float64 // its middle, in hundredths of the width
	length time.Duration
}

// idleShare is how much of the working time one idle stretch takes at most.
const idleShare = 4

// minBar keeps whatever lasted visible, in hundredths of the width.
const minBar = 0.6

// newTimeline draws a run; now is the end of what goes on.
func newTimeline(d *gatehouse.RunDetail, now time.Time) *timeline {
	if d.FinishedAt != nil {
		now = *d.FinishedAt
	}
	attempts := make(map[string][]*gatehouse.StepAttempt)
	for _, a := range d.Attempts {
		attempts[a.StepID] = append(attempts[a.StepID], a)
	}
	actions := make(map[string]*gatehouse.Action)
	for _, a := range d.Actions {
		actions[a.ID] = a
	}
	shown := firstSteps(d.Steps)
	t := &timeline{left: len(d.Steps) - len(shown)}
	all := make([][]stretch, len(shown))
	for i, s := range shown {
		all[i] = stretchesOf(d.Run, s, attempts[s.ID], actions[s.ActionID], now)
	}
	x := newAxis(all)
	t.cuts, t.total = x.cuts, x.total()
	seen := make(map[phase]bool)
	for i, s := range shown {
		row := timelineRow{step: s, words: stretchWords(d.Run, s, all[i])}
		for _, one := range all[i] {
			seen[one.phase] = true
			from, to := x.place(one.from), x.place(one.to)
			row.bars = append(row.bars, timelineBar{phase: one.phase, x: min(from, 100-minBar), width: max(to-from, minBar)})
		}
		t.rows = append(t.rows, row)
	}
	for _, p := range []phase{phaseWorks, phaseFails, phasePeople, phaseWaits, phaseQueued} {
		if seen[p] {
			t.phases = append(t.phases, p)
		}
	}
	return t
}

// stretchesOf says what a step did from when to when, in order. A step that
// never began, or was taken over from another run, has none.
func stretchesOf(r *gatehouse.Run, step *gatehouse.Step, attempts []*gatehouse.StepAttempt, a *gatehouse.Action, now time.Time) []stretch {
	if takenOver(r, step) {
		return nil
	}
	end := now
	if step.FinishedAt != nil {
		end = *step.FinishedAt
	}
	b := &stretches{}
	b.begin(step.ReadyAt)
	b.begin(step.StartedAt)
	for _, one := range attempts {
		b.begin(&one.StartedAt)
		b.until(one.StartedAt, phaseQueued)
		p := phaseWorks
		if failedAttempt(one) {
			p = phaseFails
		}
		b.until(one.FinishedAt, p)
	}
	if b.at.IsZero() {
		return nil
	}
	b.rest(step, len(attempts), a, end)
	return b.list
}

// stretches are made one after the other.
type stretches struct {
	list []stretch
	at   time.Time
}

func (b *stretches) begin(t *time.Time) {
	if t != nil && (b.at.IsZero() || t.Before(b.at)) {
		b.at = *t
	}
}

func (b *stretches) until(to time.Time, p phase) {
	if to.After(b.at) {
		b.list = append(b.list, stretch{b.at, to, p})
		b.at = to
	}
}

// rest is what followed the last attempt.
func (b *stretches) rest(step *gatehouse.Step, attempts int, a *gatehouse.Action, end time.Time) {
	switch {
	case a != nil && a.DecidedVia == gatehouse.ViaPolicy:
		b.until(end, phaseWorks)
	case a != nil:
		if a.DecidedAt != nil && a.DecidedAt.Before(end) {
			b.until(*a.DecidedAt, phasePeople)
			b.until(end, phaseWorks)
		}
		b.until(end, phasePeople)
	case step.Status == gatehouse.StepReady, step.Status == gatehouse.StepRetrying:
		b.until(end, phaseQueued)
	case step.Status == gatehouse.StepRunning, attempts == 0 && step.Uses != "wait" && step.ChildRun == "":
		if step.StartedAt != nil {
			b.until(*step.StartedAt, phaseQueued)
		}
		b.until(end, phaseWorks)
	default:
		b.until(end, phaseWaits)
	}
}

// failedAttempt reports whether an attempt came to nothing.
func failedAttempt(a *gatehouse.StepAttempt) bool {
	switch a.Outcome {
	case string(gatehouse.StepRetrying), string(gatehouse.StepFailed), "lease_expired":
		return true
	}
	return false
}

// takenOver reports whether a retried run had the step's result before it began.
func takenOver(r *gatehouse.Run, step *gatehouse.Step) bool {
	return r.RetryOf != "" && step.FinishedAt != nil && step.FinishedAt.Before(r.CreatedAt)
}

// stretchWords reads a row out: the state, and how long what took.
func stretchWords(r *gatehouse.Run, s *gatehouse.Step, list []stretch) string {
	text := stateWord(stepWord(s))
	if takenOver(r, s) {
		return text + " in the run before"
	}
	var order []phase
	sum := make(map[phase]time.Duration)
	for _, x := range list {
		if !slices.Contains(order, x.phase) {
			order = append(order, x.phase)
		}
		sum[x.phase] += x.to.Sub(x.from)
	}
	var parts []string
	for _, p := range order {
		if sum[p] >= time.Millisecond || len(order) == 1 {
			parts = append(parts, p.word()+" "+span(sum[p]))
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

// axis maps times to places.
type axis struct {
	times  []time.Time
	places []float64
	cuts   []timelineCut
}

func newAxis(all [][]stretch) *axis {
	x := &axis{}
	for _, list := range all {
		for _, s := range list {
			x.times = append(x.times, s.from, s.to)
		}
	}
	slices.SortFunc(x.times, time.Time.Compare)
	x.times = slices.CompactFunc(x.times, time.Time.Equal)
	if len(x.times) < 2 {
		return x
	}
	busy, work := x.busy(all)
	most := work / idleShare
	at := make([]float64, len(x.times))
	type cut struct {
		from, to int
		length   time.Duration
	}
	var cuts []cut
	for i := 0; i < len(busy); {
		// A stretch is all that follows each other of one sort.
		j := i
		for j < len(busy) && busy[j] == busy[i] {
			j++
		}
		length, scale := x.times[j].Sub(x.times[i]), 1.0
		if !busy[i] && work > 0 && length > most {
			scale = float64(most) / float64(length)
			cuts = append(cuts, cut{i, j, length})
		}
		for ; i < j; i++ {
			at[i+1] = at[i] + scale*float64(x.times[i+1].Sub(x.times[i]))
		}
	}
	whole := max(at[len(at)-1], 1)
	for i := range at {
		at[i] *= 100 / whole
	}
	x.places = at
	for _, c := range cuts {
		x.cuts = append(x.cuts, timelineCut{x: (at[c.from] + at[c.to]) / 2, length: c.length})
	}
	return x
}

// busy tells between which times some step worked, and how long that was.
func (x *axis) busy(all [][]stretch) (busy []bool, work time.Duration) {
	busy = make([]bool, len(x.times)-1)
	for _, list := range all {
		for _, s := range list {
			if !s.phase.working() {
				continue
			}
			from, _ := slices.BinarySearchFunc(x.times, s.from, time.Time.Compare)
			for i := from; i < len(busy) && x.times[i].Before(s.to); i++ {
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

// place is where a time stands; it must be one of a stretch.
func (x *axis) place(t time.Time) float64 {
	i, ok := slices.BinarySearchFunc(x.times, t, time.Time.Compare)
	if !ok || i >= len(x.places) {
		return 0
	}
	return x.places[i]
}

func (x *axis) total() time.Duration {
	if len(x.times) < 2 {
		return 0
	}
	return x.times[len(x.times)-1].Sub(x.times[0])
}

// percent writes a place for a drawing.
func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

// cutWords says how long the stretches are that are drawn short.
func (t *timeline) cutWords() string {
	parts := make([]string, len(t.cuts))
	for i, c := range t.cuts {
		parts[i] = span(c.length)
	}
	return strings.Join(parts, ", ")
}
