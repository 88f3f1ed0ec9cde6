package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestPrincipalIsMadeWithItsSecretsShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	form := []string{"once", root.get("/settings/principals/new").want(http.StatusOK).once(), "name", "ana", "kind",
		"person", "role", "approver", "role", "operator"}
	p := root.post("/settings/principals", form...).want(http.StatusOK).has("This is shown once",
		"gatehouse principal setup-link ana")
	made := p.secrets()
	if len(made) != 2 || !strings.HasPrefix(made[0], "gte_") || !w.keyWorks(made[1]) {
		t.Fatalf("the page shows %v", made)
	}
	if p = root.post("/settings/principals", form...).want(http.StatusConflict); len(p.secrets()) > 0 {
		t.Errorf("sent twice, it shows %v", p.secrets())
	}
	one := "/settings/principals/" + w.id("ana")
	if p = root.get(one).want(http.StatusOK); len(p.secrets()) > 0 {
		t.Errorf("the page of ana shows %v", p.secrets())
	}
	root.get(one).has("for services only").lacks(`value="evaluator"`)
	root.get("/settings/principals").want(http.StatusOK).has("ana", "approver, operator", `data-id="`+w.id("ana")+`"`)

	root.post("/settings/principals", "name", "ana", "kind", "person", "role", "viewer").want(http.StatusConflict)
	root.post("/settings/principals", "name", "x y", "kind", "person").want(http.StatusUnprocessableEntity).
		has("Name: must be 1 to 128 letters", "Roles: must contain at least one role").lacks("/name", "/roles")
	root.post("/settings/principals", "name", "bot", "kind", "agent", "role",
		"approver").want(http.StatusUnprocessableEntity).has("cannot contain approver for an agent", `value="bot"`)
	root.post("/settings/principals", "name", "bot", "kind", "agent", "role", "proposer", "sponsor",
		"nobody").want(http.StatusUnprocessableEntity).
		has(`Sponsor: names a principal that does not exist`).lacks("/sponsor")
	p = root.post("/settings/principals", "name", "bot", "kind", "agent", "role", "proposer", "sponsor",
		"ana").want(http.StatusOK)
	if len(p.secrets()) != 1 {
		t.Errorf("an agent gets %v", p.secrets())
	}
	root.get("/settings/principals/new").want(http.StatusOK).has(`value="evaluator"`)
	p = root.post("/settings/principals", "name", "fraud-check", "kind", "service", "role",
		"evaluator").want(http.StatusOK)
	if len(p.secrets()) != 1 || !w.keyWorks(p.secrets()[0]) {
		t.Errorf("an evaluator gets %v", p.secrets())
	}
	root.get("/settings/principals/"+w.id("bot")).want(http.StatusOK).
		has("never for an agent", "Only people sign in and decide", "Sponsor", one).
		lacks(testid("setup-link"), testid("rotate"), testid("sessions"))
	root.get("/settings/principals/"+w.id("ana")).has("also for votes on open questions", "stop counting")
	root.get("/settings/principals/"+w.id("bot")).has("Its keys are refused at once, and its grants and mandates end.").
		lacks("votes", "all sessions end")
	root.post("/settings/principals/"+w.id("fraud-check")+"/disable", "sure", "yes").want(http.StatusOK).
		has("Its keys are refused.").lacks("votes")
	root.post("/settings/principals/" + w.id("bot") + "/setup-link").want(http.StatusUnprocessableEntity)
	root.post("/settings/principals/"+w.id("bot")+"/edit-token", "sure", "yes").want(http.StatusUnprocessableEntity)
	root.get("/settings/principals/prn_none").want(http.StatusNotFound)
}

func TestPrincipalsArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range gatehouse.DefaultLimit {
		w.principal(fmt.Sprintf("p-%d", i), gatehouse.KindPerson, gatehouse.RoleViewer)
	}
	root := w.signIn("zoe", gatehouse.RoleAdmin)
	p := root.get("/settings/principals").want(http.StatusOK).has(testid("next-page"), "p-1").lacks(">zoe</a>")
	next := p.body[strings.Index(p.body, "/settings/principals?cursor="):]
	root.get(next[:strings.Index(next, `"`)]).want(http.StatusOK).has(">zoe</a>", "First page").lacks(">p-1</a>")
	root.get("/settings/principals?cursor=nonsense").want(http.StatusUnprocessableEntity)
}

func TestPrincipalIsChangedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, ana := w.signIn("root", gatehouse.RoleAdmin), w.signIn("ana", gatehouse.RoleApprover)
	one := "/settings/principals/" + w.id("ana")

	ana.get("/audit").want(http.StatusForbidden)
	root.post(one+"/roles", "role", "approver", "role", "auditor").want(http.StatusOK)
	ana.get("/audit").want(http.StatusOK)
	root.post(one + "/roles").want(http.StatusUnprocessableEntity).has("must contain at least one role")
	root.post(one+"/roles", "role", "viewer", "role",
		"admin").want(http.StatusUnprocessableEntity).has("cannot contain viewer together with other roles")
	ana.get("/audit").want(http.StatusOK)

	root.post(one + "/disable").want(http.StatusUnprocessableEntity).has("Tick the box")
	if !ana.signedIn() {
		t.Fatal("disabled without the box")
	}
	root.post(one+"/disable", "sure", "yes").want(http.StatusOK).has("disabled",
		testid("enable")).lacks(testid("setup-link"))
	if ana.signedIn() || w.keyWorks(ana.creds.Key) {
		t.Error("a disabled person gets in")
	}
	root.post(one + "/setup-link").want(http.StatusUnprocessableEntity)
	root.post(one + "/enable").want(http.StatusOK).has(testid("setup-link"))
	if ana.signedIn() || !w.keyWorks(ana.creds.Key) {
		t.Error("after enabling, the key does not work, or the old session does")
	}

	p := root.post(one+"/setup-link").want(http.StatusOK).has("This is shown once", "It works until",
		w.server.URL+"/setup?token=gtu_")
	token := p.secrets()[0]
	ana.post("/setup", "token", token).want(http.StatusOK)
	if !ana.signedIn() {
		t.Error("the set-up link does not sign in")
	}
	root.get(one).want(http.StatusOK).has(testid("revoke-session"))
	session := ana.sessionID()
	root.post(one+"/sessions/"+session+"/revoke", "sure", "no").want(http.StatusUnprocessableEntity)
	root.post("/settings/principals/"+w.id("root")+"/sessions/"+session+"/revoke", "sure", "yes").want(http.StatusNotFound)
	if !ana.signedIn() {
		t.Fatal("the session ended too early")
	}
	root.post(one+"/sessions/"+session+"/revoke", "sure", "yes").want(http.StatusOK)
	if ana.signedIn() {
		t.Error("a revoked session gets in")
	}

	made := root.post(one + "/keys").want(http.StatusOK).secrets()
	if len(made) != 1 || !w.keyWorks(made[0]) {
		t.Fatalf("a key: %v", made)
	}
	root.post(one + "/keys/" + ana.creds.KeyID + "/revoke").want(http.StatusUnprocessableEntity)
	root.post("/settings/principals/"+w.id("root")+"/keys/"+ana.creds.KeyID+"/revoke", "sure",
		"yes").want(http.StatusNotFound)
	if !w.keyWorks(ana.creds.Key) {
		t.Fatal("the key ended too early")
	}
	root.post(one+"/keys/"+ana.creds.KeyID+"/revoke", "sure", "yes").want(http.StatusOK).has("1 revoked")
	if w.keyWorks(ana.creds.Key) || !w.keyWorks(made[0]) {
		t.Error("not exactly the revoked key ended")
	}
	root.post(one + "/edit-token").want(http.StatusUnprocessableEntity)
	if made = root.post(one+"/edit-token", "sure", "yes").want(http.StatusOK).secrets(); len(made) != 1 ||
		!strings.HasPrefix(made[0], "gte_") {
		t.Errorf("an edit token: %v", made)
	}
}

// TestAnAdministratorStays: changes that would lock an administrator out are not offered, and are
// refused when posted.
func TestAnAdministratorStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	own := "/settings/principals/" + w.id("root")
	root.get(own).want(http.StatusOK).has("You cannot disable yourself",
		"you cannot remove this from yourself").lacks(testid("disable"))
	const lockout = "would lock out the administrator who makes the change"
	root.post(own+"/disable", "sure", "yes").want(http.StatusUnprocessableEntity).has(lockout)
	root.post(own+"/roles", "role", "viewer").want(http.StatusUnprocessableEntity).has(lockout)
	root.post(own+"/roles", "role", "admin", "role", "proposer").want(http.StatusOK)
	if !root.signedIn() {
		t.Error("the administrator was locked out")
	}
	root.get("/settings/tenants").want(http.StatusOK)
}

func TestTenantsAndTheirWalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, ana := w.signIn("root", gatehouse.RoleAdmin), w.signIn("ana", gatehouse.RoleApprover)
	root.get("/settings/sign-in").want(http.StatusOK).has("Set-up links", "No OpenID Connect provider is configured")
	root.post("/settings/tenants", "id", "a b").want(http.StatusUnprocessableEntity).has(`value="a b"`)
	root.post("/settings/tenants", "id", "acme").want(http.StatusOK).has("The tenant acme was created",
		"/settings/principals/new?tenant=acme")
	root.post("/settings/tenants", "id", "acme").want(http.StatusConflict)
	root.get("/settings/tenants").want(http.StatusOK).has("Create its first administrator")
	root.get("/settings/principals/new?tenant=acme").want(http.StatusOK).has(`value="acme" selected`,
		"beginning with a letter or digit")
	made := root.post("/settings/principals", "tenant", "acme", "name", "boss", "kind", "person", "role", "admin").
		want(http.StatusOK).has("The tenant is acme").secrets()
	if len(made) != 2 {
		t.Fatalf("the first administrator gets %v", made)
	}
	boss := w.stranger()
	there := w.as(&gatehouse.Credentials{Key: made[1], EditToken: made[0]})
	link, err := w.gate.CreateSetupLink(there, "boss")
	must(t, err)
	boss.post("/setup", "token", link.Token).want(http.StatusOK)

	boss.get("/settings").want(http.StatusOK).has("/settings/principals").lacks("/settings/tenants")
	boss.get("/settings/tenants").want(http.StatusForbidden).has("managed by administrators of the tenant default")
	boss.post("/settings/tenants", "id", "mine").want(http.StatusForbidden)
	boss.get("/settings/principals").want(http.StatusOK).has("boss").lacks(">root</a>", ">ana</a>")
	boss.get("/settings/principals/new").want(http.StatusOK).has("The principal is created in the tenant",
		"Only an administrator of the tenant default creates the first administrator of another tenant.").
		lacks(`name="tenant"`)
	boss.post("/settings/principals", "tenant", "default", "name", "spy", "kind", "person", "role",
		"admin").want(http.StatusForbidden)

	session, one := ana.sessionID(), "/settings/principals/"+w.id("ana")
	for _, base := range []string{one, "/settings/principals/ana", "/settings/principals/boss", "/settings"} {
		for path, ours := range map[string]bool{
			"/sessions/" + session + "/revoke": true, "/keys/" + ana.creds.KeyID + "/revoke": true,
			"/passkeys/pky_1/remove": true,
			"/roles":                 false, "/disable": false, "/enable": false, "/keys": false, "/edit-token": false,
			"/setup-link": false,
		} {
			if !ours && (base == "/settings" || base == "/settings/principals/boss") {
				continue // its own
			}
			p := boss.post(base+path, "sure", "yes", "role", "viewer").want(http.StatusNotFound)
			if len(p.secrets()) > 0 {
				t.Errorf("%s shows %v", base+path, p.secrets())
			}
		}
	}
	boss.get(one).want(http.StatusNotFound)
	if !ana.signedIn() || !w.keyWorks(ana.creds.Key) {
		t.Error("another tenant's administrator reached in")
	}
}

func TestOtherSitesChangeNoSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, ana := w.signIn("root", gatehouse.RoleAdmin), w.signIn("ana", gatehouse.RoleApprover)
	before := w.everything()
	one := "/settings/principals/" + w.id("ana")
	for _, path := range []string{
		"/settings/principals", "/settings/tenants", "/settings/keys", "/settings/edit-token",
		"/settings/sessions/revoke-others",
		one + "/disable", one + "/roles", one + "/keys", one + "/setup-link",
		one + "/sessions/" + ana.sessionID() + "/revoke", "/inbox/views",
	} {
		form := url.Values{"sure": {"yes"}, "role": {"viewer"}, "name": {"x"}, "kind": {"person"}, "id": {"x"},
			"query": {"risk=5"}}
		for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
			r := root.request(http.MethodPost, path, form)
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set(header[0], header[1])
			if p := root.do(r).want(http.StatusForbidden); len(p.secrets()) > 0 {
				t.Errorf("%s shows %v", path, p.secrets())
			}
		}
		if p := root.get(path + "?" + form.Encode()); len(p.secrets()) > 0 {
			t.Errorf("a GET of %s shows %v", path, p.secrets())
		}
	}
	if !ana.signedIn() || w.everything() != before {
		t.Error("another site changed something")
	}
}

var unlinkPath = regexp.MustCompile(`/settings/principals/[^/"]+/identities/[0-9a-f]+/unlink`)

// TestHostileTextInSettings puts the corpus into every text that a browser, an authenticator and a
// provider supply, and into the forms.
func TestHostileTextInSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, ana := w.signIn("root", gatehouse.RoleAdmin), w.signIn("ana", gatehouse.RoleApprover)
	one := "/settings/principals/" + w.id("ana")
	texts := slices.DeleteFunc(hostileTexts(t), func(s string) bool {
		return s == "" || strings.ContainsRune(s, 0) || len(s) > 200 // refused, or tested elsewhere
	})
	for some := range slices.Chunk(texts, 15) { // a person may have at most 20 passkeys
		for _, text := range some {
			link, err := w.gate.CreateSetupLink(w.admin, "ana")
			must(t, err)
			if _, err := w.gate.RedeemSetupLink(t.Context(), link.Token, gatehouse.Browser{UserAgent: text}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.gate.AddPasskey(ana.inside(),
				&gatehouse.Passkey{Name: text, CredentialID: []byte(text), Credential: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.gate.LinkIdentity(ana.inside(), gatehouse.DefaultTenant, "https://id.example.com/"+text,
				text); err != nil {
				t.Fatal(err)
			}
			// The form returns the typed text unchanged and escaped.
			root.post("/settings/principals", "name", "!"+text, "kind", "person", "role", "viewer", "sponsor",
				text).want(http.StatusUnprocessableEntity).plain()
			root.post("/settings/tenants", "id", "!"+text).want(http.StatusUnprocessableEntity).plain()
		}
		for _, p := range []*page{ana.get("/settings").want(http.StatusOK), root.get(one).want(http.StatusOK)} {
			p.headers()
			p.shown("the corpus")
			if n := strings.Count(p.body, "https://id.example.com/"); n != len(some) {
				t.Errorf("%s shows %d identities, want %d", p.url, n, len(some))
			}
		}
		ana.get("/settings").has("Only an administrator can unlink").lacks(testid("unlink"))
		for left := len(some); left > 0; left-- {
			paths := unlinkPath.FindAllString(root.get(one).body, -1)
			path := paths[len(paths)-1]
			if left == 1 {
				ana.post(path, "sure", "yes").want(http.StatusForbidden)
				root.post(strings.Replace(path, w.id("ana"), w.id("root"), 1), "sure", "yes").want(http.StatusNotFound)
				root.post(path).want(http.StatusUnprocessableEntity)
			}
			p := root.post(path, "sure", "yes").want(http.StatusOK).lacks(path)
			if n := strings.Count(p.body, testid("unlink")); n != left-1 {
				t.Fatalf("%d identities are left of %d", n, left)
			}
		}
		keys, err := w.gate.ListPasskeys(ana.inside(), "")
		must(t, err)
		for _, k := range keys {
			must(t, w.gate.RemovePasskey(ana.inside(), k.ID))
		}
		if _, err := w.gate.EndOtherSessions(ana.inside()); err != nil {
			t.Fatal(err)
		}
	}
}
