package gate_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGrantEndsWithMappedRole: a grantor who loses the role by the groups of the sign-in
// provider loses the grants too; they do not come back with the role.
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
