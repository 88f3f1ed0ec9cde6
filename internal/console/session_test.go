package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// sessionCookie is the browser's session cookie, "" for none.
func (b *browser) sessionCookie() string {
	u, err := url.Parse(b.w.server.URL)
	must(b.w.t, err)
	for _, c := range b.jar.Cookies(u) {
		if c.Name == "gatehouse_session" {
			return c.Value
		}
	}
	return ""
}

func TestSetupLinkIsShownByGetAndUsedByPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	link, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	b := w.stranger()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} {
		b.do(b.request(method, link.Path, nil)).want(200)
	}
	b.get(link.Path).has("Welcome, ana", testid("setup-go"))
	if b.sessionCookie() != "" {
		t.Fatal("a GET gave a session")
	}
	p := b.post("/setup", "token", link.Token).want(200)
	if p.url.Path != "/inbox" || b.sessionCookie() == "" {
		t.Fatalf("after the set-up link was used, the browser is at %s", p.url)
	}
	w.stranger().get(link.Path).want(http.StatusUnauthorized)
	w.stranger().post("/setup", "token", link.Token).want(http.StatusUnauthorized)
	w.stranger().post("/setup", "token", "gtu_none").want(http.StatusUnauthorized)
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	link, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	b := w.stranger()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	// A planted session is not adopted (session fixation).
	r := b.request(http.MethodPost, "/setup", url.Values{"token": {link.Token}})
	r.AddCookie(&http.Cookie{Name: "gatehouse_session", Value: "gts_planted"})
	p := b.do(r).want(http.StatusSeeOther)
	var session *http.Cookie
	for _, line := range p.header.Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(line); err == nil && c.Name == "gatehouse_session" {
			session = c
		}
	}
	if session == nil || session.Value == "gts_planted" || !strings.HasPrefix(session.Value, "gts_") {
		t.Fatalf("the session's cookie is %v", session)
	}
	if !session.HttpOnly || session.SameSite != http.SameSiteLaxMode || session.Path != "/" || session.Domain != "" {
		t.Errorf("the cookie is %s", session)
	}
	planted := w.stranger()
	r = planted.request(http.MethodGet, "/inbox", nil)
	r.AddCookie(&http.Cookie{Name: "gatehouse_session", Value: "gts_planted"})
	if p := planted.do(r); p.url.Path != "/signin" {
		t.Errorf("the planted session opens %s", p.url)
	}
}

func TestSecureCookiesBehindHTTPS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.public("https://gate.example.com")
	w.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	link, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	b := w.stranger()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := b.post("/setup", "token", link.Token).want(http.StatusSeeOther)
	for _, line := range p.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		must(t, err)
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure {
			t.Errorf("over https the cookie is %s", line)
		}
	}
	if p.header.Get("Strict-Transport-Security") == "" {
		t.Error("no Strict-Transport-Security over https")
	}
}

func TestSignOutAndRevocationEndASessionAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	old := ana.sessionCookie()
	ana.post("/signout").want(200).has(testid("signin"))
	again := w.stranger()
	r := again.request(http.MethodGet, "/inbox", nil)
	r.AddCookie(&http.Cookie{Name: "gatehouse_session", Value: old})
	if p := again.do(r); p.url.Path != "/signin" {
		t.Errorf("after signing out the token opens %s", p.url)
	}

	ben := w.signIn("ben", gatehouse.RoleApprover)
	sessions, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{Principal: "ben"})
	if err != nil || len(sessions.Items) != 1 {
		t.Fatalf("ben's sessions: %v %v", sessions.Items, err)
	}
	if _, err := w.gate.RevokeSession(w.admin, sessions.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	if p := ben.get("/inbox"); p.url.Path != "/signin" {
		t.Errorf("a revoked session opens %s", p.url)
	}
}

func TestNextIsAPathOfThisSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stranger()
	if p := b.get("/actions/act_1?full=1"); p.url.Path != "/signin" ||
		p.url.Query().Get("next") != "/actions/act_1?full=1" {
		t.Errorf("a stranger is sent to %s", p.url)
	}
	for path, want := range map[string]string{
		"/inbox?tab=team":       "/inbox?tab=team",
		"//evil.example/":       "/inbox",
		"///evil.example/":      "/inbox",
		`/\evil.example`:        "/inbox",
		"https://evil.example/": "/inbox",
		"javascript:alert(1)":   "/inbox",
		"/%09/evil.example":     "/%09/evil.example",
		"/\t/evil.example":      "/inbox",
		"":                      "/inbox",
	} {
		if got := console.LocalPath(path); got != want {
			t.Errorf("localPath(%q) is %q, want %q", path, got, want)
		}
	}
	ana := w.signIn("ana", gatehouse.RoleApprover)
	if p := ana.get("/signin?next=" + url.QueryEscape("//evil.example/x")); p.url.Path != "/inbox" {
		t.Errorf("signed in, next led to %s", p.url)
	}
}

func TestPreferencesAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/inbox").lacks("data-theme", `data-keys="off"`)
	if p := ana.post("/preferences", "theme", "dark", "return",
		"/inbox?tab=team").want(200); p.url.RequestURI() != "/inbox?tab=team" {
		t.Errorf("back at %s", p.url)
	}
	ana.post("/preferences", "keys", "off")
	ana.get("/help").want(200).has(`data-theme="dark"`, `data-keys="off"`, "switched off")
	ana.post("/preferences", "theme", "system")
	ana.post("/preferences", "keys", "on")
	ana.get("/inbox").lacks("data-theme", `data-keys="off"`)
}

// TestBodiesThatCannotBeRead: a body that is too large gets 413, and a body that breaks off 400.
func TestBodiesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for want, body := range map[string]io.Reader{
		"413 a body has at most 1 MiB":              strings.NewReader(strings.Repeat("x", 1<<20+1)),
		"400 the body could not be read to its end": iotest.ErrReader(io.ErrUnexpectedEOF),
	} {
		r := httptest.NewRequest(http.MethodPost, "/signin/passkey/finish", body)
		r.Header.Set("Accept", "application/json")
		answer := httptest.NewRecorder()
		w.server.Config.Handler.ServeHTTP(answer, r)
		status, detail, _ := strings.Cut(want, " ")
		if strconv.Itoa(answer.Code) != status || !strings.Contains(answer.Body.String(), detail) {
			t.Errorf("%d %s, want %s", answer.Code, answer.Body, want)
		}
	}
}

// TestSignsIn: a request that begins a sign-in needs no secret, one that finishes it has one that may be wrong.
func TestSignsIn(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"POST /signin/passkey/begin":   "begins",
		"GET /signin/oidc/begin/acme":  "begins",
		"HEAD /signin/oidc/begin/acme": "begins",
		"POST /signin/passkey/finish":  "finishes",
		"GET /signin/oidc/callback":    "finishes",
		"GET /setup?token=gtu_1":       "finishes",
		"POST /setup":                  "finishes",
		"GET /setup":                   "",
		"GET /signin":                  "",
		"POST /signout":                "",
		"GET /inbox":                   "",
	} {
		method, target, _ := strings.Cut(request, " ")
		begins, finishes := console.SignsIn(httptest.NewRequest(method, target, nil))
		if begins != (want == "begins") || finishes != (want == "finishes") {
			t.Errorf("%s: begins %t, finishes %t, want %q", request, begins, finishes, want)
		}
	}
}
