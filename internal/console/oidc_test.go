package console_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
	"github.com/gatehouse-dev/gatehouse/internal/signin/idptest"
)

// idp manages one test's people at the provider that all tests share.
type idp struct {
	*idptest.Provider
	idptest.TokenFaults
	w      *world
	issuer string
}

type started struct {
	*idptest.Provider
	issuer string
}

var sharedIDP = sync.OnceValue(func() started {
	p, issuer, err := idptest.Start()
	if err != nil {
		panic(err)
	}
	return started{p, issuer}
})

// provider configures sign-in at a real provider, whose groups grant roles.
func (w *world) provider(change ...func(*signin.Provider)) *idp {
	w.t.Helper()
	s := sharedIDP()
	client := w.t.Name()
	s.Register(client, "s3cret", w.server.URL+gatehouse.CallbackPath)
	p := signin.Provider{
		Name: "acme", Issuer: s.issuer, ClientID: client, ClientSecret: "s3cret", Provision: true,
		Roles: map[string][]gatehouse.Role{"finance": {gatehouse.RoleApprover}, "audit": {gatehouse.RoleAuditor},
			"board": {gatehouse.RoleAdmin}},
	}
	for _, c := range change {
		c(&p)
	}
	ceremonies, err := signin.New(signin.Config{PublicURL: w.server.URL, Providers: []signin.Provider{p}}, w.gate,
		slog.New(slog.DiscardHandler))
	must(w.t, err)
	w.config.SignIn, w.config.PublicURL = ceremonies, w.server.URL
	pages, err := console.New(w.config)
	must(w.t, err)
	w.server.Config.Handler = pages
	return &idp{Provider: s.Provider, w: w, issuer: s.issuer}
}

// subject is a person's unique subject at the provider: tests share none.
func (i *idp) subject(name string) string { return i.w.t.Name() + "#" + name }

// join registers a person at the provider, with groups.
func (i *idp) join(name string, groups ...string) {
	i.Join(idptest.Person{Subject: i.subject(name), Username: name, Password: "p", Email: "same@acme.test", Groups: groups,
		Faults: &i.TokenFaults})
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// login signs somebody in at the provider's page and returns the page on which the browser ends up.
func (i *idp) login(b *browser, at *page, name string) *page {
	i.w.t.Helper()
	return b.do(i.form(b, at, name))
}

// form is the request that the provider's login form sends.
func (i *idp) form(b *browser, at *page, name string) *http.Request {
	i.w.t.Helper()
	found := hiddenID.FindStringSubmatch(at.body)
	if at.url.Host != strings.TrimPrefix(i.issuer, "http://") || found == nil {
		i.w.t.Fatalf("not at the provider, but at %s: %s", at.url, at.text())
	}
	form := url.Values{"id": {found[1]}, "username": {i.subject(name)}, "password": {"p"}}
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodPost, i.issuer+"/login/username",
		strings.NewReader(form.Encode()))
	must(i.w.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// signIn performs the complete sign-in, from the sign-in page on.
func (i *idp) signIn(b *browser, name string) *page {
	i.w.t.Helper()
	return i.login(b, b.get("/signin/oidc/begin/acme?next=%2Finbox%3Ftab%3Dteam"), name)
}

// answer stops at the redirect from the provider back to the console, and returns its URL.
func (i *idp) answer(b *browser, at *page, name string) *url.URL {
	i.w.t.Helper()
	var back *url.URL
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == gatehouse.CallbackPath {
			back = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}
	defer func() { b.client.CheckRedirect = nil }()
	b.do(i.form(b, at, name))
	if back == nil {
		i.w.t.Fatal("the provider does not send the browser back")
	}
	return back
}

// sessions lists all sessions that ever began.
func (w *world) sessions() []*gatehouse.Session {
	w.t.Helper()
	list, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{All: true, Ended: true})
	must(w.t, err)
	return list.Items
}

func TestOIDCSignInThroughThePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.provider()
	i.join("ana", "finance", "unmapped")
	b := w.stranger()
	b.get("/signin").want(200).has(testid("oidc-acme"), "/signin/oidc/begin/acme")

	// The state in the provider's URL is not the secret in the browser's cookie.
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	begun := b.get("/signin/oidc/begin/acme").want(http.StatusSeeOther)
	asked, err := url.Parse(begun.header.Get("Location"))
	must(t, err)
	cookie, err := http.ParseSetCookie(begun.header.Get("Set-Cookie"))
	if err != nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || len(cookie.Value) < 43 {
		t.Fatalf("the ceremony's cookie is %v, %v", cookie, err)
	}
	q := asked.Query()
	if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("nonce") == "" ||
		len(q.Get("state")) != 43 ||
		q.Get("response_type") != "code" || q.Get("redirect_uri") != w.server.URL+gatehouse.CallbackPath ||
		strings.Contains(asked.String(), cookie.Value) {
		t.Errorf("asked %v", q)
	}
	b.client.CheckRedirect = nil

	p := i.signIn(b, "ana").want(200)
	if p.url.Path != "/inbox" || p.url.Query().Get("tab") != "team" {
		t.Errorf("signed in, the browser is at %s", p.url)
	}
	b.get("/settings").want(200).has("acme:ana", "approver", "by sign-in provider")
	b.get("/policies").want(200)
	b.get("/audit").want(http.StatusForbidden)

	// At the next sign-in, groups grant and remove roles in every session.
	i.join("ana", "audit")
	other := w.stranger()
	i.signIn(other, "ana").want(200)
	for _, each := range []*browser{b, other} {
		each.get("/audit").want(200)
		a := w.propose(w.agent("bot-"+gatehouseID(each)), nil)
		each.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(http.StatusForbidden)
	}
	i.join("ana")
	i.signIn(w.stranger(), "ana").want(http.StatusForbidden).has("Not allowed")
	if p := b.get("/inbox"); p.url.Path != "/signin" {
		t.Errorf("without a group the session still opens %s", p.url)
	}

	// Another subject with the same name and address is another person.
	i.join("ana", "finance")
	i.Join(idptest.Person{Subject: i.subject("twin"), Username: "ana", Password: "p", Email: "same@acme.test",
		Groups: []string{"finance"}})
	i.signIn(b, "ana").want(200)
	i.signIn(other, "twin").want(200)
	principals := make(map[string]bool)
	for _, s := range w.sessions() {
		principals[s.PrincipalID] = true
	}
	if len(principals) != 2 {
		t.Errorf("ana and her twin are %v", slices.Collect(maps.Keys(principals)))
	}
}

// gatehouseID distinguishes the browsers.
func gatehouseID(b *browser) string { return strings.ToLower(b.sessionCookie()[4:12]) }

func TestOIDCAnswersThatDoNotHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.provider(func(p *signin.Provider) { p.Provision = false })
	i.join("ana", "finance")
	refused := func(why string, p *page, status int) {
		t.Helper()
		if p.status != status || p.header.Get("X-Frame-Options") == "" {
			t.Errorf("%s: status %d\n%s", why, p.status, p.text())
		}
		for _, s := range w.sessions() {
			t.Errorf("%s: a session began: %+v", why, s)
		}
	}
	callback := func(b *browser, back *url.URL, change func(url.Values)) *page {
		q := back.Query()
		change(q)
		return b.get(gatehouse.CallbackPath + "?" + q.Encode())
	}
	begin := func(b *browser) *page { return b.get("/signin/oidc/begin/acme") }

	refused("nobody asked", w.stranger().get(gatehouse.CallbackPath+"?code=x&state=y"), http.StatusUnauthorized)
	for why, change := range map[string]func(url.Values){
		"another state":  func(q url.Values) { q.Set("state", strings.Repeat("A", 43)) },
		"no state":       func(q url.Values) { q.Del("state") },
		"another code":   func(q url.Values) { q.Set("code", "x") },
		"two codes":      func(q url.Values) { q.Add("code", "x") },
		"another issuer": func(q url.Values) { q.Set("iss", "https://evil.example") },
		"a refusal":      func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") },
	} {
		b := w.stranger()
		back := i.answer(b, begin(b), "ana")
		refused(why, callback(b, back, change), http.StatusUnauthorized)
		refused(why+", then the right answer", callback(b, back, func(url.Values) {}), http.StatusUnauthorized)
	}
	ana, mallory := w.stranger(), w.stranger()
	begin(ana)
	refused("begun in another browser", callback(ana, i.answer(mallory, begin(mallory), "ana"), func(url.Values) {}),
		http.StatusUnauthorized)
	i.Spoil(func(a *idptest.Authentication) { a.Nonce = "bm9uY2U" })
	refused("another nonce", i.signIn(w.stranger(), "ana"), http.StatusUnauthorized)
	i.Spoil(nil)
	refused("nobody here", i.signIn(w.stranger(), "ana"), http.StatusForbidden)
	if p := w.stranger().get("/signin/oidc/begin/elsewhere"); p.status != http.StatusNotFound {
		t.Errorf("a provider that is not configured: status %d", p.status)
	}
}

// TestOIDCCodeWorksOnce replays a callback URL, as found in a browser's history or a proxy's log.
func TestOIDCCodeWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.provider()
	i.join("ana", "finance")
	b := w.stranger()
	back := i.answer(b, b.get("/signin/oidc/begin/acme?next=//evil.example"), "ana")
	server, err := url.Parse(w.server.URL)
	must(t, err)
	before := b.jar.Cookies(server)
	if p := b.get(back.RequestURI()).want(200); p.url.Host != server.Host || p.url.Path != "/inbox" {
		t.Errorf("signed in, the browser is at %s", p.url)
	}
	again := w.stranger()
	again.jar.SetCookies(server, before) // even with the old cookie
	again.get(back.RequestURI()).want(http.StatusUnauthorized)
	if list := w.sessions(); len(list) != 1 {
		t.Errorf("%d sessions began", len(list))
	}
}

// TestOIDCSignInFixesNoSession plants an attacker's own session in the browser of somebody who then
// signs in (session fixation).
func TestOIDCSignInFixesNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.provider()
	i.join("ana", "finance")
	mallory := w.signIn("mallory", gatehouse.RoleApprover)
	planted := mallory.sessionCookie()
	server, err := url.Parse(w.server.URL)
	must(t, err)
	ana := w.stranger()
	ana.jar.SetCookies(server, []*http.Cookie{{Name: "gatehouse_session", Value: planted, Path: "/"}})
	i.signIn(ana, "ana").want(200)
	if ana.sessionCookie() == planted {
		t.Fatal("the planted session still works")
	}
	ana.get("/settings").want(200).has("acme:ana")
	if p := mallory.get("/inbox"); p.url.Path != "/signin" {
		t.Errorf("the person who planted the session is at %s", p.url)
	}
}

// newItem is an L4 proposal.
func newItem(p *gatehouse.Proposal) {
	p.ActionType, p.Operation, p.CurrentState = "create_item", "insert", ""
	p.Target = gatehouse.Target{EntityType: "item", EntityRef: "SKU-9001"}
}

// deletion is an L5 proposal.
func deletion(p *gatehouse.Proposal) {
	p.ActionType, p.Operation, p.CurrentState, p.ProposedChange = "bulk_delete", "bulk_delete", "", "{}"
	p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2"}}
}

var stepUpLink = regexp.MustCompile(`href="(/actions/[^"]*/stepup/oidc/acme[^"]*)"`)

// stepUp follows the step-up link on an action's page and authenticates as the named person.
func (i *idp) stepUp(b *browser, a *gatehouse.Action, name string) *page {
	i.w.t.Helper()
	return i.login(b, b.get(i.stepUpPath(b, a)), name)
}

func (i *idp) stepUpPath(b *browser, a *gatehouse.Action) string {
	i.w.t.Helper()
	found := stepUpLink.FindStringSubmatch(b.get("/actions/" + a.ID).want(200).body)
	if found == nil {
		i.w.t.Fatal("the page offers no step-up at the provider")
	}
	return strings.ReplaceAll(found[1], "&amp;", "&")
}

func TestOIDCStepUpThroughThePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.provider()
	i.join("ana", "finance")
	i.join("ben", "finance")
	ana, ben := w.stranger(), w.stranger()
	i.signIn(ana, "ana").want(200)
	i.signIn(ben, "ben").want(200)
	bot := w.agent("bot")
	a := w.propose(bot, newItem)
	approve := func(b *browser, a *gatehouse.Action, more ...string) *page {
		t.Helper()
		return b.post("/actions/"+a.ID+"/decide",
			decision(a, gatehouse.Approve, append(more, "confirm", a.Approval.Confirm.Value)...)...)
	}
	pending := func(why string, p *page, code gatehouse.Code) {
		t.Helper()
		p.has(`data-code="` + string(code) + `"`)
		if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
			t.Fatalf("%s: the action is %s", why, got.Status)
		}
	}

	// A session at the provider is not enough: the provider must authenticate the person again.
	pending("signed in", approve(ana, a), gatehouse.CodeStepUpRequired)
	ana.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	asked, err := url.Parse(ana.get(i.stepUpPath(ana, a)).want(http.StatusSeeOther).header.Get("Location"))
	ana.client.CheckRedirect = nil
	if err != nil || asked.Query().Get("prompt") != "login" || asked.Query().Get("max_age") != "0" {
		t.Errorf("asked %s, %v", asked, err)
	}
	i.Spoil(func(x *idptest.Authentication) { x.At = x.At.Add(-10 * time.Minute) })
	i.stepUp(ana, a, "ana").want(http.StatusUnauthorized)
	i.Spoil(nil)
	i.stepUp(ana, a, "ben").want(http.StatusUnauthorized) // another person authenticates
	back := i.answer(ana, ana.get(i.stepUpPath(ana, a)), "ana")
	ben.get(back.RequestURI()).want(http.StatusUnauthorized) // another person's browser
	pending("no proof holds", approve(ana, a), gatehouse.CodeStepUpRequired)

	// A proof is valid for one action and digest.
	other := w.propose(bot, func(p *gatehouse.Proposal) { newItem(p); p.Target.EntityRef = "SKU-9002" })
	i.stepUp(ana, other, "ana").want(200).has(testid("step-up-done"))
	pending("a proof for another action", approve(ana, a), gatehouse.CodeStepUpRequired)
	stale := strings.Replace(i.stepUpPath(ana, a), url.QueryEscape(string(a.Digest)),
		url.QueryEscape(string(other.Digest)), 1)
	i.login(ana, ana.get(stale), "ana").want(http.StatusConflict)
	pending("a proof for other bytes", approve(ana, a), gatehouse.CodeStepUpRequired)

	done := i.stepUp(ana, a, "ana").want(200).has(testid("step-up-done"), "Proven by oidc")
	if done.url.Path != "/actions/"+a.ID {
		t.Errorf("proven, the browser is at %s", done.url)
	}
	pending("another value typed",
		ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve, "confirm", "SKU-9003")...),
		gatehouse.CodeConfirmation)
	pending("another person's session", approve(ben, a), gatehouse.CodeStepUpRequired)
	approve(ana, a).want(200)
	if got := w.action(a.ID); got.Status != gatehouse.StatusApproved || got.DecidedBy != "acme:ana" ||
		got.DecidedVia != gatehouse.ViaConsole {
		t.Fatalf("the action is %s by %s via %s", got.Status, got.DecidedBy, got.DecidedVia)
	}

	// The proof expires after five minutes.
	w.advance(gatehouse.StepUpTTL + time.Second)
	approve(ana, other).want(http.StatusForbidden).has(`data-code="step_up_required"`)
}

// TestOIDCStepUpOfTwoPersons approves an L5 action: each of the two needs a step-up of their own.
func TestOIDCStepUpOfTwoPersons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.provider()
	i.join("ana", "finance")
	i.join("ben", "finance")
	w.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover) // without an earlier sign-in
	a := w.propose(w.agent("bot"), deletion)
	for n, name := range []string{"ana", "ben"} {
		b := w.stranger()
		i.signIn(b, name).want(200)
		vote := decision(a, gatehouse.Approve, "confirm", "2", "notes", "discontinued")
		b.post("/actions/"+a.ID+"/decide", vote...).want(http.StatusForbidden).has(`data-code="step_up_required"`)
		i.stepUp(b, a, name).want(200).has(testid("step-up-done"))
		b.post("/actions/"+a.ID+"/decide", vote...).want(200)
		if got := w.action(a.ID); got.Approval.Approvals() != n+1 {
			t.Fatalf("%s's vote makes %d approvals", name, got.Approval.Approvals())
		}
	}
	if got := w.action(a.ID); got.Status != gatehouse.StatusApproved {
		t.Errorf("the action is %s", got.Status)
	}
}
