package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const asksFinance = `version: 1
approvals:
  3: {groups: [finance]}
`

func (w *world) group(name string, members ...string) {
	w.t.Helper()
	if _, err := w.gate.PutGroup(w.admin, name, gatehouse.GroupMembers{Members: members}); err != nil {
		w.t.Fatal(err)
	}
}

// again returns the caller of a later request, with the person's groups as they are now.
func (w *world) again(who context.Context) context.Context {
	w.t.Helper()
	c := *callerOf(w.t, who)
	var err error
	if c.Principal, err = w.gate.FindPrincipal(w.admin, c.Principal.ID); err != nil {
		w.t.Fatal(err)
	}
	return gatehouse.NewContext(w.t.Context(), &c)
}

func TestOnlyMembersOfTheGroupDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksFinance)
	ana, ben, bot := w.person("ana"), w.person("ben"), w.agent()
	w.group("finance", "ANA")
	a := w.propose(bot, nil)
	if !slices.Equal(a.Approval.Groups, []string{"finance"}) || len(a.Approval.Roles) != 0 {
		t.Fatalf("the approval asks roles %v, groups %v", a.Approval.Roles, a.Approval.Groups)
	}
	if stored := w.find(a.ID).Approval; !slices.Equal(stored.Groups, []string{"finance"}) {
		t.Fatalf("stored groups: %v", stored.Groups)
	}
	for name, who := range map[string]context.Context{"another approver": ben, "the administrator": w.admin} {
		_, err := w.gate.Decide(who, a.ID, approve(a))
		if gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
			t.Errorf("%s decides: %v", name, err)
		}
	}
	if answer, err := w.gate.Decide(w.again(ana), a.ID, approve(a)); err != nil || answer.Code != gatehouse.Decided {
		t.Fatalf("a member: %+v, %v", answer, err)
	}
}

// TestRemovedMembersDoNotCount: the vote of a person who has left the group counts
// neither for the second approval nor at dispatch.
func TestRemovedMembersDoNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(asksFinance, "{groups", "{required: 2, groups", 1))
	ana, ben, bot := w.person("ana"), w.person("ben"), w.agent()
	w.group("finance", "ana", "ben")
	a := w.propose(bot, nil)
	if _, err := w.gate.Decide(w.again(ana), a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	w.group("finance", "ben")
	_, err := w.gate.Decide(w.again(ben), a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeAuthorityRevoked)
	w.group("finance", "ana", "ben")
	if _, err := w.gate.Decide(w.again(ben), a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	recheck := func() error { return w.recheck(a.ID) }
	if err := recheck(); err != nil {
		t.Fatalf("while both are members: %v", err)
	}
	if _, err := w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{Remove: []string{"ben"}}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, recheck(), gatehouse.CodeAuthorityRevoked)
	w.group("finance", "ana", "ben")
	must(t, w.gate.DeleteGroup(w.admin, "finance"))
	wantCode(t, recheck(), gatehouse.CodeAuthorityRevoked)
}

func TestChangingGroupsIsChangingRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	admin := callerOf(t, w.admin).Principal
	bare := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: admin, Via: gatehouse.ViaAPI})
	session := w.signIn(w.admin, gatehouse.Browser{})
	browser := w.browser(session)
	w.group("finance")
	w.clock.Advance(gatehouse.FreshSignIn + time.Second)
	for name, c := range map[string]struct {
		ctx  context.Context
		want gatehouse.Code
	}{
		"an approver": {ana, gatehouse.CodeRoleRequired}, "without the edit token": {bare, gatehouse.CodeEditTokenRequired},
		"in an old session": {browser, gatehouse.CodeEditTokenRequired},
	} {
		_, err := w.gate.PutGroup(c.ctx, "finance", gatehouse.GroupMembers{Members: []string{"ana"}})
		_, err2 := w.gate.ChangeGroup(c.ctx, "finance", gatehouse.GroupChange{Add: []string{"ana"}})
		err3 := w.gate.DeleteGroup(c.ctx, "finance")
		for _, err := range []error{err, err2, err3} {
			if gatehouse.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
	}
	found, err := w.gate.FindGroup(w.admin, "finance")
	if err != nil || len(found.Members) != 0 {
		t.Fatalf("after refusals: %+v, %v", found, err)
	}
	fresh := w.browser(w.signIn(w.admin, gatehouse.Browser{}))
	if _, err := w.gate.ChangeGroup(fresh, "finance", gatehouse.GroupChange{Add: []string{"ana"}}); err != nil {
		t.Fatalf("in a fresh session: %v", err)
	}
}

func TestGroupsTakePeopleOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.person("ana")
	w.agent()
	for _, name := range []string{"Finance", "", "a b", strings.Repeat("a", 65), "-x"} {
		_, err := w.gate.PutGroup(w.admin, name, gatehouse.GroupMembers{})
		wantCode(t, err, gatehouse.CodeInvalid)
	}
	for _, member := range []string{"bot", "nobody", ""} {
		_, err := w.gate.PutGroup(w.admin, "finance", gatehouse.GroupMembers{Members: []string{"ana", member}})
		wantCode(t, err, gatehouse.CodeInvalid)
	}
	_, err := w.gate.FindGroup(w.admin, "finance")
	wantCode(t, err, gatehouse.CodeNotFound)
	_, err = w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{Add: []string{"ana"}})
	wantCode(t, err, gatehouse.CodeNotFound)
	_, err = w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{})
	wantCode(t, err, gatehouse.CodeNotFound)
	w.group("finance", "ana")
	_, err = w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{})
	if e, ok := errors.AsType[*gatehouse.Error](err); !ok || len(e.Violations) != 1 {
		t.Errorf("an empty change: %v", err)
	}
	if n := w.leaves("group.created") + w.leaves("principal.changed"); n != 2 {
		t.Errorf("%d log entries about groups, want 2", n)
	}
}

// TestGroupIsFull: a change of a full group may not add a member, unless it also removes one.
func TestGroupIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.person("ana")
	names := make([]string, gatehouse.MaxGroupMembers)
	err := w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		for i := range names {
			names[i] = fmt.Sprintf("member-%d", i)
			p := &gatehouse.Principal{ID: gate.NewID("prn"), Tenant: gatehouse.DefaultTenant, Name: names[i],
				Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleViewer}, CreatedAt: tx.Now()}
			p.Person = p.ID
			if err := tx.InsertPrincipal(p); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, err)
	w.group("finance", names...)
	_, err = w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{Add: []string{"ana"}})
	wantCode(t, err, gatehouse.CodeInvalid)
	_, err = w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{Add: []string{"ana"}, Remove: names[:1]})
	must(t, err)
}

// TestGroupsFromASignIn: each sign-in replaces the memberships from its provider, and
// keeps those that were set by hand.
func TestGroupsFromASignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksFinance)
	e := gatehouse.ExternalSignIn{
		Tenant: gatehouse.DefaultTenant, Provider: "corp", Issuer: "https://id.test", Subject: "1", Name: "ana",
		Provision: true,
		Roles:     []gatehouse.Role{gatehouse.RoleApprover}, Managed: []gatehouse.Role{gatehouse.RoleApprover},
		Groups: []string{"finance"},
	}
	members := func(groups ...string) map[string][]string {
		t.Helper()
		e.Groups = groups
		if _, err := w.gate.SignInExternal(t.Context(), e, gatehouse.Browser{}); err != nil {
			t.Fatal(err)
		}
		p, err := w.gate.FindPrincipal(w.admin, "corp:ana")
		must(t, err)
		out := map[string][]string{}
		for _, m := range p.Groups {
			out[m.Group] = append(out[m.Group], m.From)
		}
		return out
	}
	if got := members("finance"); len(got) != 1 || !slices.Equal(got["finance"], []string{"https://id.test"}) {
		t.Fatalf("after the first sign-in: %v", got)
	}
	if _, err := w.gate.PutGroup(w.admin, "finance", gatehouse.GroupMembers{Members: []string{"corp:ana"}}); err != nil {
		t.Fatal(err)
	}
	if got := members("legal"); !slices.Equal(got["finance"], []string{gatehouse.ByHand}) || len(got["legal"]) != 1 {
		t.Fatalf("after a sign-in with legal: %v", got)
	}
	if got := members(); len(got) != 1 || got["legal"] != nil {
		t.Fatalf("after a sign-in without groups: %v", got)
	}
	// Removal by hand also ends memberships from a provider, until the next sign-in.
	members("finance")
	if _, err := w.gate.ChangeGroup(w.admin, "finance", gatehouse.GroupChange{Remove: []string{"corp:ana"}}); err != nil {
		t.Fatal(err)
	}
	if found, err := w.gate.FindGroup(w.admin, "finance"); err != nil || len(found.Members) != 0 {
		t.Fatalf("after the removal: %+v, %v", found, err)
	}
	if got := members("finance"); !slices.Equal(got["finance"], []string{"https://id.test"}) {
		t.Fatalf("after the next sign-in: %v", got)
	}
}
