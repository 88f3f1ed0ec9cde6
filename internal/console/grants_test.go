package console_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGrantsPage: an approver creates a grant from a pending action, sees its worst case first, and
// revokes it; no grant is created before its worst case was shown.
func TestGrantsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana, vic := w.signIn("ana", gatehouse.RoleApprover), w.signIn("vic", gatehouse.RoleViewer)
	bot := w.agent("bot")
	ana.get("/actions/" + w.propose(bot, nil).ID).want(http.StatusOK).lacks(testid("grant-like"))
	const path = "/settings/grants"
	ana.get(path).want(http.StatusOK).has("The active policy allows no grants.").lacks(testid("new-grant"))
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\ngrants: {up_to: 3}\n"); err != nil {
		t.Fatal(err)
	}
	ana.get(path).want(http.StatusOK).has("The active policy allows grants up to L3.", testid("new-grant"))
	a := w.propose(bot, nil)
	vic.get(path).want(http.StatusForbidden)
	vic.get("/actions/" + a.ID).want(http.StatusOK).lacks(testid("grant-like"))
	ana.get("/actions/"+a.ID).want(http.StatusOK).has(testid("grant-like"), path+"?like="+a.ID)
	pia := w.signIn("pia", gatehouse.RoleProposer)
	ana.get("/actions/" + w.propose(w.as(pia.creds), nil).ID).want(http.StatusOK).lacks(testid("grant-like"))
	ana.get(path+"?like="+a.ID).want(http.StatusOK).
		has(`name="agent" value="bot"`, `value="`+a.Connector+`"`, `value="`+a.Operation+`"`).
		lacks(testid("worst-case"))

	fields := []string{
		"agent", "bot", "connector", a.Connector, "operation", a.Operation, "when", "true", "count", "2",
		"amounts", "USD=500", "for", "1h",
	}
	ana.post(path, "agent", "bot", "count", "x").want(http.StatusUnprocessableEntity).
		has("Number of actions: must be a number", "For how long: must be a duration such as 4h").lacks(">/count<", ">/for<")
	ana.post(path, fields...).want(http.StatusOK).has(testid("worst-case"), "at most 2 times", "USD 500 in all")
	if list, err := w.gate.ListGrants(w.admin); err != nil || len(list) != 0 {
		t.Fatalf("created before its worst case was shown: %v, %v", list, err)
	}
	shown := func(p *page) string { return between(p.body, `name="shown" value="`, `"`) }
	// A grant other than the one that was shown is shown again: other fields, or another level of the policy.
	first := shown(ana.post(path, fields...).want(http.StatusOK))
	other := append(slices.Clone(fields), "shown", first)
	other[9] = "3"
	ana.post(path, other...).want(http.StatusConflict).has(testid("worst-case"), "at most 3 times", "read it again")
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\ngrants: {up_to: 2}\n"); err != nil {
		t.Fatal(err)
	}
	ana.post(path, append(slices.Clone(fields), "shown", first)...).want(http.StatusConflict).has("up to L2")
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\ngrants: {up_to: 3}\n"); err != nil {
		t.Fatal(err)
	}
	if list, err := w.gate.ListGrants(w.admin); err != nil || len(list) != 0 {
		t.Fatalf("created although another one was shown: %v, %v", list, err)
	}
	worst := ana.post(path, fields...).want(http.StatusOK)
	give := append(slices.Clone(fields), "shown", shown(worst), "once", worst.once())
	for range 2 { // a second press creates no second grant
		ana.post(path, give...).want(http.StatusOK).has("0 of 2, 0 of 500 USD", "active")
	}
	b := w.propose(bot, func(p *gatehouse.Proposal) { p.ProposedChange = `{"price":"12.50"}` })
	if got := w.action(b.ID); got.DecidedVia != gatehouse.ViaGrant {
		t.Errorf("decided via %q: %v", got.DecidedVia, got.Policy.Reasons)
	}
	list, err := w.gate.ListGrants(w.admin)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	ana.get("/actions/"+b.ID).want(http.StatusOK).has("ana, by "+list[0].ID, "approved in advance").
		lacks(testid("grant-like"))
	ana.post(path + "/" + list[0].ID + "/revoke").want(http.StatusOK).has("revoked by ana")
	ana.post(path + "/grt_0/revoke").want(http.StatusNotFound)
	w.number()
	w.signIn("eve", gatehouse.RoleAuditor).get("/audit").want(http.StatusOK).
		has("The grant", "ended: revoked")
}
