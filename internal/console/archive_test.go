package console_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TestArchivedActionIsShown reads an action's page before and after archiving: both are the same
// except for the reversal, and the inbox no longer lists the action.
func TestArchivedActionIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.Rationale = "the words of old" })
	ctx := w.as(ana.creds)
	if _, err := w.gate.Decide(ctx, a.ID,
		gatehouse.Decision{Decision: gatehouse.Reject, Digest: a.Digest, Notes: "not then"}); err != nil {
		t.Fatal(err)
	}
	ana.get("/actions/"+a.ID).want(http.StatusOK).has("the words of old", "not then").lacks(testid("archived"))
	w.archive(a)
	ana.get("/actions/"+a.ID).want(http.StatusOK).has("the words of old", "not then", testid("archived"),
		"in the archive since")
	ana.get("/inbox?tab=all").want(http.StatusOK).lacks(a.ID)
}

// archive moves an action that has ended to the archive.
func (w *world) archive(a *gatehouse.Action) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
		n, err := gate.ArchiveFamilies(tx, []gatehouse.ActionFamily{{Tenant: a.Tenant, IDs: []string{a.ID}}}, tx.Now())
		if n != 1 {
			w.t.Errorf("%d were archived", n)
		}
		return err
	})
	must(w.t, err)
}
