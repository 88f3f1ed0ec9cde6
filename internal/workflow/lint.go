package workflow

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Lint finds parts of a valid workflow that are probably not intended. A person
// must judge them.
func Lint(d *Definition) []gatehouse.WorkflowProblem {
	var out []gatehouse.WorkflowProblem
	say := func(s *Step, format string, args ...any) {
		out = append(out, gatehouse.WorkflowProblem{
			Line: s.Line, Column: s.column, Detail: "step " + s.ID + ": " + fmt.Sprintf(format, args...),
		})
	}
	used := make(map[string]bool)
	for _, s := range d.Steps {
		for id := range s.reads {
			used[id] = true
		}
	}
	for id := range d.outputReads {
		used[id] = true
	}
	for _, s := range d.Steps {
		switch s.Kind {
		case KindConnector:
			if s.Risk == 0 {
				say(s, "has no risk; only the policy's and the connector's levels will count")
			}
		case KindTransform:
			if !used[s.ID] {
				say(s, "its output is never used, and a transform has no other effect")
			}
		case KindModel:
			if !used[s.ID] {
				say(s, "its output is never used, but each call of the model costs money")
			}
			if d.Limits.Budget == nil {
				say(s, "calls a model, but limits has no budget")
			}
		case KindWorker:
			if s.ownRetry && s.Retry.Max > 0 && s.IdempotencyKey == nil {
				say(s, "is retried; give it an idempotency_key that names its effect, so that the worker can recognize "+
					"a repetition")
			}
		case KindWait:
			if slices.Contains(s.withKeys, "event") && !slices.Contains(s.withKeys, "timeout") && d.Limits.Deadline == 0 {
				say(s, "may wait for an event without end: neither timeout nor limits.deadline is given")
			}
		}
		if d.repeated[s.ID] && s.IdempotencyKey != nil && !s.keyRepeats {
			say(s, "is repeated under the same idempotency_key: only the first iteration executes it, and the others reuse "+
				"its result. Put iteration in the key to execute it each time")
		}
		if s.OnRejected.Repeat != "" && !d.readsRejection(s) {
			say(s, "is repeated when it is rejected, but none of the repeated steps reads steps.%s.rejection, "+
				"so that the same question may be "+
				"asked again", s.ID)
		}
		if s.ForEach != nil && !s.ownItems {
			say(s, "has for_each without max_items; more than %d items fail it", DefaultItems)
		}
	}
	if n := d.writes(); d.Limits.MaxWritesPerRun > 0 && n > d.Limits.MaxWritesPerRun {
		out = append(out, gatehouse.WorkflowProblem{Line: 1, Column: 1, Detail: fmt.Sprintf(
			"%d steps propose actions, but limits.max_writes_per_run is %d", n, d.Limits.MaxWritesPerRun)})
	}
	slices.SortStableFunc(out, func(a, b gatehouse.WorkflowProblem) int { return a.Line - b.Line })
	return out
}

// writes counts the steps that propose.
func (d *Definition) writes() (n int) {
	for _, s := range d.Steps {
		if s.Kind.Proposes() {
			n++
		}
	}
	return n
}

// readsRejection reports whether one of the steps that a rejection of s repeats
// reads the rejection.
func (d *Definition) readsRejection(s *Step) bool {
	for _, other := range d.Repeats(s.ID, s.OnRejected) {
		if other.reads[s.ID] {
			return true
		}
	}
	return false
}
