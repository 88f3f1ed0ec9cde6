// Package runline arranges a run on a time axis for drawing: the phases of each step, and the
// position of each time. It also adds up the costs of a run. It is pure: the caller passes the present time.
package runline

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Phase is what a step does during a span.
type Phase string

// The phases.
const (
	Queued Phase = "queued" // for a worker, or for its next attempt
	Waits  Phase = "waits"  // for a time, an event, another run, or its items
	People Phase = "people"
	Works  Phase = "works"
	Fails  Phase = "fails" // an attempt that failed
)

// Phases lists all phases in the order of a legend.
func Phases() []Phase { return []Phase{Works, Fails, People, Waits, Queued} }

// Working reports whether the step does work in the phase.
func (p Phase) Working() bool { return p == Works || p == Fails }

// Span is a phase between two times.
type Span struct {
	From, To time.Time
	Phase    Phase
}

// Spans returns the spans of each step, in order. now is the end of the current spans of an
// unfinished run. A step that never became ready, or whose result comes from another run, has none.
func Spans(d *gatehouse.RunDetail, steps []*gatehouse.Step, now time.Time) [][]Span {
	if d.FinishedAt != nil {
		now = *d.FinishedAt
	}
	attempts := make(map[string][]*gatehouse.StepAttempt)
	for _, a := range d.Attempts {
		attempts[a.StepID] = append(attempts[a.StepID], a)
	}
	actions := make(map[string]*gatehouse.Action, len(d.Actions))
	for _, a := range d.Actions {
		actions[a.ID] = a
	}
	all := make([][]Span, len(steps))
	for i, s := range steps {
		own := attempts[s.ID]
		slices.SortStableFunc(own, func(a, b *gatehouse.StepAttempt) int { return a.StartedAt.Compare(b.StartedAt) })
		all[i] = spansOf(d.Run, s, own, actions[s.ActionID], now)
	}
	return all
}

func spansOf(
	r *gatehouse.Run, step *gatehouse.Step, attempts []*gatehouse.StepAttempt, a *gatehouse.Action, now time.Time,
) []Span {
	if TakenOver(r, step) {
		return nil
	}
	end := now
	if step.FinishedAt != nil {
		end = *step.FinishedAt
	}
	b := &builder{}
	b.begin(step.ReadyAt)
	b.begin(step.StartedAt)
	for _, one := range attempts {
		b.begin(&one.StartedAt)
		b.until(one.StartedAt, Queued)
		p := Works
		if FailedAttempt(one) {
			p = Fails
		}
		b.until(one.FinishedAt, p)
	}
	if b.at.IsZero() {
		return nil
	}
	b.rest(step, attempts, a, end)
	return b.list
}

// builder makes consecutive spans.
type builder struct {
	list []Span
	at   time.Time
}

func (b *builder) begin(t *time.Time) {
	if t != nil && (b.at.IsZero() || t.Before(b.at)) {
		b.at = *t
	}
}

func (b *builder) until(to time.Time, p Phase) {
	if to.After(b.at) {
		b.list = append(b.list, Span{b.at, to, p})
		b.at = to
	}
}

// rest adds what followed the last attempt.
func (b *builder) rest(
	step *gatehouse.Step, attempts []*gatehouse.StepAttempt, a *gatehouse.Action, end time.Time,
) {
	switch {
	case a != nil && a.DecidedVia == gatehouse.ViaPolicy:
		b.until(end, Works)
	case a != nil:
		if a.DecidedAt != nil && a.DecidedAt.Before(end) {
			b.until(*a.DecidedAt, People)
			b.until(end, Works)
		}
		b.until(end, People)
	case step.Status == gatehouse.StepReady, step.Status == gatehouse.StepRetrying, canceledInQueue(step, attempts):
		b.until(end, Queued)
	case step.Status == gatehouse.StepRunning, len(attempts) == 0 && step.Uses != "wait" && step.ChildRun == "":
		if step.StartedAt != nil {
			b.until(*step.StartedAt, Queued)
		}
		b.until(end, Works)
	default:
		b.until(end, Waits)
	}
}

// canceledInQueue reports whether a step was canceled while it waited for a worker or for its next attempt.
func canceledInQueue(step *gatehouse.Step, attempts []*gatehouse.StepAttempt) bool {
	if step.Status != gatehouse.StepCanceled {
		return false
	}
	if n := len(attempts); n > 0 {
		return FailedAttempt(attempts[n-1])
	}
	return step.StartedAt == nil
}

// FailedAttempt reports whether an attempt failed.
func FailedAttempt(a *gatehouse.StepAttempt) bool {
	switch a.Outcome {
	case string(gatehouse.StepRetrying), string(gatehouse.StepFailed):
		return true
	}
	return Lost(a)
}

// Lost reports whether an attempt ended because its worker let the lease expire.
func Lost(a *gatehouse.StepAttempt) bool { return a.Code == "lease_expired" }

// TakenOver reports whether the step's result comes from the run that this one retries.
func TakenOver(r *gatehouse.Run, step *gatehouse.Step) bool {
	return r.RetryOf != "" && step.FinishedAt != nil && step.FinishedAt.Before(r.CreatedAt)
}
