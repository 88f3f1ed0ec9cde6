package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// A policy that is applied between the lookup and the transaction must take effect:
// the use case restarts, and the new version's veto holds.
func TestPolicyAppliedMeanwhileVetoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	applied := false
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) {
		if !applied { // after the veto was evaluated, before the transaction
			applied = true
			_, err := w.gate.ApplyPolicy(w.admin,
				"version: 1\nrules:\n  - {id: freeze, when: \"true\", then: deny, reason: frozen}\n")
			if err != nil {
				t.Error(err)
			}
		}
		return true, nil
	}
	_, err := w.gate.Decide(ana, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeAuthorityRevoked)
	if got := w.find(a.ID); got.Status != gatehouse.StatusPending || len(got.Approval.Votes) != 0 {
		t.Errorf("status %s with %d votes after a veto", got.Status, len(got.Approval.Votes))
	}
}

func TestTargetThatDoesNotAnswerDoesNotBlockADecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) { return false, errors.New("down") }
	ans, err := w.gate.Decide(ana, a.ID, approve(a))
	if err != nil || ans.Code != gatehouse.Decided {
		t.Fatalf("%+v, %v", ans, err)
	}
}

func TestTargetChangedNeedsAcknowledgement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) { return false, nil }
	_, err := w.gate.Decide(ana, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeTargetChanged)
	d := approve(a)
	d.AcknowledgeStale = true
	if _, err := w.gate.Decide(ana, a.ID, d); err != nil {
		t.Fatal(err)
	}
}

// A rejection does not read the target: it is always possible.
func TestRejectNeverAsksTheTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) {
		t.Error("the target was asked")
		return false, nil
	}
	if _, err := w.gate.Decide(ana, a.ID, gatehouse.Decision{Decision: gatehouse.Reject}); err != nil {
		t.Fatal(err)
	}
}

func TestExpiryHoldsWithoutTheSweeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.ExpiresIn = gatehouse.Span(time.Minute) })
	w.clock.Advance(time.Minute)
	if got := w.find(a.ID).Status; got != gatehouse.StatusExpired {
		t.Errorf("status = %s, not swept, but past its expiry", got)
	}
	_, err := w.gate.Decide(ana, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeExpired)
	_, err = w.gate.Answer(ana, a.ID, gatehouse.Decision{Decision: gatehouse.Reject})
	wantCode(t, err, gatehouse.CodeExpired)
	_, err = w.gate.Cancel(bot, a.ID)
	wantCode(t, err, gatehouse.CodeTooLate)
	_, err = w.gate.Revise(bot, a.ID, proposal(nil))
	wantCode(t, err, gatehouse.CodeExpired)
	if n, err := w.gate.SweepExpired(t.Context()); n != 1 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	if n, err := w.gate.SweepExpired(t.Context()); n != 0 || err != nil {
		t.Fatalf("swept %d again, %v", n, err)
	}
	_, err = w.gate.Decide(ana, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeExpired)
}

// A voter who loses the role before the quorum is met does not count.
func TestVotersAreRevalidated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L5 })
	if ans, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil || ans.Code != gatehouse.VoteRecorded {
		t.Fatalf("%+v, %v", ans, err)
	}
	roles := []gatehouse.Role{gatehouse.RoleProposer}
	if _, err := w.gate.UpdatePrincipal(w.admin, "ana", gatehouse.PrincipalChange{Roles: &roles}); err != nil {
		t.Fatal(err)
	}
	_, err := w.gate.Decide(ben, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeAuthorityRevoked)
	if got := w.find(a.ID); got.Status != gatehouse.StatusPending || got.Approval.Approvals() != 1 {
		t.Errorf("status %s, %d approvals", got.Status, got.Approval.Approvals())
	}
}

// The vote of a person who becomes the agent's sponsor afterwards does not count.
func TestSponsorSetAfterTheVoteDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L5 })
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Name: "ana2", Person: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	}); err != nil {
		t.Fatal(err)
	}
	sponsor := "ana2" // another identity of the person who voted
	if _, err := w.gate.UpdatePrincipal(w.admin, "bot", gatehouse.PrincipalChange{Sponsor: &sponsor}); err != nil {
		t.Fatal(err)
	}
	_, err := w.gate.Decide(ben, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeAuthorityRevoked)
}

func TestOnBehalfOfIsExcludedWhateverItsCase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	creds, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Name: "ana2", Person: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	must(t, err)
	second := w.as(creds)
	id := caller(t, ana).Principal.ID
	for _, name := range []string{"ana", "Ana", "ANA", " ana", id, strings.ToUpper(id)} {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = name })
		for _, who := range []context.Context{ana, second} {
			_, err := w.gate.Decide(who, a.ID, approve(a))
			wantCode(t, err, gatehouse.CodeSelfApproval)
		}
	}
}

func caller(t *testing.T, ctx context.Context) *gatehouse.Caller {
	t.Helper()
	c, err := gatehouse.CallerFrom(ctx)
	must(t, err)
	return c
}

// A key that another action has cannot be used for a revision.
func TestReviseUnderAKnownKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	keyed := func(p *gatehouse.Proposal) { p.IdempotencyKey = "k" }
	a, other := w.propose(bot, nil), w.propose(bot, keyed)
	_, err := w.gate.Revise(bot, a.ID, proposal(keyed))
	wantCode(t, err, gatehouse.CodeDuplicateKey)
	if got := w.find(a.ID).Status; got != gatehouse.StatusPending {
		t.Errorf("the old action is %s", got)
	}
	fresh := func(p *gatehouse.Proposal) { p.IdempotencyKey = "k2" }
	b, err := w.gate.Revise(bot, other.ID, proposal(fresh))
	must(t, err)
	for name, ctx := range map[string]context.Context{"with": withKey(t, bot, "i", 1), "without": bot} {
		if again, err := w.gate.Revise(ctx, other.ID, proposal(fresh)); err != nil || again.ID != b.ID {
			t.Errorf("the same revision again, %s an Idempotency-Key: %v, %v", name, again, err)
		}
	}
}

func TestReviewerWhoRevisesCannotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	editor := w.principal("eve", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "olga" })
	_, err := w.gate.Revise(w.principal("pia", gatehouse.KindPerson, gatehouse.RoleProposer), a.ID, proposal(nil))
	wantCode(t, err, gatehouse.CodeRoleRequired)
	b, err := w.gate.Revise(editor, a.ID, proposal(func(p *gatehouse.Proposal) { p.ProposedChange = `{"price":"11.00"}` }))
	must(t, err)
	if b.Revision != 2 || b.Supersedes != a.ID || b.Digest == a.Digest {
		t.Errorf("revision %d of %s, digest %s", b.Revision, b.Supersedes, b.Digest)
	}
	_, err = w.gate.Decide(editor, b.ID, approve(b))
	wantCode(t, err, gatehouse.CodeSelfApproval)
	// The person on whose behalf the first proposal was made is still excluded.
	_, err = w.gate.Decide(w.person("olga"), b.ID, approve(b))
	wantCode(t, err, gatehouse.CodeSelfApproval)
	_, err = w.gate.Decide(w.person("ana"), a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeAlreadyDecided)
}

// A NUL is refused before any store sees it, since not every store can keep it.
func TestNotesAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	for _, notes := range []string{"a\x00b", "\xff", strings.Repeat("x", gatehouse.MaxNotesBytes+1)} {
		d := approve(a)
		d.Notes = notes
		_, err := w.gate.Decide(ana, a.ID, d)
		wantCode(t, err, gatehouse.CodeInvalid)
	}
}

func TestConfirmationAsksForTheDecisiveValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	for name, tc := range map[string]struct {
		change func(*gatehouse.Proposal)
		want   string
	}{
		"amount": {func(p *gatehouse.Proposal) { p.ProposedChange = `{"amount":"480.00","currency":"USD"}` }, "480.00"},
		"an amount that is claimed": {func(p *gatehouse.Proposal) {
			p.ProposedChange, p.Magnitude = `{"amount":"9800.00"}`, &gatehouse.Magnitude{Amount: "98.00", Currency: "USD"}
		}, "9800.00"},
		"price": {func(*gatehouse.Proposal) {}, "12.50"},
		"number": {func(p *gatehouse.Proposal) { p.ProposedChange = `{"total":9007199254740993123}` },
			"9007199254740993123"},
		"name":      {func(p *gatehouse.Proposal) { p.ProposedChange = `{"name":"Acme Ltd"}` }, "Acme Ltd"},
		"one field": {func(p *gatehouse.Proposal) { p.ProposedChange = `{"color":"red"}` }, "red"},
		"one field that is not as it was": {func(p *gatehouse.Proposal) {
			p.CurrentState, p.ProposedChange = `{"color":"blue","size":1.0}`, `{"color":"red","size":1.0}`
		}, "red"},
		"a number": {func(p *gatehouse.Proposal) { p.ProposedChange = `{"stock":120}` }, "120"},
		"an opaque value": {
			func(p *gatehouse.Proposal) { p.ProposedChange = `{"group":"698982fe84b2166a10781503da092fef"}` }, "SKU-1"},
		"a switch":                  {func(p *gatehouse.Proposal) { p.ProposedChange = `{"deleted":true}` }, "SKU-1"},
		"two fields":                {func(p *gatehouse.Proposal) { p.ProposedChange = `{"color":"red","size":2}` }, "SKU-1"},
		"no change":                 {func(p *gatehouse.Proposal) { p.ProposedChange = `{}` }, "SKU-1"},
		"a field of a hostile name": {func(p *gatehouse.Proposal) { p.ProposedChange = "{\"co\u202elor\":\"red\"}" }, "red"},
		"bulk": {func(p *gatehouse.Proposal) {
			p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"a", "b", "c"}}
		}, "3"},
		"rows of a condition": {func(p *gatehouse.Proposal) {
			p.Operation = "update_where"
			p.ProposedChange = `{"max_rows":20,"set":{"price":"9.00"},"where":[{"column":"region","op":"=","value":"EU"}]}`
		}, "20"},
		// Text that cannot be seen cannot be retyped: a name with a bidi override
		// is skipped in favour of the reference.
		"hostile": {func(p *gatehouse.Proposal) { p.ProposedChange = "{\"name\":\"Acme\u202eLtd\"}" }, "SKU-1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.propose(bot, func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L4; tc.change(p) })
			c := a.Approval.Confirm
			if c == nil || c.Value != tc.want || !strings.Contains(c.Prompt, tc.want) {
				t.Errorf("confirm = %+v, want %q", c, tc.want)
			}
		})
	}
}
