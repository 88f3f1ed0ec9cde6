package gate_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

func callerOf(t *testing.T, ctx context.Context) *gatehouse.Caller {
	t.Helper()
	c, err := gatehouse.CallerFrom(ctx)
	must(t, err)
	return c
}

// signIn signs a principal in by a set-up link.
func (w *world) signIn(who context.Context, b gatehouse.Browser) *gatehouse.SignedIn {
	w.t.Helper()
	l, err := w.gate.CreateSetupLink(w.admin, callerOf(w.t, who).Principal.ID)
	must(w.t, err)
	s, err := w.gate.RedeemSetupLink(w.t.Context(), l.Token, b)
	must(w.t, err)
	return s
}

// browser returns a context of a signed-in browser.
func (w *world) browser(s *gatehouse.SignedIn) context.Context {
	w.t.Helper()
	c, err := w.gate.FindSession(w.t.Context(), s.Token)
	must(w.t, err)
	return gatehouse.NewContext(w.t.Context(), c)
}

func (w *world) gone(token string) {
	w.t.Helper()
	_, err := w.gate.FindSession(w.t.Context(), token)
	wantCode(w.t, err, gatehouse.CodeUnauthenticated)
}

// leaves counts the leaves of a type that have no number yet.
func (w *world) leaves(event string) (n int) {
	w.t.Helper()
	err := w.store.ViewQueues(w.t.Context(), func(q gatehouse.ReadQueues) error {
		list, err := q.UnnumberedLeaves(1000)
		for _, l := range list {
			if strings.Contains(string(l.Body), `"type":"`+event+`"`) {
				n++
			}
		}
		return err
	})
	must(w.t, err)
	return n
}

func TestSetupLinkWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	l, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	if _, p, err := w.gate.FindSetupLink(t.Context(), l.Token); err != nil || p.Name != "ana" {
		t.Fatalf("looked at: %v, %v", p, err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := 0
	for range 8 {
		wg.Go(func() {
			s, err := w.gate.RedeemSetupLink(t.Context(), l.Token, gatehouse.Browser{UserAgent: "Fire\x1b[31mfox\x00"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
				if s.Session.UserAgent != "Fire[31mfox" || s.Session.Method != gatehouse.SignInSetup || s.Principal.Name != "ana" {
					t.Errorf("session %+v", s.Session)
				}
			case gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || w.leaves("session.started") != 1 || w.leaves("setup_link.used") != 1 ||
		w.leaves("setup_link.created") != 1 {
		t.Errorf("the link worked %d times", won)
	}
	old, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	late, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	_, err = w.gate.RedeemSetupLink(t.Context(), old.Token, gatehouse.Browser{})
	wantCode(t, err, gatehouse.CodeExpired)
	w.clock.Advance(gatehouse.SetupLinkTTL)
	_, err = w.gate.RedeemSetupLink(t.Context(), late.Token, gatehouse.Browser{})
	wantCode(t, err, gatehouse.CodeExpired)
	for _, token := range []string{"", "gtu_", "gtu_unknown", strings.Repeat("x", 300), callerOf(t, ana).Principal.ID} {
		_, err = w.gate.RedeemSetupLink(t.Context(), token, gatehouse.Browser{})
		wantCode(t, err, gatehouse.CodeUnauthenticated)
	}
}

// overtaken is a store in which another request always uses a set-up link or passkey first.
type overtaken struct{ gatehouse.Store }

type overtakenQueues struct{ gatehouse.Queues }

type overtakenTx struct{ gatehouse.Tx }

func (s overtaken) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(overtakenQueues{q}) })
}

func (q overtakenQueues) In(tenant string) gatehouse.Tx { return overtakenTx{q.Queues.In(tenant)} }

func (overtakenTx) UseSetupLink(string) error { return gatehouse.ErrConflict }

func (overtakenTx) UsePasskey(string, []byte, uint32, uint32) error { return gatehouse.ErrConflict }

// TestOvertakenSignIn: of two requests with one link or one passkey, the one that loses is unauthenticated.
func TestOvertakenSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := callerOf(t, w.person("ana")).Principal
	l, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	k := &gatehouse.Passkey{ID: "pky_1", Tenant: ana.Tenant, PrincipalID: ana.ID, CredentialID: []byte{1},
		Credential: []byte(`{}`), CreatedAt: l.ExpiresAt}
	must(t, w.store.Update(t.Context(), ana.Tenant, func(tx gatehouse.Tx) error { return tx.InsertPasskey(k) }))
	g := gate.New(overtaken{w.store}, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	_, err = g.RedeemSetupLink(t.Context(), l.Token, gatehouse.Browser{})
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	_, err = g.SignInPasskey(t.Context(), k, 0, gatehouse.Browser{})
	wantCode(t, err, gatehouse.CodeUnauthenticated)
}

func TestSetupLinksAreAnAdministratorsForPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	w.agent()
	w.principal("cron", gatehouse.KindService, gatehouse.RoleOperator)
	_, err := w.gate.CreateSetupLink(ana, "ana")
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.CreateSetupLink(w.admin, "nobody")
	wantCode(t, err, gatehouse.CodeNotFound)
	for _, name := range []string{"bot", "cron"} {
		_, err = w.gate.CreateSetupLink(w.admin, name)
		wantCode(t, err, gatehouse.CodeInvalid)
	}
	// Nor can they get a session in any other way: begin itself refuses.
	bot := w.principal("bot2", gatehouse.KindAgent, gatehouse.RoleProposer)
	p := callerOf(t, bot).Principal
	err = w.store.Update(t.Context(), p.Tenant, func(tx gatehouse.Tx) error {
		return tx.InsertIdentity(
			&gatehouse.ExternalIdentity{Tenant: p.Tenant, Issuer: "https://i.test", Subject: "1", PrincipalID: p.ID,
				CreatedAt: tx.Now()})
	})
	must(t, err)
	_, err = w.gate.SignInExternal(t.Context(),
		gatehouse.ExternalSignIn{Tenant: p.Tenant, Issuer: "https://i.test", Subject: "1"}, gatehouse.Browser{})
	wantCode(t, err, gatehouse.CodeUnauthenticated)
}

func TestSessionSlidesAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	s := w.signIn(w.person("ana"), gatehouse.Browser{})
	start := w.clock.Now()
	seen := func() *gatehouse.Session {
		t.Helper()
		c, err := w.gate.FindSession(t.Context(), s.Token)
		must(t, err)
		if !c.StepUp || c.Via != gatehouse.ViaConsole || c.Principal.Name != "ana" {
			t.Errorf("caller %+v", c)
		}
		return c.Session
	}
	w.clock.Advance(gatehouse.SessionTouch - time.Second)
	if got := seen(); !got.LastSeenAt.Equal(start) {
		t.Errorf("seen at %v: written within the minute", got.LastSeenAt)
	}
	w.clock.Advance(time.Second)
	if got := seen(); !got.LastSeenAt.Equal(w.clock.Now()) ||
		!got.ExpiresAt.Equal(w.clock.Now().Add(gatehouse.SessionIdle)) {
		t.Errorf("seen at %v, until %v", got.LastSeenAt, got.ExpiresAt)
	}
	for w.clock.Now().Before(start.Add(gatehouse.SessionMax - gatehouse.SessionIdle)) {
		w.clock.Advance(gatehouse.SessionIdle - time.Second)
		seen()
	}
	if got := seen(); !got.ExpiresAt.Equal(start.Add(gatehouse.SessionMax)) {
		t.Errorf("until %v, want the end of the week", got.ExpiresAt)
	}
	w.clock.Advance(start.Add(gatehouse.SessionMax).Sub(w.clock.Now()))
	w.gone(s.Token)

	idle := w.signIn(w.person("ben"), gatehouse.Browser{})
	w.clock.Advance(gatehouse.SessionIdle)
	w.gone(idle.Token)
}

// An open tab polls its session without keeping it alive.
func TestOpenTabDoesNotKeepASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	s := w.signIn(w.person("ana"), gatehouse.Browser{})
	end := s.Session.ExpiresAt
	for w.clock.Now().Add(time.Hour).Before(end) {
		w.clock.Advance(time.Hour)
		c, err := w.gate.PeekSession(t.Context(), s.Token)
		if err != nil || !c.Session.ExpiresAt.Equal(end) {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	w.clock.Advance(time.Hour)
	if _, err := w.gate.PeekSession(t.Context(), s.Token); gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
		t.Errorf("the session outlived its idle time: %v", err)
	}
}

func TestRevokedSessionIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana, ben := w.person("ana"), w.person("ben")
	first, second, third := w.signIn(ana, gatehouse.Browser{}), w.signIn(ana, gatehouse.Browser{}),
		w.signIn(ana, gatehouse.Browser{})
	_, err := w.gate.RevokeSession(ben, first.Session.ID)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	w.browser(first)
	if _, err := w.gate.RevokeSession(w.browser(second), first.Session.ID); err != nil {
		t.Fatal(err)
	}
	w.gone(first.Token)
	if _, err := w.gate.RevokeSession(w.admin, second.Session.ID); err != nil {
		t.Fatal(err)
	}
	w.gone(second.Token)
	must(t, w.gate.SignOut(w.browser(third)))
	w.gone(third.Token)
	again, err := w.gate.RevokeSession(ana, first.Session.ID)
	if err != nil || again.RevokedAt == nil || w.leaves("session.revoked") != 3 {
		t.Errorf("again: %+v, %v, %d leaves", again, err, w.leaves("session.revoked"))
	}
	_, err = w.gate.RevokeSession(ana, "ses_none")
	wantCode(t, err, gatehouse.CodeNotFound)
}

func TestDisabledPrincipalLosesItsSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	s := w.signIn(ana, gatehouse.Browser{})
	set := func(disabled bool) {
		if _, err := w.gate.UpdatePrincipal(w.admin, "ana", gatehouse.PrincipalChange{Disabled: &disabled}); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	w.gone(s.Token)
	set(false) // enabling the principal does not revive the session
	w.gone(s.Token)
	if w.leaves("session.revoked") != 1 {
		t.Error("no leaf")
	}
}

// A token that was planted in the browser before the sign-in is not adopted, and
// its session ends.
func TestSignInMakesANewToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	mallory, ana := w.person("mallory"), w.person("ana")
	planted := w.signIn(mallory, gatehouse.Browser{})
	s := w.signIn(ana, gatehouse.Browser{Previous: planted.Token})
	if s.Token == planted.Token || s.Session.ID == planted.Session.ID {
		t.Fatal("the planted token was adopted")
	}
	w.gone(planted.Token)
	const invented = "gts_invented"
	s = w.signIn(ana, gatehouse.Browser{Previous: invented})
	w.gone(invented)
	if c := callerOf(t, w.browser(s)); c.Principal.Name != "ana" {
		t.Errorf("signed in as %s", c.Principal.Name)
	}
}

// The store's files contain no token, only its hash.
func TestTokensAreNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	l, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	s := w.signIn(ana, gatehouse.Browser{UserAgent: "a-browser-to-be-found"})
	dir := filepath.Dir(w.path)
	files, err := os.ReadDir(dir)
	must(t, err)
	found := false
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		found = found || bytes.Contains(content, []byte("a-browser-to-be-found"))
		for _, secret := range []string{s.Token, l.Token} {
			if bytes.Contains(content, []byte(secret)) || bytes.Contains(content, []byte(secret[4:])) {
				t.Errorf("%s holds a secret", f.Name())
			}
		}
	}
	if !found {
		t.Error("the session is in no file: the test proves nothing")
	}
}

func TestSessionsStayInTheirTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		t.Fatal(err)
	}
	creds, err := w.gate.CreatePrincipal(w.admin,
		gatehouse.NewPrincipal{Tenant: "acme", Name: "root", Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleAdmin}})
	must(t, err)
	other, ana := w.as(creds), w.person("ana")
	s := w.signIn(ana, gatehouse.Browser{})
	_, err = w.gate.RevokeSession(other, s.Session.ID)
	wantCode(t, err, gatehouse.CodeNotFound)
	_, err = w.gate.CreateSetupLink(other, "ana")
	wantCode(t, err, gatehouse.CodeNotFound)
	page, err := w.gate.ListSessions(other, gatehouse.SessionFilter{All: true, Ended: true})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("another tenant's sessions: %+v, %v", page.Items, err)
	}
	if _, err := w.gate.FindAction(w.browser(s), "act_1"); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Error(err)
	}
	page, err = w.gate.ListSessions(w.admin, gatehouse.SessionFilter{All: true})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != s.Session.ID {
		t.Errorf("everybody's: %+v, %v", page.Items, err)
	}
	for _, f := range []gatehouse.SessionFilter{{All: true}, {Principal: "admin"}} {
		_, err = w.gate.ListSessions(ana, f)
		wantCode(t, err, gatehouse.CodeRoleRequired)
	}
	page, err = w.gate.ListSessions(ana, gatehouse.SessionFilter{})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("own: %+v, %v", page.Items, err)
	}
}

func TestGroupsGiveAndTakeRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	e := gatehouse.ExternalSignIn{
		Tenant: gatehouse.DefaultTenant, Provider: "acme", Issuer: "https://id.test", Subject: "1", Name: "Ana Ruß",
		Provision: true,
		Managed:   []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleOperator},
	}
	signIn := func(e gatehouse.ExternalSignIn, roles ...gatehouse.Role) (*gatehouse.SignedIn, error) {
		e.Roles = roles
		return w.gate.SignInExternal(t.Context(), e, gatehouse.Browser{})
	}
	_, err := signIn(e)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	strict := e
	strict.Provision = false
	_, err = signIn(strict, gatehouse.RoleApprover)
	wantCode(t, err, gatehouse.CodeRoleRequired)

	s, err := signIn(e, gatehouse.RoleApprover)
	must(t, err)
	if p := s.Principal; p.Name != "acme:Ana-Ru-" || p.Kind != gatehouse.KindPerson || p.Person != p.ID {
		t.Errorf("%+v", p)
	}
	twin := e
	twin.Subject = "2" // another subject is another person, even with the same name
	other, err := signIn(twin, gatehouse.RoleApprover)
	if err != nil || other.Principal.ID == s.Principal.ID || other.Principal.Name == s.Principal.Name {
		t.Fatalf("%+v, %v", other, err)
	}
	// A role from an administrator that the mapping does not manage stays.
	roles := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAuditor}
	if _, err := w.gate.UpdatePrincipal(w.admin, s.Principal.ID, gatehouse.PrincipalChange{Roles: &roles}); err != nil {
		t.Fatal(err)
	}
	next, err := signIn(e, gatehouse.RoleOperator)
	must(t, err)
	if d := cmp.Diff([]gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleAuditor}, next.Principal.Roles); d != "" {
		t.Error(d)
	}
	if c := callerOf(t, w.browser(s)); c.Principal.Has(gatehouse.RoleApprover) {
		t.Error("an older session keeps the role")
	}
	// Without the last group there is no role and no session; running sessions end
	// too.
	_, err = signIn(twin)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	w.gone(other.Token)
	if _, err = signIn(twin, gatehouse.RoleApprover); err != nil {
		t.Errorf("back in the group: %v", err)
	}
	// An administrator can disable a person without roles, so that no group gives any back.
	_, err = signIn(twin)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	yes := true
	_, err = w.gate.UpdatePrincipal(w.admin, other.Principal.ID, gatehouse.PrincipalChange{Disabled: &yes})
	must(t, err)
	_, err = signIn(twin, gatehouse.RoleApprover)
	wantCode(t, err, gatehouse.CodeUnauthenticated)
	none := []gatehouse.Role{}
	_, err = w.gate.UpdatePrincipal(w.admin, s.Principal.ID, gatehouse.PrincipalChange{Roles: &none})
	wantCode(t, err, gatehouse.CodeInvalid)
}

// TestGroupsLeaveAnAdministrator maps the role admin away from everybody: the last
// administrator keeps it.
func TestGroupsLeaveAnAdministrator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		t.Fatal(err)
	}
	signIn := func(subject string, roles ...gatehouse.Role) *gatehouse.Principal {
		t.Helper()
		s, err := w.gate.SignInExternal(t.Context(), gatehouse.ExternalSignIn{
			Tenant: "acme", Provider: "idp", Issuer: "https://i.test", Subject: subject, Name: subject, Provision: true,
			Roles: roles, Managed: []gatehouse.Role{gatehouse.RoleAdmin, gatehouse.RoleApprover},
		}, gatehouse.Browser{})
		must(t, err)
		return s.Principal
	}
	signIn("ana", gatehouse.RoleAdmin)
	ben := signIn("ben", gatehouse.RoleAdmin)
	if p := signIn("ana", gatehouse.RoleApprover); p.Has(gatehouse.RoleAdmin) {
		t.Errorf("ana has %v beside another administrator", p.Roles)
	}
	for _, roles := range [][]gatehouse.Role{{gatehouse.RoleApprover}, nil} {
		if p := signIn("ben", roles...); !p.Has(gatehouse.RoleAdmin) {
			t.Errorf("the last administrator has %v", p.Roles)
		}
	}
	// A disabled administrator does not count.
	signIn("ana", gatehouse.RoleAdmin)
	as := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: ben, StepUp: true, Via: gatehouse.ViaAPI})
	disabled := true
	if _, err := w.gate.UpdatePrincipal(as, "idp:ana", gatehouse.PrincipalChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	if p := signIn("ben", gatehouse.RoleApprover); !p.Has(gatehouse.RoleAdmin) {
		t.Errorf("beside a disabled one, ben has %v", p.Roles)
	}
}
