package gate_test

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// editToken gives a person a new edit token.
func (w *world) editToken(name string) string {
	w.t.Helper()
	c, err := w.gate.RotateEditToken(w.admin, name)
	must(w.t, err)
	return c.EditToken
}

func TestSessionDecidesUpToL3AndStepsUpAbove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	token := w.editToken("ana")
	browser := w.browser(w.signIn(ana, gatehouse.Browser{}))
	medium := w.propose(bot, nil)
	if ans, err := w.gate.Decide(browser, medium.ID, approve(medium)); err != nil ||
		ans.Action.DecidedVia != gatehouse.ViaConsole {
		t.Fatalf("%+v, %v", ans, err)
	}

	high := func(ref string) *gatehouse.Action {
		return w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType, p.Target.EntityRef = "create_item", ref })
	}
	a, b := high("SKU-A"), high("SKU-B")
	if a.RiskLevel != gatehouse.L4 {
		t.Fatalf("level %s", a.RiskLevel)
	}
	refused := func(ctx context.Context, a *gatehouse.Action) {
		t.Helper()
		_, err := w.gate.Decide(ctx, a.ID, approve(a))
		wantCode(t, err, gatehouse.CodeStepUpRequired)
		if got := w.find(a.ID); got.Status != gatehouse.StatusPending || len(got.Approval.Votes) != 0 {
			t.Fatalf("status %s, %d votes", got.Status, len(got.Approval.Votes))
		}
	}
	stepUp := func(ctx context.Context, a *gatehouse.Action) {
		t.Helper()
		if _, err := w.gate.StepUpWithEditToken(ctx, a.ID, a.Digest, token); err != nil {
			t.Fatal(err)
		}
	}
	refused(browser, a)
	_, err := w.gate.StepUpWithEditToken(browser, a.ID, a.Digest, "gte_wrong")
	wantCode(t, err, gatehouse.CodeEditTokenRequired)
	_, err = w.gate.StepUpWithEditToken(browser, a.ID, b.Digest, token)
	wantCode(t, err, gatehouse.CodeDigestMismatch)
	_, err = w.gate.StepUpWithEditToken(ana, a.ID, a.Digest, token) // a key is not a session
	wantCode(t, err, gatehouse.CodeUnauthenticated)

	stepUp(browser, b) // for another action
	refused(browser, a)
	other := w.browser(w.signIn(ana, gatehouse.Browser{}))
	stepUp(other, a) // in another session
	refused(browser, a)
	stepUp(browser, a)
	w.clock.Advance(gatehouse.StepUpTTL) // too long ago
	refused(browser, a)
	stepUp(browser, a)
	wrong := approve(a)
	wrong.Confirm = "something else"
	_, err = w.gate.Decide(browser, a.ID, wrong)
	wantCode(t, err, gatehouse.CodeConfirmation)
	if _, err := w.gate.FindStepUp(browser, a.ID, a.Digest); err != nil {
		t.Errorf("a refused decision used the step-up up: %v", err)
	}
	ans, err := w.gate.Decide(browser, a.ID, approve(a))
	if err != nil || ans.Code != gatehouse.Decided {
		t.Fatalf("%+v, %v", ans, err)
	}
	_, err = w.gate.FindStepUp(browser, a.ID, a.Digest)
	wantCode(t, err, gatehouse.CodeNotFound)
	if _, err := w.gate.Decide(browser, b.ID, gatehouse.Decision{Decision: gatehouse.Reject}); err != nil {
		t.Errorf("rejecting needs no step-up: %v", err)
	}

	// A revision has another digest: a proof for the old digest does not count.
	c := high("SKU-C")
	stepUp(browser, c)
	revised, err := w.gate.Revise(bot, c.ID, proposal(func(p *gatehouse.Proposal) {
		p.ActionType, p.Target.EntityRef, p.ProposedChange = "create_item", "SKU-C", `{"price":"99.00"}`
	}))
	must(t, err)
	refused(browser, revised)
	// A caller with a key needs only the edit token, at every level.
	if _, err := w.gate.Decide(ana, revised.ID, approve(revised)); err != nil {
		t.Error(err)
	}
}

// The transaction that stores the vote consumes the step-up.
func TestStepUpIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	token := w.editToken("ana")
	browser := w.browser(w.signIn(ana, gatehouse.Browser{}))
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType, p.Target.EntityRef = "create_item", "SKU-A" })
	u, err := w.gate.StepUpWithEditToken(browser, a.ID, a.Digest, token)
	must(t, err)
	if _, err := w.gate.Decide(browser, a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	err = w.store.Update(t.Context(), u.Tenant, func(tx gatehouse.Tx) error { return tx.UseStepUp(u.ID) })
	if err == nil {
		t.Error("the proof is not used up")
	}
	if n := w.leaves("step_up.given"); n != 1 {
		t.Errorf("%d leaves", n)
	}
}

// TestSecondPersonGivesAReason: two persons look at an L5 action at the same time.
// The second to approve must give a reason, even if no page had asked for it yet.
func TestSecondPersonGivesAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana, ben := w.person("ana"), w.person("ben")
	a := w.propose(w.agent(), func(p *gatehouse.Proposal) {
		p.ActionType, p.Target = "bulk_delete", gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2"}}
	})
	if a.RiskLevel != gatehouse.L5 || a.Approval.Required != 2 {
		t.Fatalf("%s with %d persons", a.RiskLevel, a.Approval.Required)
	}
	vote := func(who context.Context, name, notes string) error {
		t.Helper()
		browser := w.browser(w.signIn(who, gatehouse.Browser{}))
		if _, err := w.gate.StepUpWithEditToken(browser, a.ID, a.Digest, w.editToken(name)); err != nil {
			t.Fatal(err)
		}
		d := approve(a)
		d.Notes = notes
		_, err := w.gate.Decide(browser, a.ID, d)
		return err
	}
	if err := vote(ana, "ana", ""); err != nil {
		t.Fatalf("the first: %v", err)
	}
	for _, none := range []string{"", " \n\t"} {
		wantCode(t, vote(ben, "ben", none), gatehouse.CodeInvalid)
	}
	if got := w.find(a.ID); got.Approval.Approvals() != 1 {
		t.Errorf("%d votes", got.Approval.Approvals())
	}
	if err := vote(ana, "ana", ""); err != nil {
		t.Errorf("the first again: %v", err)
	}
	if err := vote(ben, "ben", "discontinued"); err != nil {
		t.Errorf("with a reason: %v", err)
	}
}
