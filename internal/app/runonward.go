package app

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// A step that only makes a value of what its run has come to needs nobody else:
// when the step before it closes, it may be readied, leased, carried out and
// closed in the same transaction, by the worker that holds that one's lease. Its
// row, attempt and leaf are those that it would have had; nobody sees the states
// between, and where the transaction does not commit, none of it has happened.
// The lease that it is carried under counts for one of its lane, as before: no
// more steps of the workflow are running at any time, and nobody else waits
// longer than for one transaction.

// closeHeld closes a held step by fn, and what can be carried out with it. output
// is what the step comes to, "" when it is skipped.
func (r *Runs) closeHeld(ctx context.Context, w *work, worker string, output gatehouse.JSON, fn func(*moving) error) error {
	with := func(ctx context.Context, ahead map[string]*work) error {
		return r.moveHeld(ctx, w.step, worker, func(m *moving) error {
			m.ahead = ahead
			return fn(m)
		})
	}
	ahead := w.lookAhead(output)
	w.mate.stores()
	err := with(w.mate.join(ctx), ahead)
	if err != nil && len(ahead) > 0 && ctx.Err() == nil && gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
		// It may be a step that follows which cannot be stored, such as under a key
		// that another one has: that keeps this one from nothing.
		return with(ctx, nil)
	}
	return err
}

// lookAhead evaluates, before the transaction, the steps that the end of this one
// may make ready, and those that these may: as many as may be carried out with
// it, of those whose expressions look at nothing but what the steps before them
// in this very row came to and what was read for this one, and that come to no
// more together than one step may. Whether they are ready shows in the
// transaction.
func (w *work) lookAhead(output gatehouse.JSON) map[string]*work {
	if _, n := w.step.Iteration(); w.onward == 0 || n > 1 {
		return nil
	}
	var ahead map[string]*work
	left := MaxStepOutput
	row := map[string]bool{w.step.Key: true}
	b := &templateValues{run: w.run, def: w.def, known: w.known}
	b.known.note(w.step.Key, output)
	for found := true; found; {
		found = false
		for _, spec := range w.def.Steps {
			if row[spec.ID] || !follows(spec, row) || !alone(spec) {
				continue
			}
			if len(ahead) == w.onward {
				return ahead
			}
			next := &work{step: &gatehouse.Step{Key: spec.ID}, run: w.run, def: w.def, spec: spec}
			b.err = nil
			if failure := next.evaluate(b.scope(nil)); failure != nil || b.err != nil || len(next.with) > left {
				continue // it is leased, and comes to what it comes to there
			}
			if ahead == nil {
				ahead = make(map[string]*work)
			}
			ahead[spec.ID], row[spec.ID], found = next, true, true
			left -= len(next.with)
			if next.skip {
				b.known.note(spec.ID, "")
			} else {
				b.known.note(spec.ID, orNull(next.with))
			}
		}
	}
	return ahead
}

// follows reports whether a step needs one of those.
func follows(spec *workflow.Step, row map[string]bool) bool {
	return slices.ContainsFunc(spec.Needs, func(need string) bool { return row[need] })
}

// alone reports whether a step touches nothing outside its run: it makes one
// value. Its key is the run's own, since a transform cannot name another.
func alone(spec *workflow.Step) bool {
	return spec.Kind == workflow.KindTransform && spec.ForEach == nil
}

// carryOn carries out a blocked step that is ready now, if it was evaluated ahead.
func (m *moving) carryOn(s *gatehouse.Step) (done bool, err error) {
	w := m.ahead[s.Key]
	if w == nil || s.Status != gatehouse.StepBlocked || s.Tool != "" {
		return false, nil
	}
	now := m.tx.Now()
	s.ReadyAt, s.StartedAt, s.FinishedAt = &now, &now, &now
	s.Attempts, s.Generation = s.Attempts+1, s.Generation+1
	s.Status, s.Output, s.Skipped = gatehouse.StepSucceeded, "null", w.skip
	var data []gatehouse.Member
	if w.skip {
		data = append(data, gatehouse.Member{Name: "skipped", Value: "true"})
	} else {
		s.Input, s.Output, s.IdempotencyKey = w.with, orNull(w.with), w.key
	}
	if err := m.tx.PassStep(s, m.actor); err != nil {
		return false, err
	}
	m.outcomes, m.passed = append(m.outcomes, s.Status), m.passed+1
	return true, m.leaf("step.succeeded", s, string(gatehouse.StepRunning), string(s.Status), data...)
}
