package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// rightsChanges lists use cases that change who may do what: those of credentials, roles, groups, policies,
// tenants, delegations, grants and secrets.
func (w *world) rightsChanges() map[string]func(context.Context) error {
	roles, disabled, version := []gatehouse.Role{gatehouse.RoleApprover}, true, 1
	keys, err := w.gate.ListKeys(w.admin, "ana")
	if err != nil || len(keys) == 0 {
		w.t.Fatal(err, keys)
	}
	return map[string]func(context.Context) error{
		"create principal": func(ctx context.Context) error {
			_, err := w.gate.CreatePrincipal(ctx, gatehouse.NewPrincipal{Name: "eve", Kind: gatehouse.KindPerson, Roles: roles})
			return err
		},
		"change roles": func(ctx context.Context) error {
			_, err := w.gate.UpdatePrincipal(ctx, "ana", gatehouse.PrincipalChange{Roles: &roles})
			return err
		},
		"disable": func(ctx context.Context) error {
			_, err := w.gate.UpdatePrincipal(ctx, "ben", gatehouse.PrincipalChange{Disabled: &disabled})
			return err
		},
		"create key":        func(ctx context.Context) error { _, err := w.gate.CreateKey(ctx, "ana"); return err },
		"revoke key":        func(ctx context.Context) error { return w.gate.RevokeKey(ctx, keys[0].ID) },
		"rotate edit token": func(ctx context.Context) error { _, err := w.gate.RotateEditToken(ctx, "ana"); return err },
		"set-up link":       func(ctx context.Context) error { _, err := w.gate.CreateSetupLink(ctx, "ana"); return err },
		"create tenant":     func(ctx context.Context) error { _, err := w.gate.CreateTenant(ctx, "acme"); return err },
		"delegate": func(ctx context.Context) error {
			_, err := w.gate.CreateDelegation(ctx,
				gatehouse.NewDelegation{From: "admin", To: "ana", Ends: w.clock.Now().Add(time.Hour)})
			return err
		},
		"give a grant": func(ctx context.Context) error {
			_, err := w.gate.CreateGrant(ctx,
				newGrant(nil))
			return err
		},
		"put group": func(ctx context.Context) error {
			_, err := w.gate.PutGroup(ctx, "finance", gatehouse.GroupMembers{Members: []string{"ana"}})
			return err
		},
		"put an empty group": func(ctx context.Context) error {
			_, err := w.gate.PutGroup(ctx, "auditors", gatehouse.GroupMembers{})
			return err
		},
		"apply policy": func(ctx context.Context) error {
			_, err := w.gate.ApplyPolicy(ctx,
				withGrants+"# again\n")
			return err
		},
		"set a secret": func(ctx context.Context) error {
			_, err := w.gate.SetSecret(ctx, gatehouse.NewSecret{Name: "new", Value: "value-1"})
			return err
		},
		"rotate a secret": func(ctx context.Context) error {
			_, err := w.gate.RotateSecret(ctx, gatehouse.NewSecret{Name: "old", Value: "value-2"})
			return err
		},
		"revoke a secret": func(ctx context.Context) error { _, err := w.gate.RevokeSecret(ctx, "gone"); return err },
		"activate policy": func(ctx context.Context) error { _, err := w.gate.ActivatePolicy(ctx, version); return err },
	}
}

// secrets stores secrets of these names.
func (w *world) secrets(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if _, err := w.gate.SetSecret(w.admin, gatehouse.NewSecret{Name: name, Value: "value-0"}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestChangingRightsNeedsASecondSecret runs each use case as an administrator with only a key, and
// as one whose browser signed in long ago: neither changes anything.
func TestChangingRightsNeedsASecondSecret(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, withGrants, func(c *appConfig) { c.Master = newMaster(t, ring.NewMasterKey()) })
	w.agent()
	w.person("ana")
	w.person("ben")
	w.secrets("old", "gone")
	admin, err := w.gate.FindPrincipal(w.admin, "admin")
	must(t, err)
	rotated, err := w.gate.RotateEditToken(w.admin, "admin")
	must(t, err)
	ofBen, err := w.gate.RotateEditToken(w.admin, "ben")
	must(t, err)
	keyOnly := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: admin, Via: gatehouse.ViaAPI})
	session := &gatehouse.Session{Tenant: admin.Tenant, PrincipalID: admin.ID, CreatedAt: w.clock.Now()}
	browser := gatehouse.NewContext(t.Context(),
		&gatehouse.Caller{Principal: admin, StepUp: true, Session: session, Via: gatehouse.ViaConsole})
	w.clock.Advance(gatehouse.FreshSignIn + time.Second)
	wrong, err := w.gate.ShowEditToken(browser, ofBen.EditToken)
	must(t, err)
	right, err := w.gate.ShowEditToken(browser, rotated.EditToken)
	must(t, err)
	before := w.logged()
	for name, run := range w.rightsChanges() {
		for who, ctx := range map[string]context.Context{"a key": keyOnly, "an old sign-in": browser,
			"somebody else's token": wrong} {
			if err := run(ctx); gatehouse.CodeOf(err) != gatehouse.CodeEditTokenRequired {
				t.Errorf("%s with %s: %v", name, who, err)
			}
		}
	}
	if after := w.logged(); after != before {
		t.Errorf("%d entries of the log, %d before", after, before)
	}
	for name, run := range w.rightsChanges() {
		if err := run(right); err != nil {
			t.Errorf("%s with the token: %v", name, err)
		}
	}
	session.CreatedAt = w.clock.Now()
	if err := w.rightsChanges()["create key"](browser); err != nil {
		t.Errorf("after a fresh sign-in: %v", err)
	}
}

// logged counts the leaves that have no number yet, up to 1000.
func (w *world) logged() (n int) {
	w.t.Helper()
	err := w.store.ViewQueues(w.t.Context(), func(q gatehouse.ReadQueues) error {
		list, err := q.UnnumberedLeaves(1000)
		n = len(list)
		return err
	})
	must(w.t, err)
	return n
}
