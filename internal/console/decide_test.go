package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func decision(a *gatehouse.Action, d gatehouse.DecisionKind, more ...string) []string {
	return append([]string{"decision", string(d), "digest", string(a.Digest)}, more...)
}

func TestApproveFromTheInboxAndUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)

	ana.get("/inbox").want(200).has(a.ID, "Change price of SKU-1042", "+2.50 USD", "bot")
	ana.get("/inbox?open="+a.ID).want(200).has("10.00", "12.50", testid("approve"), "supplier raised cost")
	p := ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve, "return", "/inbox?tab=team")...).want(200)
	if p.url.Path != "/inbox" || p.url.Query().Get("done") != a.ID || p.url.Query().Get("tab") != "team" {
		t.Errorf("the answer led to %s", p.url)
	}
	p.has("Approved", testid("undo"))
	got := w.action(a.ID)
	if got.Status != gatehouse.StatusApproved || got.DecidedBy != "ana" || got.DecidedVia != gatehouse.ViaConsole {
		t.Fatalf("the action is %s, decided by %s through %s", got.Status, got.DecidedBy, got.DecidedVia)
	}
	ana.post("/actions/"+a.ID+"/cancel", "return", "/actions/"+a.ID).want(200).has("canceled")
	if got := w.action(a.ID); got.Status != gatehouse.StatusCanceled {
		t.Errorf("after undo the action is %s", got.Status)
	}
}

func TestRejectAsksWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)

	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "  ")...).want(http.StatusUnprocessableEntity).has("Say why")
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Fatalf("a rejection without a reason left it %s", got.Status)
	}
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "too much")...).want(200).has("rejected", "too much")
	if got := w.action(a.ID); got.Status != gatehouse.StatusRejected {
		t.Errorf("it is %s", got.Status)
	}
}

func TestWhoCannotDecideReadsWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) { p.OnBehalfOf = "ana" })
	for name, c := range map[string]struct {
		roles []gatehouse.Role
		why   string
	}{
		"ana": {[]gatehouse.Role{gatehouse.RoleApprover}, "on your behalf"},
		"eve": {[]gatehouse.Role{gatehouse.RoleViewer}, "role approver"},
	} {
		b := w.signIn(name, c.roles...)
		b.get("/actions/"+a.ID).want(200).has(testid("cannot"), c.why).lacks(testid("approve"), testid("reject"))
		b.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(http.StatusForbidden).has(testid("outcome"))
	}
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Errorf("it is %s", got.Status)
	}
}

func TestAnswersThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)

	a := w.propose(bot, nil)
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(200)
	ben.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "no")...).want(http.StatusConflict).
		has(`data-code="already_decided"`, testid("decided-by"), "ana")

	b := w.propose(bot, nil)
	ana.post("/actions/"+b.ID+"/decide", "decision", "approved", "digest", string(a.Digest)).want(http.StatusConflict).has(`data-code="digest_mismatch"`)
	ana.post("/actions/"+b.ID+"/decide", "decision", "approved").want(http.StatusUnprocessableEntity)
	ana.post("/actions/"+b.ID+"/decide", "decision", "perhaps").want(http.StatusUnprocessableEntity)

	w.mu.Lock()
	w.drift = true
	w.mu.Unlock()
	ana.post("/actions/"+b.ID+"/decide", decision(b, gatehouse.Approve)...).want(http.StatusConflict).
		has(`data-code="target_changed"`, "11.11", testid("acknowledge"))
	ana.post("/actions/"+b.ID+"/decide", decision(b, gatehouse.Approve, "acknowledge_stale", "yes")...).want(200)
	if got := w.action(b.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("after it was acknowledged it is %s", got.Status)
	}
	ana.post("/actions/act_none/decide", decision(b, gatehouse.Approve)...).want(http.StatusNotFound)
}

func TestLadder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	a := w.propose(bot, func(p *gatehouse.Proposal) {
		p.ActionType, p.Operation, p.CurrentState = "bulk_delete", "delete", ""
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2", "SKU-3"}}
		p.ProposedChange = "{}"
	})
	if a.RiskLevel != gatehouse.L5 {
		t.Fatalf("a bulk delete is %s", a.RiskLevel)
	}
	path := "/actions/" + a.ID
	ana.get(path).has(testid("confirm"), testid("step-up"), testid("edit-token")).lacks(testid("reason"))
	ana.post(path+"/decide", decision(a, gatehouse.Approve, "edit_token", ana.creds.EditToken)...).want(http.StatusForbidden).has(`data-code="confirmation_required"`)
	// The step-up above is valid until it is used, but only for the person who made it; ben has
	// none.
	ben.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3")...).want(http.StatusForbidden)
	ben.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ana.creds.EditToken)...).want(http.StatusForbidden)
	ana.get(path).has(testid("step-up-done"))
	ana.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3", "notes", "they are gone for good")...).want(200).has("You have voted")

	ben.get(path).has(testid("reason"), testid("sealed")).lacks("gone for good")
	ben.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ben.creds.EditToken)...).
		want(http.StatusUnprocessableEntity).lacks("gone for good")
	ben.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ben.creds.EditToken, "notes", "as agreed")...).
		want(200).has("gone for good", "as agreed")
	if got := w.action(a.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("it is %s", got.Status)
	}
}

func TestWhatIsNotShownCannotBeApproved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var change strings.Builder
	for i := range 2000 {
		change.WriteString(`,"f` + strings.Repeat("0", 4-len(strconv.Itoa(i))) + strconv.Itoa(i) + `":` + strconv.Itoa(i))
	}
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) {
		p.CurrentState, p.ProposedChange = "", gatehouse.JSON("{"+change.String()[1:]+"}")
	})
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/actions/"+a.ID).has(testid("hidden-lock"), testid("show-all"), testid("reject")).lacks(testid("approve"), `name="digest"`)
	ana.get("/actions/"+a.ID+"?full=1").has(testid("approve"), "f1999").lacks(testid("hidden-lock"))
}
