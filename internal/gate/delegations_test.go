package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const financeDecides = `version: 1
approvals:
  3: {groups: [finance]}
`

const twoOfFinanceDecide = `version: 1
approvals:
  3: {required: 2, groups: [finance]}
`

func (w *world) delegate(who context.Context, n gatehouse.NewDelegation) *gatehouse.Delegation {
	w.t.Helper()
	if n.Ends.IsZero() {
		n.Ends = w.clock.Now().Add(24 * time.Hour)
	}
	d, err := w.gate.CreateDelegation(who, n)
	must(w.t, err)
	return d
}

func (w *world) code(who context.Context, a *gatehouse.Action, kind gatehouse.DecisionKind) gatehouse.Code {
	w.t.Helper()
	d := approve(a)
	d.Decision = kind
	_, err := w.gate.Decide(who, a.ID, d)
	if err == nil {
		return ""
	}
	return gatehouse.CodeOf(err)
}

func (w *world) wantCode(what string, got, want gatehouse.Code) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestDelegationsBeyondTheList: an administrator's list is limited, but has every delegation to the administrator
// that is in force; its Delegator says for whom they may answer.
func TestDelegationsBeyondTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, financeDecides)
	w.person("ana")
	ben := w.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleAdmin)
	mine := w.delegate(w.admin, gatehouse.NewDelegation{From: "ana", To: "ben"})
	for i := range 13 { // 50 delegations each at most
		from := fmt.Sprintf("p%d", i)
		w.person(from)
		for range 40 {
			w.delegate(w.admin, gatehouse.NewDelegation{From: from, To: "ana"})
		}
	}
	list, err := w.gate.ListDelegations(ben)
	must(t, err)
	i := slices.IndexFunc(list, func(d *gatehouse.Delegation) bool { return d.ID == mine.ID })
	if i < 0 || list[i].Delegator == nil || len(list) > 501 {
		t.Errorf("at %d of %d: %+v", i, len(list), mine)
	}
	must(t, w.store.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		all, err := gatehouse.Standings(tx, "")
		if len(all) != 521 {
			t.Errorf("%d of 521 delegations are in force", len(all))
		}
		return err
	}))
}

// TestDelegateVotesForAnother: the delegate votes in their own name, for a time,
// for the delegated actions; nobody else gains a right.
func TestDelegateVotesForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, financeDecides)
	bot, ana, ben, cy := w.agent(), w.person("ana"), w.person("ben"), w.person("cy")
	w.group("finance", "ana")
	ana = w.again(ana)
	a := w.propose(bot, nil)
	w.wantCode("without a delegation", w.code(ben, a, gatehouse.Approve), gatehouse.CodeRoleRequired)
	now := w.clock.Now()
	later := w.delegate(ana,
		gatehouse.NewDelegation{To: "ben", Starts: now.Add(time.Hour), Ends: now.Add(3 * time.Hour),
			Types: []string{a.ActionType}, Level: gatehouse.L3})
	if later.FromName != "ana" || later.ToName != "ben" || later.CreatedBy != "ana" {
		t.Errorf("stored as %+v", later)
	}
	w.delegate(ben, gatehouse.NewDelegation{To: "cy"}) // delegations do not chain
	w.wantCode("before it begins", w.code(ben, a, gatehouse.Approve), gatehouse.CodeRoleRequired)
	w.clock.Advance(time.Hour)
	w.wantCode("by a chain", w.code(cy, a, gatehouse.Approve), gatehouse.CodeRoleRequired)
	other := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "note_of_another_type" })
	w.wantCode("another type", w.code(ben, other, gatehouse.Approve), gatehouse.CodeRoleRequired)
	w.wantCode("for ana", w.code(ben, a, gatehouse.Approve), "")
	got := w.find(a.ID)
	v := got.Approval.VoteOf(got.Approval.Votes[0].Person)
	if got.DecidedBy != "ben" || v.Name != "ben" || v.ForName != "ana" || v.For != later.From {
		t.Errorf("decided by %s, with %+v", got.DecidedBy, v)
	}
	if err := w.recheck(a.ID); err != nil {
		t.Errorf("at dispatch: %v", err)
	}
	found := false
	for _, l := range w.entries() {
		found = found || l.Type == "hitl.approved" && strings.Contains(string(l.Data), `"for":"`+later.From+`"`)
	}
	if !found {
		t.Error("the log does not say for whom")
	}
	// A delegation that has ended since leaves its vote valid; the loss of ana's
	// right does not.
	w.clock.Advance(2 * time.Hour)
	if err := w.recheck(a.ID); err != nil {
		t.Errorf("at dispatch, after the end: %v", err)
	}
	b := w.propose(bot, nil)
	w.wantCode("after its end", w.code(ben, b, gatehouse.Approve), gatehouse.CodeRoleRequired)
	disabled := true
	if _, err := w.gate.UpdatePrincipal(w.admin, later.From, gatehouse.PrincipalChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	if err := w.recheck(a.ID); gatehouse.CodeOf(err) != gatehouse.CodeAuthorityRevoked {
		t.Errorf("at dispatch, with ana disabled: %v", err)
	}
}

// TestDelegatedRightCountsOnce: in a quorum a person counts once, by their own vote
// or by a delegate's. Rejecting is always possible.
func TestDelegatedRightCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoOfFinanceDecide)
	bot, ana, ben, cy, dan := w.agent(), w.person("ana"), w.person("ben"), w.person("cy"), w.person("dan")
	w.group("finance", "ana", "dan")
	ana, dan = w.again(ana), w.again(dan)
	w.delegate(ana, gatehouse.NewDelegation{To: "ben"})
	w.delegate(w.admin, gatehouse.NewDelegation{From: "ana", To: "cy"})

	a := w.propose(bot, nil)
	w.wantCode("ben for ana", w.code(ben, a, gatehouse.Approve), "")
	w.wantCode("ben once more", w.code(ben, a, gatehouse.Approve), "")
	w.wantCode("ana herself", w.code(ana, a, gatehouse.Approve), gatehouse.CodeAlreadyVoted)
	w.wantCode("cy for ana too", w.code(cy, a, gatehouse.Approve), gatehouse.CodeAlreadyVoted)
	if got := w.find(a.ID); got.Status != gatehouse.StatusPending || got.Approval.Approvals() != 1 {
		t.Fatalf("%s with %d votes", got.Status, got.Approval.Approvals())
	}
	w.wantCode("dan", w.code(dan, a, gatehouse.Approve), "")
	if got := w.find(a.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("%s", got.Status)
	}

	b := w.propose(bot, nil)
	w.wantCode("ana first", w.code(ana, b, gatehouse.Approve), "")
	w.wantCode("ben after ana", w.code(ben, b, gatehouse.Approve), gatehouse.CodeAlreadyVoted)
	w.wantCode("cy rejects for ana", w.code(cy, b, gatehouse.Reject), "")
	if got := w.find(b.ID); got.Status != gatehouse.StatusRejected {
		t.Errorf("%s", got.Status)
	}
}

// TestExcludedPeopleAreNotDelegates: a person on whose behalf a change is proposed cannot vote as a
// delegate, and no delegate can vote for that person.
func TestExcludedPeopleAreNotDelegates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, financeDecides)
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	w.person("dan")
	w.group("finance", "ana", "dan")
	ana = w.again(ana)
	w.delegate(ana, gatehouse.NewDelegation{To: "ben"})
	mine := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "ben" })
	w.wantCode("proposed for the delegate", w.code(ben, mine, gatehouse.Approve), gatehouse.CodeSelfApproval)
	hers := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "ana" })
	w.wantCode("proposed for the delegator", w.code(ben, hers, gatehouse.Approve), gatehouse.CodeRoleRequired)
}

// TestNewSponsorsDoNotCountByDelegation: a vote by delegation does not count once the delegate, or the person the
// delegate votes for, is the agent's sponsor.
func TestNewSponsorsDoNotCountByDelegation(t *testing.T) {
	t.Parallel()
	for _, sponsor := range []string{"ana", "ben"} {
		w := newWorld(t, twoOfFinanceDecide)
		bot, ana, ben, dan := w.agent(), w.person("ana"), w.person("ben"), w.person("dan")
		w.group("finance", "ana", "dan")
		ana, dan = w.again(ana), w.again(dan)
		w.delegate(ana, gatehouse.NewDelegation{To: "ben"})
		a := w.propose(bot, nil)
		w.wantCode("by delegation", w.code(ben, a, gatehouse.Approve), "")
		_, err := w.gate.UpdatePrincipal(w.admin, "bot", gatehouse.PrincipalChange{Sponsor: &sponsor})
		must(t, err)
		w.wantCode("the last approval, with the sponsor "+sponsor, w.code(dan, a, gatehouse.Approve),
			gatehouse.CodeAuthorityRevoked)
	}
}

func TestDelegationIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, financeDecides)
	ana, ben := w.person("ana"), w.person("ben")
	bot := w.agent()
	viewer := w.principal("vic", gatehouse.KindPerson, gatehouse.RoleViewer)
	ends := w.clock.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		who  context.Context
		n    gatehouse.NewDelegation
		want gatehouse.Code
	}{
		"a robot":     {ana, gatehouse.NewDelegation{To: "bot", Ends: ends}, gatehouse.CodeInvalid},
		"no approver": {ana, gatehouse.NewDelegation{To: "vic", Ends: ends}, gatehouse.CodeInvalid},
		"oneself":     {ana, gatehouse.NewDelegation{To: "ana", Ends: ends}, gatehouse.CodeInvalid},
		"nobody":      {ana, gatehouse.NewDelegation{To: "zoe", Ends: ends}, gatehouse.CodeInvalid},
		"no end":      {ana, gatehouse.NewDelegation{To: "ben"}, gatehouse.CodeInvalid},
		"past": {ana, gatehouse.NewDelegation{To: "ben", Ends: ends.Add(-2 * time.Hour)},
			gatehouse.CodeInvalid},
		"too long": {ana, gatehouse.NewDelegation{To: "ben", Ends: ends.Add(400 * 24 * time.Hour)},
			gatehouse.CodeInvalid},
		"no such level":    {ana, gatehouse.NewDelegation{To: "ben", Ends: ends, Level: 6}, gatehouse.CodeInvalid},
		"of somebody else": {ana, gatehouse.NewDelegation{From: "ben", To: "ana", Ends: ends}, gatehouse.CodeRoleRequired},
		"made by a robot":  {bot, gatehouse.NewDelegation{From: "ana", To: "ben", Ends: ends}, gatehouse.CodeRoleRequired},
		"made by a viewer": {viewer, gatehouse.NewDelegation{From: "ana", To: "ben", Ends: ends},
			gatehouse.CodeRoleRequired},
		"by an administrator": {w.admin, gatehouse.NewDelegation{From: "ANA", To: "ben", Ends: ends}, ""},
	} {
		_, err := w.gate.CreateDelegation(c.who, c.n)
		got := gatehouse.Code("")
		if err != nil {
			got = gatehouse.CodeOf(err)
		}
		w.wantCode(name, got, c.want)
	}
	list, err := w.gate.ListDelegations(ben)
	if err != nil || len(list) != 1 || list[0].FromName != "ana" {
		t.Fatalf("ben's: %v, %v", list, err)
	}
	cy := w.person("cy")
	if _, err := w.gate.EndDelegation(cy, list[0].ID); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("ended by a stranger: %v", err)
	}
	for range 2 {
		d, err := w.gate.EndDelegation(ben, list[0].ID)
		if err != nil || d.EndedBy != "ben" {
			t.Errorf("ended by the delegate: %+v, %v", d, err)
		}
	}
	if w.leaves("delegation.made") != 1 || w.leaves("delegation.ended") != 1 {
		t.Errorf("the log has %d made and %d ended", w.leaves("delegation.made"), w.leaves("delegation.ended"))
	}
}
