package workflow_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestLint checks each remark, and that an ordinary step gets none.
func TestLint(t *testing.T) {
	t.Parallel()
	d := mustParse(t, "name: w\nlimits: {max_writes_per_run: 1}\nsteps:\n"+
		"- {id: a, uses: connector.s.update, action_type: x, with: {target: {entity_type: t, entity_ref: r}, change: {}}}\n"+
		"- {id: b, uses: connector.s.update, action_type: x, risk: low, with: {target: {entity_type: t, entity_ref: r}, "+
		"change: {}}}\n"+
		"- {id: c, uses: transform, with: 1}\n"+
		"- {id: d, uses: transform, with: 1}\n"+
		"- {id: e, uses: model.x, with: {model: m, prompt: p}}\n"+
		"- {id: f, uses: worker.x, retry: {max: 2}, for_each: steps.d.output}\n"+
		"- {id: g, uses: worker.x, retry: {max: 2}, idempotency_key: k}\n"+
		"- {id: h, uses: wait, with: {event: e}}\n"+
		"- {id: i, uses: wait, with: {event: e, timeout: 1h}}\n"+
		"- {id: j, uses: transform, with: 1}\n"+
		"output: '${{ steps.j.output }}'\n")
	var got []string
	for _, p := range workflow.Lint(d) {
		got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Detail))
	}
	if diff := cmp.Diff([]string{
		"1:1: 2 steps propose actions, but limits.max_writes_per_run is 1",
		"4:3: step a: has no risk; only the policy's and the connector's levels will count",
		"6:3: step c: its output is never used, and a transform has no other effect",
		"8:3: step e: its output is never used, but each call of the model costs money",
		"8:3: step e: calls a model, but limits has no budget",
		"9:3: step f: is retried; give it an idempotency_key that names its effect, so that the worker can recognize a " +
			"repetition",
		"9:3: step f: has for_each without max_items; more than 100 items fail it",
		"11:3: step h: may wait for an event without end: neither timeout nor limits.deadline is given",
	}, got); diff != "" {
		t.Error(diff)
	}
	if more := workflow.Lint(triage(t)); len(more) != 0 {
		t.Errorf("of a workflow without fault: %v", more)
	}
}
