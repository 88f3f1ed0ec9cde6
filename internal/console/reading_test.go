package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReversibleMeansTheConnectorCanUndo: people approve more readily if they believe
// that an action can be reversed.
func TestReversibleMeansTheConnectorCanUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	agent := w.agent("pricer")
	undone := w.propose(agent, nil)
	forGood := w.propose(agent, func(p *gatehouse.Proposal) { p.Connector = "once" })
	for _, page := range []string{"/actions/", "/inbox/bulk?pick="} {
		ana.get(page + forGood.ID).want(200).has("to 12.50 USD").lacks("reversible")
	}
	ana.get("/actions/"+undone.ID).want(200).has("from 10.00 (as the agent says) to 12.50 USD", "; reversible")
	ana.get("/inbox/bulk?pick=" + undone.ID).want(200).has("; reversible")
	list, err := w.gate.ListActions(w.admin, gatehouse.ActionFilter{})
	must(t, err)
	for _, a := range list.Items {
		if a.Undoable != (a.ID == undone.ID) {
			t.Errorf("%s on %s: undoable is %v", a.ID, a.Connector, a.Undoable)
		}
	}
}

// TestFailedActionsLinkToTheirHandling: people look at the action first, so its page must link to
// the page where its dead letter or unknown outcome is handled.
func TestFailedActionsLinkToTheirHandling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	propose := func(ref string) *gatehouse.Action {
		return w.propose(w.agent("agent-of-"+ref), func(p *gatehouse.Proposal) { p.Target.EntityRef = ref })
	}
	pending := propose("A")
	failed := w.settled(propose("B"), ana, gatehouse.PushFailed, "refused", "the target said no")
	unknown := w.settled(propose("C"), ana, gatehouse.PushUnknown, "timeout", "no answer")
	ana.get("/actions/" + pending.ID).want(200).lacks(testid("to-dispatch"))
	ana.get("/actions/"+failed.ID).want(200).has(testid("to-dispatch"), `href="/dispatch"`,
		"Failed. It was approved by ana", "last error: the target said no")
	ana.get("/actions/"+unknown.ID).want(200).has(testid("to-dispatch"), "Sent; outcome unknown. It was approved by ana")
	// An error is shown as a sentence.
	ana.get("/audit").want(http.StatusForbidden).has("This page needs the role auditor.")
}

// TestAuditNamesTheActor: the log shows names, because people do not know ids.
func TestAuditNamesTheActor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("asking", asking)
	ana := w.signIn("ana", gatehouse.RoleAdmin)
	run := w.start(w.agent("clerk"), "asking", `{"n":1,"list":[]}`)
	w.number()
	ana.get("/audit").want(200).has(`>clerk</b>`, `>ana</b>`, `href="/runs/`+run.ID+`"`)
	// An auditor sees each principal's name, because the log has the entry that created it.
	aud := w.signIn("aud", gatehouse.RoleAuditor)
	cleo := w.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover)
	w.number()
	aud.get("/audit").want(200).has(`>aud</b>`, `>clerk</b>`, `<b title="`+cleo.ID+`">cleo</b>`)
}

// TestManyWaitsAreCounted: of many waiting items of a for_each, a run's page names five, the list of
// runs two; both count the others.
func TestManyWaitsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	ana := w.signIn("ana", gatehouse.RoleApprover)
	w.apply("many", `name: many
steps:
  - {id: ask, for_each: "input.list", max_items: 9, uses: approval, with: {rationale: "and ${{ item }}?"}}
`)
	run := w.start(w.agent("clerk"), "many", `{"list":[1,2,3,4,5,6,7,8]}`)
	w.run(run.ID, "waiting for eight", func(r *gatehouse.Run) bool {
		n := 0
		for _, s := range r.Steps {
			if s.Status == gatehouse.StepWaitingApproval && s.ActionID != "" {
				n++
			}
		}
		return n == 8
	})
	p := ana.get("/runs/"+run.ID).want(200).has(testid("more-waits"), "and 3 more")
	if n := strings.Count(p.body, testid("waits-for")); n != 5 {
		t.Errorf("%d waits are at the top, want 5", n)
	}
	ana.get("/runs").want(200).has("and 6 more")
}
