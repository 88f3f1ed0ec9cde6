package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestDelegationsPage: a person creates a delegation, and the delegate ends it. In between, the action's page
// tells the delegate for whom they answer, and the delegate decides.
func TestDelegationsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	vic := w.signIn("vic", gatehouse.RoleViewer)
	bot := w.agent("bot")
	if _, err := w.gate.PutGroup(w.admin, "finance", gatehouse.GroupMembers{Members: []string{"ana"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\napprovals:\n  3: {groups: [finance]}\n"); err != nil {
		t.Fatal(err)
	}
	const path = "/settings/delegations"
	vic.get(path).want(http.StatusForbidden)
	ana.get(path).want(http.StatusOK).has(testid("new-delegation")).lacks(`name="from"`)
	root.get(path).want(http.StatusOK).has(`name="from"`)
	until := time.Now().Add(48 * time.Hour).UTC().Format("2006-01-02T15:04")
	ana.post(path, "to", `zoe"><script>`, "until",
		until).want(http.StatusUnprocessableEntity).has("zoe&#34;&gt;&lt;script&gt;").lacks(`<script>zoe`)
	ana.post(path, "to", "ben", "until", "tomorrow").want(http.StatusUnprocessableEntity).has("must be a date and time")

	a := w.propose(bot, nil)
	ben.get("/actions/" + a.ID).want(http.StatusOK).lacks(testid("stands-for"))
	once := ana.get(path).once()
	for range 2 { // a second press creates no second delegation
		ana.post(path, "to", "ben", "until", until, "types", a.ActionType, "level", "3", "once", once).
			want(http.StatusOK).has("ben", a.ActionType+", up to L3", "active")
	}
	ben.get(path).want(http.StatusOK).has("ana")
	ben.get("/actions/"+a.ID).want(http.StatusOK).has(testid("stands-for"), "You answer for ana")
	ben.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(http.StatusOK)
	if got := w.action(a.ID); got.DecidedBy != "ben" || got.Approval.Votes[0].ForName != "ana" {
		t.Errorf("decided by %s: %+v", got.DecidedBy, got.Approval.Votes)
	}
	ben.get("/actions/" + a.ID).want(http.StatusOK).has("ben, for ana")

	list, err := w.gate.ListDelegations(w.admin)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	ben.post(path + "/" + list[0].ID + "/end").want(http.StatusOK).has("ended by ben")
	b := w.propose(bot, nil)
	ben.get("/actions/" + b.ID).want(http.StatusOK).lacks(testid("stands-for"))
}
