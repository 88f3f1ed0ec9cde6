package gate_test

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TestExpiredSessionsAreRevokedToo: the browser of an expired session is recognized until the session is
// revoked, so whatever ends sessions also revokes expired ones.
func TestExpiredSessionsAreRevokedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	const issuer = "https://id.test"
	signedIn := func(name string) *gatehouse.SignedIn { return w.signIn(w.person(name), gatehouse.Browser{}) }
	root := func(name string) context.Context { return w.principal(name, gatehouse.KindPerson, gatehouse.RoleAdmin) }

	ana, ben, cid := signedIn("ana"), signedIn("ben"), signedIn("cid")
	k, err := w.gate.AddPasskey(w.browser(ana), &gatehouse.Passkey{CredentialID: []byte{1}, Credential: []byte(`{}`)})
	must(t, err)
	byPasskey, err := w.gate.SignInPasskey(t.Context(), k, 0, gatehouse.Browser{})
	must(t, err)
	_, err = w.gate.LinkIdentity(w.browser(ben), gatehouse.DefaultTenant, issuer, "1")
	must(t, err)
	byIdentity, err := w.gate.SignInExternal(t.Context(), gatehouse.ExternalSignIn{Tenant: gatehouse.DefaultTenant,
		Provider: "acme", Issuer: issuer, Subject: "1", Name: "ben"}, gatehouse.Browser{})
	must(t, err)
	dan, eve, fay := signedIn("dan"), signedIn("eve"), w.signIn(root("fay"), gatehouse.Browser{})
	w.clock.Advance(gatehouse.SessionIdle)

	for _, c := range []struct {
		way  string
		s    *gatehouse.SignedIn
		ends func() error
	}{
		{"removing a passkey", byPasskey, func() error { return w.gate.RemovePasskey(w.admin, k.ID) }},
		{"unlinking an identity", byIdentity, func() error { return w.gate.UnlinkIdentity(w.admin, issuer, "1") }},
		{"ending the other sessions", cid, func() error {
			here := w.signIn(gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: cid.Principal}),
				gatehouse.Browser{})
			n, err := w.gate.EndOtherSessions(w.browser(here))
			if n != 0 {
				t.Errorf("%d live sessions were ended, want none", n)
			}
			w.browser(here)
			return err
		}},
		{"an administrator's revocation", dan, func() error {
			_, err := w.gate.RevokeSession(w.admin, dan.Session.ID)
			return err
		}},
		{"disabling", eve, func() error {
			yes := true
			_, err := w.gate.UpdatePrincipal(w.admin, "eve", gatehouse.PrincipalChange{Disabled: &yes})
			return err
		}},
		{"a reset", fay, func() error {
			_, err := w.gate.ResetAdmin(t.Context(),
				gate.AdminReset{Tenant: gatehouse.DefaultTenant, Name: "fay", Revoke: true})
			return err
		}},
	} {
		before := w.leaves("session.revoked")
		must(t, c.ends())
		page, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{Principal: c.s.Principal.ID, Ended: true})
		must(t, err)
		for _, s := range page.Items {
			if s.ID == c.s.Session.ID && s.RevokedAt == nil {
				t.Errorf("%s left the expired session unrevoked", c.way)
			}
		}
		if n := w.leaves("session.revoked") - before; n != 1 {
			t.Errorf("%s: %d leaves, want 1", c.way, n)
		}
	}
	if _, err := w.gate.RevokeSession(w.admin, dan.Session.ID); err != nil || w.leaves("session.revoked") != 6 {
		t.Errorf("a second revocation: %v, %d leaves", err, w.leaves("session.revoked"))
	}
}
