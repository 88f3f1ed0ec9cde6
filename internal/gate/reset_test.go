package gate_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TestResetAdmin gives a locked-out administrator new secrets, and makes a new one
// only when no enabled administrator is left.
func TestResetAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.person("ana")
	reset := func(tenant, name string, revoke bool) (*gatehouse.Credentials, error) {
		return w.gate.ResetAdmin(t.Context(), gate.AdminReset{Tenant: tenant, Name: name, Revoke: revoke})
	}
	_, err := reset("acme", "admin", false)
	wantCode(t, err, gatehouse.CodeNotFound)
	_, err = reset("default", "nobody", false)
	wantCode(t, err, gatehouse.CodeNotFound)
	_, err = reset("default", "ana", false)
	wantCode(t, err, gatehouse.CodeInvalid) // ana is an approver, and an administrator exists
	first, err := reset("default", "admin", false)
	must(t, err)
	link, err := w.gate.CreateSetupLink(w.as(first), "admin")
	must(t, err)
	id := callerOf(t, w.as(first)).Principal.ID
	err = w.store.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
		return tx.InsertPasskey(&gatehouse.Passkey{ID: "pky_1", Tenant: "default", PrincipalID: id, CredentialID: []byte{1},
			Credential: []byte(`{}`), CreatedAt: tx.Now()})
	})
	must(t, err)
	second, err := reset("default", "ADMIN", true)
	must(t, err)
	if list, err := w.gate.ListPasskeys(w.as(second), "admin"); len(list) != 0 || err != nil {
		t.Errorf("%d passkeys are left, %v", len(list), err)
	}
	if n := w.leaves("passkey.removed"); n != 1 {
		t.Errorf("the log has %d entries of removed passkeys", n)
	}
	_, err = w.gate.RedeemSetupLink(t.Context(), link.Token, gatehouse.Browser{})
	wantCode(t, err, gatehouse.CodeExpired)
	_, err = w.gate.Authenticate(t.Context(), first.Key)
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	p, err := w.gate.Authenticate(t.Context(), second.Key)
	must(t, err)
	if ok, err := w.gate.CheckEditToken(t.Context(), p, first.EditToken); ok || err != nil {
		t.Errorf("the old edit token: %v, %v", ok, err)
	}
	if ok, err := w.gate.CheckEditToken(t.Context(), p, second.EditToken); !ok || err != nil {
		t.Errorf("the new edit token: %v, %v", ok, err)
	}
	if n := w.leaves("admin.reset"); n != 2 {
		t.Errorf("%d entries", n)
	}
	if n := w.notices(w.as(second), gatehouse.NoticeFilter{})[0]; n.Kind != "admin.reset" || n.Via != "machine" {
		t.Errorf("told %+v", n)
	}

	// No administrator is left: a person can become one, a program cannot, and a
	// missing person is created.
	if _, err := w.gate.CreateTenant(w.as(second), "acme"); err != nil {
		t.Fatal(err)
	}
	made, err := reset("acme", "root", false)
	must(t, err)
	root := w.as(made)
	if _, err := w.gate.CreatePrincipal(root,
		gatehouse.NewPrincipal{Name: "ann", Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gate.CreatePrincipal(root,
		gatehouse.NewPrincipal{Name: "bot", Kind: gatehouse.KindAgent,
			Roles: []gatehouse.Role{gatehouse.RoleProposer}}); err != nil {
		t.Fatal(err)
	}
	err = w.store.Update(t.Context(), "acme", func(tx gatehouse.Tx) error {
		p, err := tx.FindPrincipal("root")
		if err != nil {
			return err
		}
		p.Disabled = true
		return tx.UpdatePrincipal(p)
	})
	must(t, err)
	_, err = reset("acme", "bot", false)
	wantCode(t, err, gatehouse.CodeInvalid)
	ann, err := reset("acme", "ann", false)
	must(t, err)
	if p, err := w.gate.Authenticate(t.Context(), ann.Key); err != nil || !p.Has(gatehouse.RoleAdmin) ||
		p.ApproverSince == nil {
		t.Errorf("%+v, %v", p, err)
	}
}
