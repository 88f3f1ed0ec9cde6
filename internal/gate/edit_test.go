package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

const editing = `version: 1
risk: {note: 1, price_change: 3, wipe: 4}
edits: {approve_up_to: %d}
rules:
  - {id: cheap, when: 'dec(change.price) <= 5', then: allow}
  - {id: dear, when: 'dec(change.price) > 100', then: deny, reason: too dear}
  - {id: large, when: 'dec(change.price) > 50', then: needs_approval, risk: 4}
  - {id: pair, when: 'action.type == "pair"', then: needs_approval, required: 2}
`

func editOf(a *gatehouse.Action, price string, approve bool) gatehouse.EditRequest {
	return gatehouse.EditRequest{
		Digest: a.Digest, Note: "why", Patch: gatehouse.JSON(`{"price":"` + price + `"}`), Approve: approve, Confirm: price,
	}
}

func (w *world) edit(who context.Context, a *gatehouse.Action, price string) *gatehouse.Action {
	w.t.Helper()
	out, err := w.gate.Edit(who, a.ID, editOf(a, price, false))
	must(w.t, err)
	return out
}

// TestEditorApproves: an editor may approve alone up to the policy's level, above it as one of
// several, and never if the policy forbids it.
func TestEditorApproves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		upTo        int
		kind, price string
		want        gatehouse.Code
	}{
		{3, "price_change", "11.00", ""},
		{3, "price_change", "60.00", gatehouse.CodeSelfApproval},
		{4, "price_change", "60.00", ""},
		{2, "price_change", "11.00", gatehouse.CodeSelfApproval},
		{0, "price_change", "11.00", gatehouse.CodeSelfApproval},
		{3, "pair", "60.00", ""},
		{1, "pair", "11.00", ""},
		{0, "pair", "11.00", gatehouse.CodeSelfApproval},
	} {
		t.Run(fmt.Sprintf("%d %s %s", c.upTo, c.kind, c.price), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fmt.Sprintf(editing, c.upTo))
			bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
			w.person("cy")
			propose := func() *gatehouse.Action {
				return w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = c.kind })
			}
			at := propose()
			_, err := w.gate.Edit(ana, at.ID, editOf(at, c.price, true))
			wantCode(t, err, c.want)
			if err != nil && w.find(at.ID).Status != gatehouse.StatusPending {
				t.Error("a refused edit has replaced it")
			}
			a := w.edit(ana, propose(), c.price)
			w.wantCode("the editor's approval", w.code(ana, a, gatehouse.Approve), c.want)
			if a = w.find(a.ID); a.Status == gatehouse.StatusPending {
				w.wantCode("another's", w.code(ben, a, gatehouse.Approve), "")
			}
		})
	}
}

// TestEditAsksPeople: an edit that the policy would allow is still put to people, and a denied edit
// leaves the proposer's change open.
func TestEditAsksPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fmt.Sprintf(strings.Replace(editing, "price_change: 3", "price_change: 2", 1), 3))
	bot, ana := w.agent(), w.person("ana")
	a := w.edit(ana, w.propose(bot, nil), "4.00")
	if a.Status != gatehouse.StatusPending ||
		!strings.Contains(strings.Join(a.Policy.Reasons, ";"), "a person edited") {
		t.Errorf("it is %s: %v", a.Status, a.Policy.Reasons)
	}
	_, err := w.gate.Edit(ana, a.ID, editOf(a, "101.00", false))
	wantCode(t, err, gatehouse.CodeCannotEdit)
	var e *gatehouse.Error
	if !errors.As(err, &e) || e.Context["reason"] != "denied" || !strings.Contains(e.Detail, "too dear") {
		t.Errorf("it says %v", err)
	}
	if w.find(a.ID).Status != gatehouse.StatusPending {
		t.Error("a denied edit has replaced it")
	}
}

// TestEditsOfQuestions: Gatehouse's own questions cannot be edited.
func TestEditsOfQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lenient)
	ana := w.person("ana")
	a, err := w.gate.ProposePolicy(w.admin, gatehouse.PolicyProposal{Source: fmt.Sprintf(editing, 5)})
	must(t, err)
	pins := w.propose(w.agent(), func(p *gatehouse.Proposal) { p.Operation = "gatehouse_accept_tools" })
	for _, a := range []*gatehouse.Action{a, pins} {
		_, err = w.gate.Edit(ana, a.ID, editOf(a, "1", false))
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeCannotEdit || e.Context["reason"] != "not_editable" {
			t.Errorf("%s: %v", a.Connector, err)
		}
	}
}

// TestForbiddenSinceTheEdit: a stricter policy for editors counts when they approve, and until the
// approved change is sent.
func TestForbiddenSinceTheEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fmt.Sprintf(editing, 3))
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	open, approved := w.edit(ana, w.propose(bot, nil), "11.00"), w.edit(ana, w.propose(bot, nil), "12.00")
	w.wantCode("an approval", w.code(ana, approved, gatehouse.Approve), "")
	if _, err := w.gate.ApplyPolicy(w.admin, fmt.Sprintf(editing, 0)); err != nil {
		t.Fatal(err)
	}
	w.wantCode("after the policy", w.code(ana, open, gatehouse.Approve), gatehouse.CodeAuthorityRevoked)
	w.wantCode("somebody else", w.code(ben, open, gatehouse.Approve), "")
	wantCode(t, w.recheck(approved.ID), gatehouse.CodeAuthorityRevoked)
}

// TestTwoPrincipalsOfAnEditor: another principal of the same person is the editor, too.
func TestTwoPrincipalsOfAnEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fmt.Sprintf(editing, 0))
	bot, ana := w.agent(), w.person("ana")
	c, err := gatehouse.CallerFrom(ana)
	must(t, err)
	creds, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Name: "ana-2", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
		Person: c.Principal.Person,
	})
	must(t, err)
	w.person("ben")
	other := w.as(creds)
	for _, who := range [][2]context.Context{{ana, other}, {other, ana}} {
		a := w.edit(who[0], w.propose(bot, nil), "11.00")
		w.wantCode("the other principal", w.code(who[1], a, gatehouse.Approve), gatehouse.CodeSelfApproval)
	}
}
