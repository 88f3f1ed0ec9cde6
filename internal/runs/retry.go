package runs

import (
	"context"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// RetryRun retries a failed or canceled run as a new run of the same version, and
// copies its succeeded steps.
func (r *Runs) RetryRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	return r.retry(ctx, id, "")
}

// RetryRunFrom retries an ended run as a new run, which executes the step and its
// dependents again, and copies the other succeeded steps.
func (r *Runs) RetryRunFrom(ctx context.Context, id, step string) (*gatehouse.Run, error) {
	if step == "" {
		return nil, gatehouse.Violations{{Pointer: "/from", Detail: "is required"}}.Err()
	}
	return r.retry(ctx, id, step)
}

func (r *Runs) retry(ctx context.Context, id, step string) (*gatehouse.Run, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := r.FindRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := maySteer(c, old); err != nil {
		return nil, err
	}
	switch {
	case step != "" && !old.Status.Final():
		return nil, gatehouse.E(gatehouse.CodeTooLate,
			"only a run that has ended can be retried from a step; this one is %s", old.Status).
			With("current_status", old.Status)
	case step == "" && old.Status != gatehouse.RunFailed && old.Status != gatehouse.RunCanceled:
		return nil, gatehouse.E(gatehouse.CodeTooLate, "only a failed or canceled run can be retried; this one is %s",
			old.Status).
			With("current_status", old.Status)
	}
	from := origin{trigger: gatehouse.TriggerRetry, ref: retryRef(old.ID, step), by: c.Principal, actor: c.Principal.ID,
		again: old}
	out, err := usecase.Perform(ctx, r.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Run, error) {
		w, err := tx.FindWorkflow(old.Workflow, old.Version)
		if err != nil {
			return nil, err
		}
		def, err := r.definition(tx, old.Tenant, old.Workflow, old.Version)
		if err != nil {
			return nil, err
		}
		if step != "" {
			if err := mayRedo(old, def, step); err != nil {
				return nil, err
			}
		}
		draft := newRun(w, def, old.Input, from)
		known, err := r.known(tx, draft)
		if err != nil || known != nil {
			return known, err
		}
		return r.insert(tx, draft, def, from)
	})
	if err != nil {
		return nil, err
	}
	r.notifyStarted(out)
	return out, nil
}

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
