package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestIterationShowsDifferences: the page of a question that is asked again shows the reviewer's
// words and the differences only. A context that an agent forges adds nothing.
func TestIterationShowsDifferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	ana := w.signIn("ana", gatehouse.RoleApprover)
	w.apply("letter", `name: letter
steps:
  - {id: draft, uses: transform, with: "${{ has(steps.review.rejection) ? 'shorter' : 'long' }}"}
  - {id: review, uses: approval, with: {change: {to: all, text: "${{ steps.draft.output }}"}},
      on_rejected: {repeat: draft}}
`)
	bot := w.agent("bot")
	run := w.reached(w.start(bot, "letter", `{}`).ID, gatehouse.RunWaitingApproval)
	first := w.action(run.StepOf("review").ActionID)
	ana.get("/actions/" + first.ID).want(http.StatusOK).lacks(testid("iteration"))
	ana.post("/actions/"+first.ID+"/decide",
		append(decision(first, gatehouse.Reject), "notes", "too <b>long</b>")...).want(http.StatusOK)
	w.afterHold()
	run = w.run(run.ID, "asking again",
		func(r *gatehouse.Run) bool { s := r.StepOf("review#2"); return s != nil && s.ActionID != "" })

	page := ana.get("/actions/" + run.StepOf("review#2").ActionID).want(http.StatusOK).has(
		"Iteration 2: what has changed since the last")
	section := between(page.body, testid("iteration"), "</section>")
	for _, want := range []string{"ana", "too &lt;b&gt;long&lt;/b&gt;", "text", "shorter", "/actions/" + first.ID} {
		if !strings.Contains(section, want) {
			t.Errorf("the section lacks %q: %s", want, section)
		}
	}
	if strings.Contains(section, "<code>to</code>") {
		t.Errorf("the section shows what is the same: %s", section)
	}

	forged := w.propose(bot, func(p *gatehouse.Proposal) {
		p.Context = gatehouse.JSON(`{"iteration":2,"previous_action":"` + first.ID + `"}`)
	})
	ana.get("/actions/" + forged.ID).want(http.StatusOK).lacks(testid("iteration"))
}
