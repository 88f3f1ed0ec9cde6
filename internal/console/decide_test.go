package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

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
	ana.get("/inbox?open="+a.ID).want(200).has("10.00", "12.50", testid("approve"), "supplier raised cost",
		"1 person must approve")
	p := ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve, "return", "/inbox?tab=team")...).want(200)
	if p.url.Path != "/inbox" || p.url.Query().Get("done") != a.ID || p.url.Query().Get("tab") != "team" {
		t.Errorf("the answer led to %s", p.url)
	}
	p.has("Approved", testid("undo"))
	got := w.action(a.ID)
	if got.Status != gatehouse.StatusApproved || got.DecidedBy != "ana" || got.DecidedVia != gatehouse.ViaConsole {
		t.Fatalf("the action is %s, decided by %s through %s", got.Status, got.DecidedBy, got.DecidedVia)
	}
	p = ana.post("/actions/"+a.ID+"/undo", "return", "/inbox?tab=team").want(200)
	got = w.action(a.ID)
	if got.Status != gatehouse.StatusSuperseded {
		t.Errorf("after undo the action is %s", got.Status)
	}
	if p.url.Query().Get("open") != got.Superseded || p.url.Query().Get("done") != a.ID {
		t.Errorf("the undo led to %s", p.url)
	}
	p.has(testid("undone"), "took back the decision", "This is revision 2 of it.", testid("approve"))
	ana.get("/actions/"+a.ID).want(200).has("superseded", got.Superseded, "1 person had to approve").
		lacks("After that it expires")
	w.number()
	w.signIn("eve", gatehouse.RoleAuditor).get("/audit").want(200).has("undid the decision on", "asked again about")

	// If the reply to an undo was lost, the page asks whether the undo took effect.
	standing := ana.get("/actions/" + a.ID + "/standing?want=undone&return=/inbox").want(200)
	if !strings.Contains(standing.body, got.Superseded) {
		t.Errorf("standing: %s", standing.body)
	}
	cat := w.agent("cat")
	revised := w.propose(cat, nil)
	_, err := w.gate.Revise(cat, revised.ID, priceChange())
	must(t, err)
	ana.get("/actions/"+revised.ID+"/standing?want=undone&return=/inbox").want(200).
		has(`"stands":false`, "The decision was not undone. Superseded.")

	next := w.action(got.Superseded)
	ana.post("/actions/"+next.ID+"/decide", decision(next, gatehouse.Approve)...).want(200).
		has(testid("undo"), testid("cancel"))
	w.advance(2 * time.Minute)
	ana.post("/actions/"+next.ID+"/undo", "return", "/inbox").want(http.StatusConflict).
		has("Too late to undo").lacks(testid("undo"))
}

func TestRejectAndUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana, bo := w.signIn("ana", gatehouse.RoleApprover), w.signIn("bo", gatehouse.RoleApprover)

	rejection := decision(a, gatehouse.Reject, "notes", "too much", "return", "/inbox")
	p := ana.post("/actions/"+a.ID+"/decide", rejection...).want(200)
	p.has("Rejected", testid("undo"), "then the proposer is notified").lacks(`data-id="` + a.ID)
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending || got.Approval.RejectsAt == nil {
		t.Fatalf("the action is %s, rejected at %v", got.Status, got.Approval.RejectsAt)
	}
	bo.get("/inbox?tab=team").want(200).lacks(a.ID)
	bo.get("/actions/"+a.ID).want(200).has("Rejected", testid("undo")).lacks(testid("approve"), testid("reject-go"))
	bo.get("/inbox/states?ids=" + a.ID).want(200).has("rejected by ana")
	w.number()
	w.signIn("eve", gatehouse.RoleAuditor).get("/audit").want(200).has("with a hold")

	ana.post("/actions/"+a.ID+"/undo", "return", "/actions/"+a.ID).want(200).has(testid("undone"), testid("approve"))
	got := w.action(a.ID)
	if next := w.action(got.Superseded); next.Status != gatehouse.StatusPending || next.UndoneBy != "ana" {
		t.Errorf("the revision: %+v", next)
	}
}

// TestWhoCanceled: the page of a canceled action names the principal that canceled the action.
func TestWhoCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	if _, err := w.gate.Cancel(bot, a.ID); err != nil {
		t.Fatal(err)
	}
	ana.get("/actions/" + a.ID).want(200).has(`<span class="what">canceled</span> <span>by <b>bot</b></span>`)
}

// TestUndoAll: a bulk decision is taken back, except for items that were sent or finally rejected meanwhile.
func TestUndoAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	for _, d := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
		var items, ids []string
		for range 3 {
			a := w.propose(bot, nil)
			items, ids = append(items, "item", a.ID+" "+string(a.Digest)), append(ids, "item", a.ID)
		}
		ana.post("/inbox/bulk", append(items, "decision", string(d), "notes", "all", "return", "/inbox")...).
			want(200).has(testid("undo-all"), "Undo all 3")
		gone := w.action(ids[1])
		word := "already sent"
		if d == gatehouse.Approve {
			w.sent(gone)
		} else {
			word = "already rejected"
			if err := w.gate.CancelForRun(t.Context(), gone.Tenant, gone.ID); err != nil { // ends the hold
				t.Fatal(err)
			}
		}
		ana.post("/inbox/undo", append(ids, "return", "/inbox")...).want(200).
			has("Undid 2 of 3; 1 was "+word, gone.ID, "not undone")
		for i := 3; i < len(ids); i += 2 {
			if next := w.action(w.action(ids[i]).Superseded); next.Status != gatehouse.StatusPending {
				t.Errorf("%s is %s", next.ID, next.Status)
			}
		}
	}
	a := w.propose(bot, nil)
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(200)
	ana.post("/inbox/undo", "item", a.ID, "item", "act_<none>", "return", "/inbox").want(200).
		has("Undid 1 of 2; 1 was not undone", "act_&lt;none&gt;")
	ana.post("/inbox/undo", "return", "/inbox").want(http.StatusUnprocessableEntity)
}

func TestRejectAsksWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)

	ana.post("/actions/"+a.ID+"/decide",
		decision(a, gatehouse.Reject, "notes", "  ")...).want(http.StatusUnprocessableEntity).has("Say why")
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Fatalf("a rejection without a reason left the action %s", got.Status)
	}
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "too much")...).want(200).
		has("Rejected", "too much")
	if got := w.action(a.ID); got.Approval.RejectsAt == nil {
		t.Errorf("the action is %s", got.Status)
	}
}

func TestExclusionsAreExplained(t *testing.T) {
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
		b.post("/actions/"+a.ID+"/decide",
			decision(a, gatehouse.Approve)...).want(http.StatusForbidden).has(testid("outcome"))
	}
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Errorf("the action is %s", got.Status)
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
	ana.post("/actions/"+b.ID+"/decide", "decision", "approved", "digest",
		string(a.Digest)).want(http.StatusConflict).has(`data-code="digest_mismatch"`)
	ana.post("/actions/"+b.ID+"/decide", "decision", "approved").want(http.StatusUnprocessableEntity)
	ana.post("/actions/"+b.ID+"/decide", "decision", "perhaps").want(http.StatusUnprocessableEntity)

	w.mu.Lock()
	w.drift = true
	w.mu.Unlock()
	ana.post("/actions/"+b.ID+"/decide", decision(b, gatehouse.Approve)...).want(http.StatusConflict).
		has(`data-code="target_changed"`, "11.11", testid("acknowledge"))
	ana.post("/actions/"+b.ID+"/decide", decision(b, gatehouse.Approve, "acknowledge_stale", "yes")...).want(200)
	if got := w.action(b.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("after the acknowledgement, the action is %s", got.Status)
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
	ana.post(path+"/decide",
		decision(a, gatehouse.Approve, "edit_token", ana.creds.EditToken)...).want(http.StatusForbidden).has(
		`data-code="confirmation_required"`)
	// The step-up above is valid until it is used, but only for the person who made it; ben has
	// none.
	ben.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3")...).want(http.StatusForbidden).
		has(testid("refused-approved"), `name="confirm" value="3"`)
	ben.post(path+"/decide",
		decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ana.creds.EditToken)...).want(http.StatusForbidden)
	ana.get(path).has(testid("step-up-done"))
	ana.post(path+"/decide",
		decision(a, gatehouse.Approve, "confirm", "3", "notes", "they are gone for good")...).want(200).has("You have voted")

	ben.get(path).has(testid("reason"), testid("sealed")).lacks("gone for good")
	ben.post(path+"/decide", decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ben.creds.EditToken)...).
		want(http.StatusUnprocessableEntity).lacks("gone for good")
	ben.post(path+"/decide",
		decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ben.creds.EditToken, "notes", "as agreed")...).
		want(200).has("gone for good", "as agreed")
	if got := w.action(a.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("the action is %s", got.Status)
	}
}

// TestADeletionIsCalledOne: the page of a deletion does not say that nothing changes, however its operation is named.
func TestADeletionIsCalledOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	for operation, says := range map[string]string{
		"delete_vendor": "The whole record is deleted.", "deleteCustomer": "The whole record is deleted.",
		"update": "No fields change.", "bulk_remove": "Each record is deleted as a whole.",
	} {
		a := w.propose(bot, func(p *gatehouse.Proposal) {
			p.Operation, p.CurrentState, p.ProposedChange = operation, "", "{}"
			if strings.HasPrefix(operation, "bulk") {
				p.Target.EntityRef, p.Target.EntityRefs = "", []string{"SKU-1", "SKU-2"}
			}
		})
		page := ana.get("/actions/" + a.ID).want(http.StatusOK).has(says)
		if red := strings.Contains(page.body, `class="primary danger"`); red != (operation != "update") {
			t.Errorf("%s has a red button: %t", operation, red)
		}
	}
}

// TestAVoterCanStillReject: while more approvals are needed, a person who has approved can still reject.
func TestAVoterCanStillReject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) {
		p.ActionType, p.Operation, p.CurrentState, p.ProposedChange = "bulk_delete", "delete", "", "{}"
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2", "SKU-3"}}
	})
	path := "/actions/" + a.ID
	ana.post(path+"/decide",
		decision(a, gatehouse.Approve, "confirm", "3", "edit_token", ana.creds.EditToken)...).want(200)
	ana.get(path).has("You have voted. 1 approval to go; until then you can still reject it.", testid("reject-form")).
		lacks(testid("approve-form"))
	ana.post(path+"/decide", "decision", string(gatehouse.Reject), "notes", "not these").want(200)
	w.afterHold()
	if got := w.action(a.ID); got.Status != gatehouse.StatusRejected {
		t.Errorf("the action is %s", got.Status)
	}
	ana.get(path).lacks(testid("reject-form"))
}

func TestHiddenContentCannotBeApproved(t *testing.T) {
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
	ana.get("/actions/"+a.ID).has(testid("hidden-lock"), testid("show-all"), testid("reject")).lacks(testid("approve"),
		`name="digest"`)
	ana.get("/actions/"+a.ID+"?full=1").has(testid("approve"), "f1999").lacks(testid("hidden-lock"))
}

// sent lets a worker claim the push of an approved action.
func (w *world) sent(a *gatehouse.Action) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
		p, err := tx.LockPush(a.Push.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		until := now.Add(time.Minute)
		p.Status, p.LeaseOwner, p.LeaseUntil, p.PickedAt = gatehouse.PushPicking, "test", &until, &now
		p.Generation++
		return tx.UpdatePush(p, gatehouse.PushQueued, p.Generation-1)
	})
	must(w.t, err)
}
