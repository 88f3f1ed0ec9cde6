package console_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TestReportedChangeShows: after a report, the card says that the target has changed and who
// reported it.
func TestReportedChangeShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	ana.get("/actions/" + a.ID).want(http.StatusOK).lacks(testid("target-changed"))
	got, err := w.gate.TargetChanged(bot, gatehouse.TargetChange{
		Connector: a.Connector, EntityType: a.Target.EntityType, EntityRef: a.Target.EntityRef,
		Version: `8"><script>x</script>`,
	})
	if err != nil || got.Marked != 1 {
		t.Fatal(got, err)
	}
	ana.get("/actions/"+a.ID).want(http.StatusOK).has(testid("target-changed"),
		"The target has changed since the proposal", "bot", "8&#34;&gt;&lt;script&gt;").
		lacks("<script>x")
}

// TestApprovalStepsShowTheirEntity: the card of an approval step names the entity whose state was read for
// the question, and shows how that state differs now. After a report of a change, the step cannot be approved.
func TestApprovalStepsShowTheirEntity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	by, err := gatehouse.CallerFrom(bot)
	must(t, err)
	draft, err := w.gate.DraftFor(&gatehouse.Proposal{
		ActionType: "workflow_approval", Connector: "workflow", Operation: "approve", RiskLevel: gatehouse.L3,
		Target: gatehouse.Target{EntityType: "run", EntityRef: "run_1"}, ProposedChange: "{}",
		CurrentState: `{"price":"10.00"}`,
	}, gate.RunProposal{By: by, Asks: true, Title: "Lower the price?", About: &gatehouse.About{
		Connector: "erp", Operation: "update", EntityType: "item", EntityRef: `A"><script>x</script>`, Version: "7",
	}})
	must(t, err)
	must(t, draft.Judge(t.Context()))
	var a *gatehouse.Action
	must(t, w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) (err error) {
		a, err = draft.Insert(tx)
		return err
	}))
	path := "/actions/" + a.ID
	ana.get(path).want(http.StatusOK).
		has(testid("about"), "erp", `A&#34;&gt;&lt;script&gt;`, string(a.Approval.About.StateDigest)[:19],
			"The values in the column Before come from the workflow.").
		lacks("<script>x", testid("target-differs"))
	w.drifts(`{"price":"11.11"}`)
	ana.get(path+"/target").want(http.StatusOK).
		has(testid("target-differs"), "The target differs from the values that the workflow gave", "Now in erp", "10.00",
			"11.11")
	if _, err := w.gate.TargetChanged(bot, gatehouse.TargetChange{
		Connector: "erp", EntityType: "item", EntityRef: `A"><script>x</script>`, Version: "8",
	}); err != nil {
		t.Fatal(err)
	}
	ana.get(path).want(http.StatusOK).has(testid("target-changed"), "its version is now", "and was")
	d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
	ben := w.as(w.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover))
	if _, err := w.gate.Decide(ben, a.ID, d); gatehouse.CodeOf(err) != gatehouse.CodeTargetChanged {
		t.Errorf("approved a changed target: %v", err)
	}
}
