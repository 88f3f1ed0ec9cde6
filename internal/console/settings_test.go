package console_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
)

var (
	secretText = regexp.MustCompile(`gt[heus]_[A-Za-z0-9_-]{20,}`)
	onceField  = regexp.MustCompile(`name="once" value="([^"]*)"`)
)

// secrets are the secrets that a page shows, each once.
func (p *page) secrets() []string {
	p.t.Helper()
	found := secretText.FindAllString(p.body, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// once is the idempotency key of the first form.
func (p *page) once() string {
	p.t.Helper()
	m := onceField.FindStringSubmatch(p.body)
	if m == nil {
		p.t.Fatalf("%s has no form that is sent once", p.url)
	}
	return m[1]
}

// inside is the context of the browser's session.
func (b *browser) inside() context.Context {
	b.w.t.Helper()
	c, err := b.w.gate.FindSession(b.w.t.Context(), b.sessionCookie())
	must(b.w.t, err)
	return gatehouse.NewContext(b.w.t.Context(), c)
}

// again signs the same person in with another browser.
func (b *browser) again() *browser {
	b.w.t.Helper()
	link, err := b.w.gate.CreateSetupLink(b.w.admin, b.name)
	must(b.w.t, err)
	other := b.w.stranger()
	other.name, other.creds = b.name, b.creds
	other.post("/setup", "token", link.Token).want(http.StatusOK)
	return other
}

func (b *browser) sessionID() string {
	c, _ := gatehouse.CallerFrom(b.inside())
	return c.Session.ID
}

func (b *browser) signedIn() bool { return b.get("/settings").url.Path == "/settings" }

func (w *world) keyWorks(key string) bool {
	_, err := w.gate.Authenticate(w.t.Context(), key)
	if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) id(name string) string {
	w.t.Helper()
	p, err := w.gate.FindPrincipal(w.admin, name)
	must(w.t, err)
	return p.ID
}

// TestSettingsRoutes requests the pages and forms about principals, tenants and sign-in in every role except
// administrator: all are refused.
func TestSettingsRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.principal("victim", gatehouse.KindPerson, gatehouse.RoleApprover)
	victim := w.id("victim")
	before := w.everything()
	people := map[gatehouse.Role]*browser{}
	for _, r := range []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator,
		gatehouse.RoleAuditor, gatehouse.RoleViewer, gatehouse.RoleWorker} {
		people[r] = w.signIn("p-"+string(r), r)
	}
	walked := 0
	for _, rt := range console.Routes(w.console) {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if !strings.HasPrefix(path, "/settings/principals") && !strings.HasPrefix(path, "/settings/tenants") &&
			path != "/settings/sign-in" {
			continue
		}
		walked++
		path = strings.ReplaceAll(path, "{principal}", victim)
		form := url.Values{"sure": {"yes"}, "role": {"admin"}, "name": {"mallory"}, "kind": {"person"}, "id": {"mine"}}
		for role, b := range people {
			p := b.do(b.request(method, fill(path, "x"), form)).want(http.StatusForbidden)
			p.headers()
			if len(p.secrets()) > 0 {
				t.Errorf("%s shows %s to %s", path, p.secrets(), role)
			}
		}
	}
	if walked < 17 {
		t.Errorf("only %d routes were walked", walked)
	}
	for _, b := range people {
		b.get("/settings").want(http.StatusOK).has("Only administrators can change roles",
			testid("sessions")).lacks("/settings/principals", "/settings/tenants")
	}
	if after := w.everything(); after != before+len(people) {
		t.Errorf("%d principals and tenants became %d", before, after)
	}
}

// everything counts principals and tenants.
func (w *world) everything() int {
	page, err := w.gate.ListPrincipals(w.admin, "", gatehouse.MaxLimit)
	must(w.t, err)
	tenants, err := w.gate.ListTenants(w.admin)
	must(w.t, err)
	return len(page.Items) + len(tenants)
}

func TestOwnSessionsEndAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.signIn("ana", gatehouse.RoleApprover)
	two, three := one.again(), one.again()
	ben := w.signIn("ben", gatehouse.RoleAdmin)

	p := one.get("/settings").want(http.StatusOK).has("this one", testid("revoke-others"))
	if n := strings.Count(p.body, testid("revoke-session")); n != 2 {
		t.Errorf("%d sessions can be ended, want the two others", n)
	}
	path := "/settings/sessions/" + two.sessionID() + "/revoke"
	one.post(path).want(http.StatusUnprocessableEntity).has("Tick the box")
	if !two.signedIn() {
		t.Fatal("a session ended without the box")
	}
	ben.post(path, "sure", "yes").want(http.StatusNotFound)
	if !two.signedIn() {
		t.Fatal("an administrator ended somebody else's session as its own")
	}
	one.post(path, "sure", "yes").want(http.StatusOK)
	if two.signedIn() || !one.signedIn() || !three.signedIn() {
		t.Error("not exactly the chosen session ended")
	}
	two = one.again()
	one.post("/settings/sessions/revoke-others").want(http.StatusUnprocessableEntity)
	one.post("/settings/sessions/revoke-others", "sure", "yes").want(http.StatusOK).has("2 other sessions have ended")
	if two.signedIn() || three.signedIn() || !one.signedIn() || !ben.signedIn() {
		t.Error("not just the person's other sessions ended")
	}
}

func TestOwnKeysAndEditTokenAreShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	for _, path := range []string{"/settings/keys", "/settings/edit-token"} {
		form := []string{"once", ana.get("/settings").once() + path, "sure", "yes"}
		p := ana.post(path, form...).want(http.StatusOK).has("This is shown once")
		made := p.secrets()
		if len(made) != 1 || p.url.RawQuery != "" || p.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: secrets %v at %s under %q", path, made, p.url, p.header.Get("Cache-Control"))
		}
		w.notStored(made[0])
		if p = ana.post(path, form...).want(http.StatusConflict).has("is not shown again"); len(p.secrets()) > 0 {
			t.Errorf("%s: sent twice, it shows %v", path, p.secrets())
		}
		if got := ana.get("/settings").secrets(); len(got) > 0 {
			t.Errorf("the settings show %v", got)
		}
		if path == "/settings/keys" && !w.keyWorks(made[0]) {
			t.Error("the new key does not work")
		}
		person := &gatehouse.Principal{Tenant: gatehouse.DefaultTenant, ID: w.id("ana")}
		if ok, err := w.gate.CheckEditToken(t.Context(), person, made[0]); err != nil ||
			ok != (path == "/settings/edit-token") {
			t.Errorf("%s: as an edit token it is %t %v", path, ok, err)
		}
	}
	keys, err := w.gate.ListKeys(w.admin, "ana")
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v: want the first and one more", len(keys), err)
	}
	path := "/settings/keys/" + ana.creds.KeyID + "/revoke"
	w.signIn("ben", gatehouse.RoleAdmin).post(path, "sure", "yes").want(http.StatusNotFound)
	ana.post(path).want(http.StatusUnprocessableEntity)
	if !w.keyWorks(ana.creds.Key) {
		t.Fatal("the key was revoked by others, or without the box")
	}
	ana.post(path, "sure", "yes").want(http.StatusOK).has("1 revoked")
	if w.keyWorks(ana.creds.Key) {
		t.Error("a revoked key works")
	}
	ana.post("/settings/edit-token").want(http.StatusUnprocessableEntity)
}

// notStored checks that the store's files do not contain a secret.
func (w *world) notStored(secret string) {
	w.t.Helper()
	files, err := os.ReadDir(w.dir)
	if err != nil || len(files) == 0 {
		w.t.Fatalf("the store's files: %v %v", files, err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(w.dir, f.Name()))
		must(w.t, err)
		if strings.Contains(string(raw), secret) {
			w.t.Errorf("%s has a secret that was shown once", f.Name())
		}
	}
}

// TestSlackLinksAreNoProviders: a linked Slack user is in the section Slack only, where its person unlinks it.
func TestSlackLinksAreNoProviders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	must(t, w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		return tx.InsertIdentity(&gatehouse.ExternalIdentity{
			Tenant: gatehouse.DefaultTenant, Issuer: gatehouse.SlackIssuer + "T1", Subject: "U0SLACKUSER",
			PrincipalID: w.id("ana"), CreatedAt: tx.Now(),
		})
	}))
	page := ana.get("/settings").want(http.StatusOK).has(testid("unlink-slack"), "No identity is linked")
	if n := strings.Count(page.body, "U0SLACKUSER"); n != 1 {
		t.Errorf("the Slack user is listed %d times", n)
	}
}

// TestBrowserWord: browsers with names of their own on phones are not mistaken for Safari or Chrome.
func TestBrowserWord(t *testing.T) {
	t.Parallel()
	const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
	for agent, want := range map[string]string{
		phone + "CriOS/138.0.7204.53 Mobile/15E148 Safari/604.1":                 "Chrome on iPhone",
		phone + "FxiOS/140.0 Mobile/15E148 Safari/605.1.15":                      "Firefox on iPhone",
		phone + "Version/18.0 EdgiOS/138.0.3351.65 Mobile/15E148 Safari/604.1":   "Edge on iPhone",
		phone + "Version/18.5 Mobile/15E148 Safari/604.1":                        "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) Chrome/138.0.0.0 EdgA/138.0.3351.65": "Edge on Android",
	} {
		if got := console.BrowserWord(agent); got != want {
			t.Errorf("%s is called %q, want %q", agent, got, want)
		}
	}
}

// TestAnOldSessionGainsNoOtherWayIn waits until the sign-in is no longer fresh.
func TestAnOldSessionGainsNoOtherWayIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passkeys(t, w.server.URL)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/settings").want(http.StatusOK).lacks(testid("edit-token-key"))
	w.advance(gatehouse.FreshSignIn + time.Minute)
	ana.get("/settings").want(http.StatusOK).has(testid("edit-token-key"), testid("edit-token-rotate"),
		testid("edit-token-passkey"))
	for _, path := range []string{"/settings/keys", "/settings/passkeys/begin", "/settings/edit-token"} {
		for _, token := range []string{"", "gte_wrong"} {
			if p := ana.post(path, "sure", "yes", "edit_token", token).want(http.StatusForbidden); len(p.secrets()) > 0 {
				t.Errorf("%s shows %v", path, p.secrets())
			}
		}
		ana.post(path, "sure", "yes", "edit_token", ana.creds.EditToken).want(http.StatusOK)
	}
	// The last of these changes ended the token.
	ana.post("/settings/keys", "edit_token", ana.creds.EditToken).want(http.StatusForbidden)
}

// passkeys enables passkeys for an origin.
func (w *world) passkeys(t *testing.T, origin string) {
	t.Helper()
	ceremonies, err := signin.New(signin.Config{Passkeys: &signin.Passkeys{RPID: "localhost", Origins: []string{origin}}},
		w.gate, w.config.Log)
	must(t, err)
	cfg := w.config
	cfg.SignIn = ceremonies
	pages, err := console.New(cfg)
	must(t, err)
	w.server.Config.Handler = pages
}

// TestPasskeysAtAnotherAddress requests the pages at an IP address, as development mode prints it,
// for which browsers accept no passkeys.
func TestPasskeysAtAnotherAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	at := strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1)
	w.passkeys(t, at)
	link, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	ana.get("/settings").want(http.StatusOK).has(testid("passkeys-at"), at+"/settings").lacks("data-passkey-add")
	w.stranger().get("/signin?next=%2Faudit").want(http.StatusOK).has(at + "/signin?next=%2Faudit").lacks(
		"data-passkey-signin")
	w.stranger().get(link.Path).want(http.StatusOK).has(at+link.Path, testid("setup-go"))
	named := func(path string) *page {
		r := w.stranger().request(http.MethodGet, path, nil)
		r.Host = strings.TrimPrefix(at, "http://")
		r.AddCookie(&http.Cookie{Name: "gatehouse_session", Value: ana.sessionCookie()})
		return w.stranger().do(r).want(http.StatusOK).lacks(testid("passkeys-at"))
	}
	named("/settings").has("data-passkey-add")
	named(link.Path)
}

func TestPasskeysAreListedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/settings").want(http.StatusOK).has("Passkeys are not enabled on this server").lacks("data-passkey-add")
	w.passkeys(t, w.server.URL)
	ana.get("/settings").want(http.StatusOK).has("data-passkey-add").lacks(testid("passkeys-at"))
	ana.post("/settings/passkeys/begin", "name", "Laptop").want(http.StatusOK).has(`"challenge"`, `"residentKey"`)
	r := ana.request(http.MethodPost, "/settings/passkeys/finish", nil)
	r.Header.Set("Accept", "application/json")
	ana.do(r).want(http.StatusUnauthorized)

	k, err := w.gate.AddPasskey(ana.inside(),
		&gatehouse.Passkey{Name: `<i>"Lap` + "\u202etop", CredentialID: []byte("c1"), Credential: []byte("{}")})
	must(t, err)
	p := ana.get("/settings").want(http.StatusOK).has(k.ID).lacks("<i>")
	p.shown(k.Name)
	path := "/settings/passkeys/" + k.ID + "/remove"
	w.signIn("ben", gatehouse.RoleAdmin).post(path, "sure", "yes").want(http.StatusNotFound)
	ana.post(path).want(http.StatusUnprocessableEntity)
	with, err := w.gate.SignInPasskey(t.Context(), k, 0, gatehouse.Browser{})
	must(t, err)
	ana.post(path, "sure", "yes").want(http.StatusOK).lacks(k.ID)
	if _, err := w.gate.FindSession(t.Context(), with.Token); gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
		t.Errorf("the session of a removed passkey: %v", err)
	}
}
