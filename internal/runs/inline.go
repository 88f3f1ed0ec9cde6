package runs

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// An inline step only computes a value from the data of its run. When the step before it closes, the same
// transaction may make the inline step ready, and lease, execute and close it, for the worker that holds the
// lease of the step before. The row, the attempt and the log entry of an inline step are the same as those of
// any other step; no reader sees the intermediate states. A chain of inline steps counts as one lease of its
// lane: the workflow has no more running steps than without it, and other lanes wait at most one transaction
// longer.

// closeHeld closes a leased step by fn, together with the inline steps that follow. output is the step's
// output, "" when the step is skipped.
func (r *Runs) closeHeld(
	ctx context.Context, w *work, worker string, output gatehouse.JSON, fn func(*runTx) error,
) error {
	closeWith := func(inline map[string]*work) error {
		return r.moveHeld(ctx, w.step, worker, func(m *runTx) error {
			m.inline = inline
			return fn(m)
		})
	}
	inline := r.evaluateInline(w, output)
	if w.storing != nil {
		w.storing()
	}
	err := closeWith(inline)
	if err != nil && len(inline) > 0 && ctx.Err() == nil && gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
		// Perhaps an inline step cannot be stored, for example because another step has its idempotency
		// key. That must not prevent this step from closing.
		return closeWith(nil)
	}
	return err
}

// evaluateInline evaluates the chain of inline steps that may become ready when this step closes, up to
// inlineLimit. It runs before the transaction, which checks which of the steps are ready. The expressions may
// use only values that were read for this step, and outputs of earlier steps in the chain. All outputs
// together must fit the size limit of one step's output.
func (r *Runs) evaluateInline(w *work, output gatehouse.JSON) map[string]*work {
	if _, n := w.step.Iteration(); w.inlineLimit == 0 || n > 1 {
		return nil
	}
	var inline map[string]*work
	left := gatehouse.MaxStepOutput
	chain := map[string]bool{w.step.Key: true}
	values := &templateValues{run: w.run, def: w.def, known: w.known}
	values.known.note(w.step.Key, output)

	for found := true; found; {
		found = false
		for _, spec := range w.def.Steps {
			if chain[spec.ID] || !needsAny(spec, chain) || !isInline(spec) {
				continue
			}
			if len(inline) == w.inlineLimit {
				return inline
			}
			next := &work{step: &gatehouse.Step{Key: spec.ID}, run: w.run, def: w.def, spec: spec}
			values.err = nil
			if failure := next.evaluate(values.scope(nil)); failure != nil || values.err != nil || len(next.with) > left {
				continue // the step is leased and executed in the usual way
			}

			if inline == nil {
				inline = make(map[string]*work)
			}
			inline[spec.ID], chain[spec.ID], found = next, true, true
			left -= len(next.with)
			if next.skip {
				values.known.note(spec.ID, "")
			} else {
				next.output = orNull(r.redactResult(w.run.Tenant, gatehouse.StepResult{Output: next.with}).Output)
				values.known.note(spec.ID, next.output)
			}
		}
	}
	return inline
}

// needsAny reports whether a step needs one of the steps in the chain.
func needsAny(spec *workflow.Step, chain map[string]bool) bool {
	return slices.ContainsFunc(spec.Needs, func(need string) bool { return chain[need] })
}

// isInline reports whether a step computes one value and has no effect outside its run: a transform without
// items. A transform always has the default idempotency key.
func isInline(spec *workflow.Step) bool {
	return spec.Kind == workflow.KindTransform && spec.ForEach == nil
}

// executeInline closes a blocked step that is now ready, if evaluateInline has evaluated the step.
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
		s.Input, s.Output, s.IdempotencyKey = w.with, w.output, w.key
	}
	if err := m.tx.PassStep(s, m.actor); err != nil {
		return false, err
	}
	m.outcomes, m.inlineDone = append(m.outcomes, s.Status), m.inlineDone+1
	return true, m.leaf("step.succeeded", s, string(gatehouse.StepRunning), string(s.Status), data...)
}
