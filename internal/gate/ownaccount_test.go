package gate_test

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestOwnSecretsNeedAFreshSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	s := w.signIn(ana, gatehouse.Browser{})
	here := w.browser(s)
	made, err := w.gate.CreateOwnKey(here, "")
	must(t, err)
	if p, err := w.gate.Authenticate(t.Context(), made.Key); err != nil || p.Name != "ana" {
		t.Fatalf("the new key is %v's: %v", p, err)
	}
	token, err := w.gate.RotateOwnEditToken(here, "")
	must(t, err)
	w.clock.Advance(gatehouse.FreshSignIn)
	_, err = w.gate.CreateOwnKey(here, "")
	wantCode(t, err, gatehouse.CodeStepUpRequired)
	_, err = w.gate.RotateOwnEditToken(here, "")
	wantCode(t, err, gatehouse.CodeStepUpRequired)
	_, err = w.gate.CreateOwnKey(here, "gte_wrong")
	wantCode(t, err, gatehouse.CodeEditTokenRequired)
	if _, err = w.gate.CreateOwnKey(here, token.EditToken); err != nil {
		t.Errorf("with the edit token: %v", err)
	}
	if _, err = w.gate.RotateOwnEditToken(here, token.EditToken); err != nil {
		t.Errorf("with the edit token: %v", err)
	}
	_, err = w.gate.CreateOwnKey(here, token.EditToken)
	wantCode(t, err, gatehouse.CodeEditTokenRequired)
	// A key is not a session, and does not prove who uses it.
	_, err = w.gate.CreateOwnKey(ana, "")
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	if n := w.leaves("edit_token.rotated"); n != 2 {
		t.Errorf("%d rotations in the log, want 2", n)
	}
}

func TestOwnKeysAreRevokedByTheirOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana, ben := w.person("ana"), w.person("ben")
	here := w.browser(w.signIn(ana, gatehouse.Browser{}))
	other := w.browser(w.signIn(ben, gatehouse.Browser{}))
	made, err := w.gate.CreateOwnKey(here, "")
	must(t, err)
	wantCode(t, w.gate.RevokeOwnKey(other, made.KeyID), gatehouse.CodeNotFound)
	if _, err := w.gate.Authenticate(t.Context(), made.Key); err != nil {
		t.Fatalf("somebody else revoked it: %v", err)
	}
	for range 2 {
		must(t, w.gate.RevokeOwnKey(here, made.KeyID))
	}
	_, err = w.gate.Authenticate(t.Context(), made.Key)
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	if n := w.leaves("key.revoked"); n != 1 {
		t.Errorf("%d leaves of a key revoked twice", n)
	}
}

func TestEndOtherSessionsKeepsThisOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana, ben := w.person("ana"), w.person("ben")
	this, second, third := w.signIn(ana, gatehouse.Browser{}), w.signIn(ana, gatehouse.Browser{}),
		w.signIn(ana, gatehouse.Browser{})
	bens := w.signIn(ben, gatehouse.Browser{})
	n, err := w.gate.EndOtherSessions(w.browser(this))
	if err != nil || n != 2 {
		t.Fatalf("%d ended, %v", n, err)
	}
	w.gone(second.Token)
	w.gone(third.Token)
	w.browser(this)
	w.browser(bens)
	if n, err = w.gate.EndOtherSessions(w.browser(this)); err != nil || n != 0 {
		t.Errorf("again: %d ended, %v", n, err)
	}
}

// TestLastAdministratorStays: an administrator who was disabled after their request
// began cannot disable the last one.
func TestLastAdministratorStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.principal("ana", gatehouse.KindPerson, gatehouse.RoleAdmin)
	root := callerOf(t, w.admin).Principal.ID
	yes, none := true, []gatehouse.Role{gatehouse.RoleViewer}
	if _, err := w.gate.UpdatePrincipal(w.admin, "ana", gatehouse.PrincipalChange{Roles: &none}); err != nil {
		t.Fatal(err)
	}
	_, err := w.gate.UpdatePrincipal(ana, root, gatehouse.PrincipalChange{Disabled: &yes})
	wantCode(t, err, gatehouse.CodeRoleRequired)
	if _, err := w.gate.UpdatePrincipal(w.admin, "ana", gatehouse.PrincipalChange{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	_, err = w.gate.UpdatePrincipal(ana, root, gatehouse.PrincipalChange{Roles: &none})
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	_, err = w.gate.CreateKey(ana, root)
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	for pointer, change := range map[string]gatehouse.PrincipalChange{
		"/disabled": {Disabled: &yes}, "/roles": {Roles: &none},
	} {
		_, err = w.gate.UpdatePrincipal(w.admin, root, change)
		if e, ok := errors.AsType[*gatehouse.Error](err); !ok || e.Code != gatehouse.CodeInvalid ||
			len(e.Violations) != 1 || e.Violations[0].Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	if p, err := w.gate.FindPrincipal(w.admin, root); err != nil || p.Disabled || !p.Has(gatehouse.RoleAdmin) {
		t.Errorf("the last administrator is %+v, %v", p, err)
	}
}
