package runs

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// An inline step only computes a value from the data of its run. When the preceding step closes,
// the inline step may be readied, leased, executed and closed in the same transaction, by the
// worker that holds the preceding step's lease. Its row, attempt and leaf are the usual ones; no
// reader sees the intermediate states. The chain counts as one lease of its lane, so the number
// of running steps of the workflow does not grow, and other lanes wait at most one transaction
// longer.

// closeHeld closes a held step by fn, together with the inline steps that follow it. output is
// the step's output, "" when it is skipped.
func (r *Runs) closeHeld(
	ctx context.Context, w *work, worker string, output gatehouse.JSON, fn func(*runTx) error,
) error {
	with := func(ahead map[string]*work) error {
		return r.moveHeld(ctx, w.step, worker, func(m *runTx) error {
			m.inline = ahead
			return fn(m)
		})
	}
	ahead := w.evaluateInline(output)
	if w.storing != nil {
		w.storing()
	}
	err := with(ahead)
	if err != nil && len(ahead) > 0 && ctx.Err() == nil && gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
		// A following step may be impossible to store, for instance because another
		// step has its key. That must not prevent this step from closing.
		return with(nil)
	}
	return err
}

// evaluateInline evaluates, before the transaction, the chain of inline steps that the end of this
// step may make ready, up to the limit. Their expressions may use only values read for this step
// and outputs of earlier steps in the chain. All outputs together must fit the bound of one
// step. The transaction checks which of the steps are ready.
func (w *work) evaluateInline(output gatehouse.JSON) map[string]*work {
	if _, n := w.step.Iteration(); w.inlineLimit == 0 || n > 1 {
		return nil
	}
	var ahead map[string]*work
	left := gatehouse.MaxStepOutput
	row := map[string]bool{w.step.Key: true}
	b := &templateValues{run: w.run, def: w.def, known: w.known}
	b.known.note(w.step.Key, output)
	for found := true; found; {
		found = false
		for _, spec := range w.def.Steps {
			if row[spec.ID] || !needsAny(spec, row) || !isInline(spec) {
				continue
			}
			if len(ahead) == w.inlineLimit {
				return ahead
			}
			next := &work{step: &gatehouse.Step{Key: spec.ID}, run: w.run, def: w.def, spec: spec}
			b.err = nil
			if failure := next.evaluate(b.scope(nil)); failure != nil || b.err != nil || len(next.with) > left {
				continue // the step is leased and executed in the usual way
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

// needsAny reports whether the step needs one of the steps in the chain.
func needsAny(spec *workflow.Step, row map[string]bool) bool {
	return slices.ContainsFunc(spec.Needs, func(need string) bool { return row[need] })
}

// isInline reports whether the step computes one value and has no effect outside its
// run. It has the default idempotency key, since a transform cannot set another.
func isInline(spec *workflow.Step) bool {
	return spec.Kind == workflow.KindTransform && spec.ForEach == nil
}

// executeInline executes a blocked step that is now ready, if it was evaluated ahead.
func (m *runTx) executeInline(s *gatehouse.Step) (done bool, err error) {
	w := m.inline[s.Key]
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
	m.outcomes, m.inlineDone = append(m.outcomes, s.Status), m.inlineDone+1
	return true, m.leaf("step.succeeded", s, string(gatehouse.StepRunning), string(s.Status), data...)
}
