package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGrantEndsWithMappedRole: if the groups of the sign-in provider take a grantor's role, the
// grants end; they do not return with the role.
func TestGrantEndsWithMappedRole(t *testing.T) {
	t.Parallel()
	w, bot, _ := refunds(t, "")
	e := gatehouse.ExternalSignIn{
		Tenant: gatehouse.DefaultTenant, Provider: "acme", Issuer: "https://id.test", Subject: "1", Name: "eve",
		Provision: true, Managed: []gatehouse.Role{gatehouse.RoleApprover},
	}
	signIn := func(roles ...gatehouse.Role) *gatehouse.SignedIn {
		t.Helper()
		e.Roles = roles
		s, err := w.gate.SignInExternal(t.Context(), e, gatehouse.Browser{})
		if err != nil && len(roles) > 0 {
			t.Fatal(err)
		}
		return s
	}
	p := signIn(gatehouse.RoleApprover).Principal
	g := w.grant(gatehouse.NewContext(t.Context(), &gatehouse.Caller{
		Principal: p, Via: gatehouse.ViaAPI, StepUp: true,
	}), nil)
	w.wantStatus("with the role", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	signIn()
	if got := w.granted(g.ID); got.EndReason != gatehouse.GrantRightLost {
		t.Errorf("ended by %q", got.EndReason)
	}
	signIn(gatehouse.RoleApprover)
	w.wantStatus("with the role again", w.refund(bot, "10", nil), gatehouse.StatusPending)
}

// late calls first after a use case's preparation and before its transaction.
type late struct {
	gatehouse.Store
	first func()
}

func (l *late) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	l.first()
	return l.Store.Update(ctx, tenant, fn)
}

// TestGrantEndsMeanwhile: a grant that covers a proposal when the policy judges it, but ends before the
// proposal is stored, approves nothing.
func TestGrantEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(w *world, id string){
		"expired": func(w *world, _ string) { w.clock.Advance(time.Hour) },
		"revoked": func(w *world, id string) {
			if _, err := w.gate.RevokeGrant(w.admin, id); err != nil {
				w.t.Error(err)
			}
		},
	} {
		w, bot, ana := refunds(t, "")
		g := w.grant(ana, nil)
		w.gate.Store = &late{w.store, func() {
			w.gate.Store = w.store
			meanwhile(w, g.ID)
		}}
		w.wantStatus(name, w.refund(bot, "10", nil), gatehouse.StatusPending)
		if got := w.granted(g.ID); got.Used != 0 {
			t.Errorf("%s: used %d", name, got.Used)
		}
	}
}

// TestGrantOfDeadLetter: a grant does not approve a change that repeats a dead letter.
func TestGrantOfDeadLetter(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	w.grant(ana, nil)
	a := w.refund(bot, "10", nil)
	w.wantStatus("the first", a, gatehouse.StatusApproved)
	err := w.store.Update(t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
		p, err := tx.LockPush(a.Push.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		p.PickedAt, p.NextAttempt, p.LeaseOwner, p.LeaseUntil = &now, nil, "me", &now
		for _, to := range []gatehouse.PushStatus{gatehouse.PushPicking, gatehouse.PushFailed} {
			from, generation := p.Status, p.Generation
			p.Generation = 1
			if p.Status = to; to == gatehouse.PushFailed {
				p.ErrorCode, p.FinishedAt, p.LeaseOwner, p.LeaseUntil = "refused", &now, "", nil
			}
			if err := tx.UpdatePush(p, from, generation); err != nil {
				return err
			}
		}
		return tx.MarkDeadLetter(p, a.EffectHash())
	})
	must(t, err)
	w.wantStatus("the second", w.refund(bot, "10", nil), gatehouse.StatusPending)
}
