package workflow_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

const loop = `name: letter
steps:
  - id: draft
    uses: worker.draft
    with: {notes: "${{ has(steps.review.rejection) ? steps.review.rejection.notes : '' }}", n: "${{ iteration }}"}
  - {id: shape, uses: transform, with: {text: "${{ steps.draft.output }}"}}
  - id: review
    uses: approval
    with: {change: "${{ steps.shape.output }}"}
    on_rejected: {repeat: draft, max: 2}
    on_expired: continue
  - {id: send, uses: worker.send, if: "!has(steps.review.rejection) || steps.review.output.status == 'applied'",
      with: "${{ steps.shape.output }}"}
`

func TestRefusalsInTests(t *testing.T) {
	t.Parallel()
	d := mustParse(t, loop)
	const tests = `tests:
  - name: the second is taken
    input: {}
    steps:
      draft: [{output: long}, {output: short}]
      review: [{rejected: true, notes: too long}, {applied: true}]
      send: {output: sent}
    expect:
      status: succeeded
      steps: {review: succeeded, "review#2": succeeded, "draft#2": succeeded}
      outputs: {"shape": {text: long}, "shape#2": {text: short}}
      proposed: {review: {change: {text: long}}, "review#2": {change: {text: short}}}
  - name: rejected once too often
    input: {}
    steps: {draft: {output: long}, review: {rejected: true}}
    expect: {status: failed_terminal, failure: rejected, steps: {"review#3": failed_terminal, send: canceled}}
  - name: nobody answers
    input: {}
    steps: {draft: {output: long}, review: {expired: true}}
    expect: {status: succeeded, steps: {send: skipped}}
`
	for _, r := range workflow.RunTests(d, parseTests(t, d, tests)) {
		if !r.Passed() {
			t.Errorf("%s: %v", r.Name, r.Differences)
		}
	}
}

func TestRefusalsAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, want string }{
		"no way back": {
			steps("- {id: a, uses: worker.x}", "- {id: b, uses: approval, on_rejected: {repeat: c}}",
				"- {id: c, uses: worker.x}"), "4:49: step b cannot repeat c, which it does not need"},
		"no such step": {steps("- {id: b, uses: approval, on_expired: {repeat: z}}"), `there is no step "z"`},
		"itself":       {steps("- {id: b, uses: approval, on_rejected: {repeat: b}}"), "step b cannot repeat b"},
		"beside the way": {
			steps("- {id: a, uses: worker.x}", "- {id: n, uses: worker.x}",
				"- {id: b, uses: approval, needs: [a], on_rejected: {repeat: a}}"),
			"step n needs a, but is not repeated with it"},
		"too often": {
			steps("- {id: a, uses: worker.x}", "- {id: b, uses: approval, on_rejected: {repeat: a, max: 9}}"), "max must be"},
		"a word": {steps("- {id: b, uses: approval, on_rejected: again}"),
			"on_rejected must be fail, continue, or repeat"},
		"no approval": {steps("- {id: b, uses: worker.x, on_rejected: continue}"),
			"on_rejected has no effect in a step that uses worker"},
		"items": {
			steps("- {id: a, uses: worker.x}",
				"- {id: b, uses: approval, for_each: '[1]', max_items: 2, on_rejected: {repeat: a}}"),
			"a step with for_each cannot repeat"},
		"one key": {
			steps("- {id: a, uses: worker.x}", "- {id: b, uses: approval, idempotency_key: k, on_rejected: {repeat: a}}"),
			"idempotency_key must contain iteration"},
		"iteration beside": {steps("- {id: a, uses: transform, with: '${{ iteration }}'}"),
			"iteration exists only in a step that"},
		"rejection before": {
			steps("- {id: o, uses: transform, with: '${{ steps.b.rejection }}'}", "- {id: a, uses: worker.x}",
				"- {id: b, uses: approval, on_rejected: {repeat: a}}"), "the rejection of step b cannot be read here"},
		"rejection, fails": {
			steps("- {id: b, uses: approval}", "- {id: c, uses: transform, with: '${{ steps.b.rejection }}'}"),
			"the rejection of step b cannot be read here"},
	} {
		if got := problems(t, c.source).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	d := mustParse(t,
		steps("- {id: a, uses: worker.x, idempotency_key: k}", "- {id: b, uses: approval, on_rejected: {repeat: a}}"))
	got := ""
	for _, p := range workflow.Lint(d) {
		got += p.Detail + "\n"
	}
	for _, want := range []string{"step a: is repeated under the same idempotency_key",
		"step b: is repeated when it is rejected, but none of the repeated steps reads steps.b.rejection"} {
		if !strings.Contains(got, want) {
			t.Errorf("the linter does not report %q:\n%s", want, got)
		}
	}
}
