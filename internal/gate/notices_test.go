package gate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

func (w *world) notices(ctx context.Context, f gatehouse.NoticeFilter) []*gatehouse.Notice {
	w.t.Helper()
	page, err := w.gate.ListNotices(ctx, f)
	must(w.t, err)
	return page.Items
}

// TestChangingRightsLeavesANotice runs the use cases of rightsChanges. Each leaves a log entry, and a
// notice that names the author, the change and the subject; every administrator sees
// the notice until they dismiss it.
func TestChangingRightsLeavesANotice(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, withGrants, func(c *appConfig) { c.Master = newMaster(t, ring.NewMasterKey()) })
	w.agent()
	w.person("ana")
	w.person("ben")
	w.secrets("old", "gone")
	other := w.principal("root", gatehouse.KindPerson, gatehouse.RoleAdmin)
	for name, run := range w.rightsChanges() {
		entries, seen := w.logged(), len(w.notices(w.admin, gatehouse.NoticeFilter{Limit: 200}))
		if err := run(w.admin); err != nil {
			t.Fatal(name, err)
		}
		if w.logged() == entries {
			t.Errorf("%s: not in the log", name)
		}
		list := w.notices(w.admin, gatehouse.NoticeFilter{Limit: 200})
		if len(list) == seen {
			t.Errorf("%s: there is no notice", name)
			continue
		}
		n := list[0]
		if n.ActorName != "admin" || n.SubjectName == "" || n.Subject == "" || n.Via != gatehouse.ViaAPI || n.At.IsZero() {
			t.Errorf("%s: %+v", name, n)
		}
	}
	mine, others := w.notices(w.admin, gatehouse.NoticeFilter{}), w.notices(other, gatehouse.NoticeFilter{})
	if len(others) == 0 || others[0].ID != mine[0].ID {
		t.Fatalf("the other administrator sees %d, the actor %d", len(others), len(mine))
	}
	if n, err := w.gate.DismissNotices(other, []string{others[0].ID, "ntc_none"}); err != nil || n != 1 {
		t.Errorf("dismissed %d, %v", n, err)
	}
	if got := w.notices(other, gatehouse.NoticeFilter{}); len(got) != len(others)-1 || got[0].ID == others[0].ID {
		t.Errorf("after dismissing one of %d: %d", len(others), len(got))
	}
	if got := w.notices(w.admin, gatehouse.NoticeFilter{}); len(got) != len(mine) {
		t.Errorf("the actor sees %d of %d after another has dismissed one", len(got), len(mine))
	}
	carl := w.as(w.credentials("carl", gatehouse.RoleApprover))
	_, err := w.gate.ListNotices(carl, gatehouse.NoticeFilter{})
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.DismissNotices(carl, []string{mine[0].ID})
	wantCode(t, err, gatehouse.CodeRoleRequired)
}

// TestLinkKeyChangesLeaveANotice: rotating or revoking the keys that sign links also leaves a notice.
func TestLinkKeyChangesLeaveANotice(t *testing.T) {
	t.Parallel()
	master, err := ring.Parse(ring.NewMasterKey())
	must(t, err)
	w := newWorldWith(t, "", func(c *appConfig) { c.Master = master })
	key, err := w.gate.RotateLinkKeys(w.admin)
	must(t, err)
	if _, err := w.gate.RevokeLinkKey(w.admin, key.ID); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, n := range w.notices(w.admin, gatehouse.NoticeFilter{}) {
		if n.ActorName == "admin" && n.Subject == key.ID {
			told[n.Kind] = n.SubjectName
		}
	}
	for _, kind := range []string{"link.key_created", "link.key_revoked"} {
		if told[kind] == "" {
			t.Errorf("%s is not told: %v", kind, told)
		}
	}
}

func (w *world) credentials(name string, roles ...gatehouse.Role) *gatehouse.Credentials {
	w.t.Helper()
	c, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson, Roles: roles})
	must(w.t, err)
	return c
}

// TestAcrossTenants: an administrator of default makes a tenant and its first
// administrator, and nothing else there. Both logs name the author's tenant.
func TestAcrossTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	made, err := w.gate.CreateTenant(w.admin, "acme")
	if err != nil || made.FromTenant != "default" {
		t.Fatalf("%+v, %v", made, err)
	}
	create := func(ctx context.Context, tenant, name string, role gatehouse.Role) (*gatehouse.Credentials, error) {
		return w.gate.CreatePrincipal(ctx,
			gatehouse.NewPrincipal{Tenant: tenant, Name: name, Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{role}})
	}
	_, err = create(w.admin, "acme", "eve", gatehouse.RoleApprover)
	wantCode(t, err, gatehouse.CodeInvalid) // nobody could administer the tenant
	first, err := create(w.admin, "acme", "root", gatehouse.RoleAdmin)
	if err != nil || first.Tenant != "acme" || first.FromTenant != "default" {
		t.Fatalf("%+v, %v", first, err)
	}
	_, err = create(w.admin, "acme", "second", gatehouse.RoleAdmin)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	root := w.as(first)
	_, err = create(root, "default", "back", gatehouse.RoleAdmin)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.CreateTenant(root, "other")
	wantCode(t, err, gatehouse.CodeRoleRequired)

	roles := []gatehouse.Role{gatehouse.RoleApprover}
	for name, run := range map[string]func() error{
		"find": func() error { _, err := w.gate.FindPrincipal(w.admin, first.ID); return err },
		"change": func() error {
			_, err := w.gate.UpdatePrincipal(w.admin, first.ID, gatehouse.PrincipalChange{Roles: &roles})
			return err
		},
		"key":    func() error { _, err := w.gate.CreateKey(w.admin, first.ID); return err },
		"revoke": func() error { return w.gate.RevokeKey(w.admin, first.KeyID) },
		"token":  func() error { _, err := w.gate.RotateEditToken(w.admin, first.ID); return err },
		"link":   func() error { _, err := w.gate.CreateSetupLink(w.admin, first.ID); return err },
		"keys":   func() error { _, err := w.gate.ListKeys(w.admin, first.ID); return err },
	} {
		if err := run(); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("%s across tenants: %v", name, err)
		}
	}
	there := w.notices(root, gatehouse.NoticeFilter{})
	if len(there) == 0 || there[len(there)-1].FromTenant != "default" {
		t.Errorf("acme is told %+v", there)
	}
	told := false
	for _, n := range w.notices(w.admin, gatehouse.NoticeFilter{}) {
		told = told || n.Kind == "principal.created" && strings.Contains(n.Detail, "in tenant acme")
	}
	if !told {
		t.Error("default has no notice of what its administrator created in acme")
	}
	from := map[string]int{}
	for _, l := range w.entries() {
		if strings.Contains(string(l.Data), `"from_tenant":"default"`) && l.Tenant == "acme" {
			from[l.Type]++
		}
		if l.Type == "tenant.acted" && l.Tenant == "default" && l.Subject == "acme" {
			from["acted"]++
		}
	}
	if from["tenant.created"] != 1 || from["principal.created"] != 1 || from["acted"] != 2 {
		t.Errorf("the logs have %v", from)
	}
}

// entries returns the leaves that have no number yet, at most 1000.
func (w *world) entries() (list []gatehouse.Leaf) {
	w.t.Helper()
	err := w.store.ViewQueues(w.t.Context(), func(q gatehouse.ReadQueues) error {
		list = nil
		pending, err := q.UnnumberedLeaves(1000)
		for _, p := range pending {
			var l gatehouse.Leaf
			if err := json.Unmarshal([]byte(p.Body), &l); err != nil {
				return err
			}
			list = append(list, l)
		}
		return err
	})
	must(w.t, err)
	return list
}

// TestApproverDelay: a person who became an approver less than the delay ago does
// not count at L5, however they became one.
func TestApproverDelay(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, "", func(c *appConfig) { c.ApproverDelay = 24 * time.Hour })
	w.targets.floor = gatehouse.L5
	bot := w.agent()
	w.person("ana")
	ben := w.person("ben")
	w.clock.Advance(24*time.Hour - time.Second)
	a := w.propose(bot, nil)
	decide := func(ctx context.Context, kind gatehouse.DecisionKind) error {
		t.Helper()
		d := approve(a)
		d.Decision, d.Notes = kind, "reason"
		_, err := w.gate.Decide(ctx, a.ID, d)
		return err
	}
	for _, kind := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
		err := decide(ben, kind)
		wantCode(t, err, gatehouse.CodeRoleRequired)
		if !strings.Contains(err.Error(), "counts at L5 from 2026-11-21T12:00:00Z") {
			t.Errorf("it says %q", err)
		}
	}
	w.clock.Advance(time.Second)
	must(t, decide(ben, gatehouse.Approve))
	// Losing the role and gaining it again restarts the delay, and earlier votes do
	// not count either.
	set := func(roles ...gatehouse.Role) {
		t.Helper()
		if _, err := w.gate.UpdatePrincipal(w.admin, "ben", gatehouse.PrincipalChange{Roles: &roles}); err != nil {
			t.Fatal(err)
		}
	}
	set(gatehouse.RoleViewer)
	set(gatehouse.RoleApprover)
	carl := w.person("carl")
	w.clock.Advance(time.Hour)
	wantCode(t, decide(carl, gatehouse.Approve), gatehouse.CodeRoleRequired)
	anaOld, err := w.gate.FindPrincipal(w.admin, "ana")
	must(t, err)
	old := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: anaOld, StepUp: true, Via: gatehouse.ViaAPI})
	wantCode(t, decide(old, gatehouse.Approve), gatehouse.CodeAuthorityRevoked)

	// A new credential from an administrator restarts the delay.
	if _, err := w.gate.RotateEditToken(w.admin, "ana"); err != nil {
		t.Fatal(err)
	}
	anaOld, err = w.gate.FindPrincipal(w.admin, "ana")
	must(t, err)
	old = gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: anaOld, StepUp: true, Via: gatehouse.ViaAPI})
	wantCode(t, decide(old, gatehouse.Approve), gatehouse.CodeRoleRequired)
	// Below L5 there is no delay.
	w.targets.floor = gatehouse.L3
	a = w.propose(bot, nil)
	must(t, decide(old, gatehouse.Approve))
}
