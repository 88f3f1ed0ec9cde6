package runs

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// retryRef is the trigger_ref of the retry of a run; from is the step that the retry
// begins from, "" if all succeeded steps are copied.
func retryRef(id, from string) string {
	if from == "" {
		return "retry:" + id
	}
	return "retry:" + id + ":" + from
}

// redoes reports whether a retry executes a step again even if it succeeded before:
// the step that the retry begins from, and every step that needs it.
func redoes(run *gatehouse.Run, def *workflow.Definition, key string) bool {
	from, ok := strings.CutPrefix(run.TriggerRef, retryRef(run.RetryOf, "")+":")
	if run.RetryOf == "" || !ok {
		return false
	}
	key, _, _ = strings.Cut(key, "[")
	id, _, _ := strings.Cut(key, "#")
	return needs(def, id, from, make(map[string]bool))
}

// needs reports whether a step is the other one, or needs it, directly or indirectly.
func needs(def *workflow.Definition, id, other string, seen map[string]bool) bool {
	if id == other {
		return true
	}
	spec := def.Step(id)
	if spec == nil || seen[id] {
		return false
	}
	seen[id] = true
	return slices.ContainsFunc(spec.Needs, func(need string) bool { return needs(def, need, other, seen) })
}

// mayRedo refuses a step that the workflow does not have, and a run with repeated
// steps: the store does not know which iterations the other steps have used.
func mayRedo(run *gatehouse.Run, def *workflow.Definition, from string) error {
	var v gatehouse.Violations
	if def.Step(from) == nil {
		v.Add("/from", "is not a step of the workflow")
	}
	for _, s := range run.Steps {
		if _, n := s.Iteration(); n > 1 {
			v.Add("/from", "cannot be given: steps of this run were repeated")
			break
		}
	}
	return v.Err()
}
