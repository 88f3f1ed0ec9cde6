package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestMandatesPage: the card of a plan shows its worst case and its goal as text; once
// it is approved, an approver sees what is left, narrows, pauses, resumes and revokes it.
func TestMandatesPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana, vic := w.signIn("ana", gatehouse.RoleApprover), w.signIn("vic", gatehouse.RoleViewer)
	bot := w.agent("bot")
	ana.get("/settings/mandates").want(http.StatusOK).has("The active policy allows no mandates.")
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\nmandates: {up_to: 3}\n"); err != nil {
		t.Fatal(err)
	}
	const goal = `<script>alert("40 refunds at most")</script>`
	a, err := w.gate.ProposeMandate(bot, gatehouse.Plan{
		Goal: goal, For: gatehouse.Duration(time.Hour),
		Steps: []gatehouse.PlanStep{{
			Cover: gatehouse.Cover{
				ActionType: "price_change", Connector: "shop", Operation: "update", EntityType: "item",
				Keys: []string{"SKU-1042", "oak, 2 m"},
			},
			Limit: gatehouse.Limit{Count: 40, Amounts: []gatehouse.Magnitude{{Amount: "2000", Currency: "USD"}}},
		}},
		PerDay: &gatehouse.Limit{Count: 9},
	})
	must(t, err)
	const worst = "at most 40 actions by bot, USD 2000 in all, 9 actions and USD 2000 a day, up to L3"
	ana.get("/actions/"+a.ID).want(http.StatusOK).
		has("Approve in advance: "+worst, "Approve the plan of bot", ">2000 USD<", "in_all.amount 1").
		lacks(goal, "more fields", testid("edit"))
	d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
	if a.Approval.Confirm != nil {
		d.Confirm = a.Approval.Confirm.Value
	}
	if _, err := w.gate.Decide(w.as(ana.creds), a.ID, d); err != nil {
		t.Fatal(err)
	}
	id, err := w.gate.StartMandate(t.Context(), a.Tenant, a.ID)
	must(t, err)
	const path = "/settings/mandates"
	vic.get(path).want(http.StatusForbidden)
	ana.get(path).want(http.StatusOK).
		has(worst, "The active policy allows mandates up to L3.", "bot: active",
			"Used 0 of 40, 0 of 2000 USD", "left today: 9, 2000 USD", "Approved by ana",
			"/actions/"+a.ID,
			"on item", ">SKU-1042<", ">oak, 2 m<").
		lacks(goal, ">true<")
	b := w.propose(bot, func(p *gatehouse.Proposal) { p.ProposedChange = `{"price":"12.50"}` })
	if got := w.action(b.ID); got.DecidedVia != gatehouse.ViaMandate {
		t.Errorf("decided via %q: %v", got.DecidedVia, got.Policy.Reasons)
	}
	ana.get("/actions/"+b.ID).want(http.StatusOK).has("ana, by "+id, "approved in advance")
	ana.get(path).want(http.StatusOK).has("Used 1 of 40, 12.5 of 2000 USD")
	of := path + "/" + id
	ana.post(of+"/narrow", "count", "41").want(http.StatusUnprocessableEntity).
		has("Number of actions: must be 0 to 40: widening needs a new plan", `value="41"`).lacks("/in_all")
	ana.post(of + "/narrow").want(http.StatusUnprocessableEntity).
		has("Give a maximum number of actions, a maximum amount, or both.")
	ana.post(of+"/narrow", "count", "x").want(http.StatusUnprocessableEntity).has("must be a number")
	ana.post(of+"/narrow", "count", "20", "amounts", "USD=500").want(http.StatusOK).has("Used 1 of 20, 12.5 of 500 USD")
	ana.post(of + "/pause").want(http.StatusOK).has("bot: paused by ana")
	ana.post(of + "/resume").want(http.StatusOK).has("bot: active")
	ana.post(of + "/revoke").want(http.StatusOK).has("bot: revoked by ana")
	ana.post(path + "/mnd_0/revoke").want(http.StatusNotFound)
}
