package signin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
	"github.com/gatehouse-dev/gatehouse/internal/signin/idptest"
)

func (i *idp) config(change ...func(*signin.Provider)) signin.Config {
	p := signin.Provider{
		Name: "acme", Issuer: i.issuer, ClientID: clientID, ClientSecret: clientSecret, Provision: true,
		Roles: map[string][]gatehouse.Role{"finance": {gatehouse.RoleApprover}, "ops": {gatehouse.RoleOperator}},
	}
	for _, c := range change {
		c(&p)
	}
	return signin.Config{Providers: []signin.Provider{p}}
}

// signIn performs a complete sign-in.
func (w *world) signIn(s *signin.Service, i *idp, subject string) (*gatehouse.SignedIn, error) {
	w.Helper()
	to, err := s.BeginOIDC(w.Context(), "acme", "/inbox?tab=mine")
	w.must(err)
	out, err := s.FinishOIDC(w.Context(), to.State, i.follow(to.URL, subject), gatehouse.Browser{UserAgent: "Firefox"})
	if err != nil {
		return nil, err
	}
	if out.ReturnTo != "/inbox?tab=mine" || out.StepUp != nil || out.Linked != nil {
		w.Errorf("result %+v", out)
	}
	return out.SignedIn, nil
}

func TestOIDCSignIn(t *testing.T) {
	t.Parallel()
	for name, inToken := range map[string]bool{"groups in the token": true, "groups at userinfo": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, i := newWorld(t), newIDP(t)
			if !inToken {
				i.Bare()
			}
			i.join("1", "ana", "ana@acme.test", "finance", "unmapped")
			s := w.service(i.config())
			to, err := s.BeginOIDC(t.Context(), "acme", "https://evil.test/")
			w.must(err)
			asked, err := url.Parse(to.URL)
			w.must(err)
			q := asked.Query()
			if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" ||
				q.Get("response_type") != "code" ||
				q.Get("state") == "" || strings.Contains(to.URL, to.State) {
				t.Errorf("asked %v", q)
			}
			out, err := s.FinishOIDC(t.Context(), to.State, i.follow(to.URL, "1"), gatehouse.Browser{})
			w.must(err)
			if out.ReturnTo != "/" {
				t.Errorf("back to %s", out.ReturnTo)
			}
			p := out.SignedIn.Principal
			if p.Name != "acme:ana" || !slices.Equal(p.Roles, []gatehouse.Role{gatehouse.RoleApprover}) ||
				out.SignedIn.Session.Method != gatehouse.SignInOIDC {
				t.Errorf("signed in %+v as %+v", p, out.SignedIn.Session)
			}
			again, err := w.signIn(s, i, "1")
			w.must(err)
			if again.Principal.ID != p.ID || again.Token == out.SignedIn.Token {
				t.Errorf("the second time %+v", again.Principal)
			}
		})
	}
}

// The issuer and the subject identify a person; the mail address does not.
func TestSameEmailIsSomebodyElse(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "ana@acme.test", "finance")
	i.join("2", "ana", "ana@acme.test", "finance")
	s := w.service(i.config())
	first, err := w.signIn(s, i, "1")
	w.must(err)
	second, err := w.signIn(s, i, "2")
	w.must(err)
	if first.Principal.ID == second.Principal.ID || first.Principal.Person == second.Principal.Person ||
		first.Principal.Name == second.Principal.Name {
		t.Errorf("one person: %+v and %+v", first.Principal, second.Principal)
	}
	// The name of an existing principal does not identify either.
	ana := who(w.person("ana"))
	if ana.ID == first.Principal.ID {
		t.Error("the provider's ana is ours")
	}
}

func TestGroupRemovedTakesTheRole(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance", "ops")
	s := w.service(i.config())
	first, err := w.signIn(s, i, "1")
	w.must(err)
	i.join("1", "ana", "", "ops")
	second, err := w.signIn(s, i, "1")
	w.must(err)
	if got := who(w.browser(first)); got.Has(gatehouse.RoleApprover) || !second.Principal.Has(gatehouse.RoleOperator) {
		t.Errorf("roles %v", got.Roles)
	}
	i.join("1", "ana", "")
	_, err = w.signIn(s, i, "1")
	w.want(err, gatehouse.CodeRoleRequired)
	for _, token := range []string{first.Token, second.Token} {
		_, err = w.gate.FindSession(t.Context(), token)
		w.want(err, gatehouse.CodeUnauthenticated)
	}
}

func TestUnknownIdentityIsNotProvisionedUnasked(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance")
	s := w.service(i.config(func(p *signin.Provider) { p.Provision = false }))
	_, err := w.signIn(s, i, "1")
	w.want(err, gatehouse.CodeRoleRequired)

	ana := w.person("ana")
	to, err := s.BeginOIDCLink(ana, "acme", "", "/settings")
	w.must(err)
	answer := i.follow(to.URL, "1")
	_, err = s.FinishOIDC(w.setup("ana"), to.State, answer, gatehouse.Browser{})
	w.refused(err, "begun in another session")
	to, err = s.BeginOIDCLink(ana, "acme", "", "/settings")
	w.must(err)
	out, err := s.FinishOIDC(ana, to.State, i.follow(to.URL, "1"), gatehouse.Browser{})
	w.must(err)
	if out.Linked == nil || out.Linked.Subject != i.subject("1") || out.Linked.PrincipalID != who(ana).ID ||
		out.ReturnTo != "/settings" {
		t.Fatalf("linked %+v", out)
	}
	in, err := w.signIn(s, i, "1")
	w.must(err)
	if in.Principal.ID != who(ana).ID {
		t.Errorf("signed in as %s", in.Principal.Name)
	}
	ben := w.person("ben")
	to, err = s.BeginOIDCLink(ben, "acme", "", "/")
	w.must(err)
	_, err = s.FinishOIDC(ben, to.State, i.follow(to.URL, "1"), gatehouse.Browser{})
	w.want(err, gatehouse.CodeAlreadyExists)

	w.want(w.gate.UnlinkIdentity(ana, i.issuer, i.subject("1")), gatehouse.CodeRoleRequired)
	w.must(w.gate.UnlinkIdentity(w.admin, i.issuer, i.subject("1")))
	_, err = w.gate.FindSession(t.Context(), in.Token)
	w.want(err, gatehouse.CodeUnauthenticated)
	w.advance(gatehouse.FreshSignIn)
	_, err = s.BeginOIDCLink(ana, "acme", "", "/")
	w.want(err, gatehouse.CodeStepUpRequired)
}

// TestNobodyBecomesTwoPersons lets somebody try to vote twice: after unlinking their
// identity they would be new at the next sign-in, while the first principal stays
// signed in.
func TestNobodyBecomesTwoPersons(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance")
	s := w.service(i.config())
	first, err := w.signIn(s, i, "1")
	w.must(err)
	w.want(w.gate.UnlinkIdentity(w.browser(first), i.issuer, i.subject("1")), gatehouse.CodeRoleRequired)
	second, err := w.signIn(s, i, "1")
	w.must(err)
	if first.Principal.Person != second.Principal.Person {
		t.Errorf("one identity is %s and %s", first.Principal.Name, second.Principal.Name)
	}
}

// attempt is a sign-in that a test manipulates.
type attempt struct {
	w   *world
	i   *idp
	s   *signin.Service
	to  *gatehouse.Redirect
	net *tamper
}

// asOther lets another client of the provider request the tokens, with our nonce and our verifier.
func (a *attempt) asOther() {
	a.to.URL = strings.Replace(a.to.URL, "client_id="+clientID, "client_id="+otherClient, 1)
	a.net.request = func(r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok {
			r.SetBasicAuth(otherClient, clientSecret)
		}
	}
}

// TestOIDCRefuses breaks a valid answer, in one way at a time.
func TestOIDCRefuses(t *testing.T) {
	t.Parallel()
	query := func(a *attempt, change func(url.Values)) url.Values {
		q := a.i.follow(a.to.URL, "1")
		change(q)
		return q
	}
	for name, tc := range map[string]struct {
		why    string
		answer func(*attempt) url.Values
	}{
		"another nonce": {"another nonce", func(a *attempt) url.Values {
			a.i.Spoil(func(s *idptest.Authentication) { s.Nonce = "bm9uY2U" })
			return query(a, func(url.Values) {})
		}},
		"no nonce": {"another nonce", func(a *attempt) url.Values {
			a.i.Spoil(func(s *idptest.Authentication) { s.Nonce = "" })
			return query(a, func(url.Values) {})
		}},
		// The provider issues a token, with our nonce, to another client, which passes it on.
		"another audience": {"expected audience", func(a *attempt) url.Values {
			a.asOther()
			return query(a, func(url.Values) {})
		}},
		// The token is for both clients, and the other one requested it.
		"another authorized party": {"was made for", func(a *attempt) url.Values {
			a.i.Spoil(func(s *idptest.Authentication) { s.Audience = []string{clientID, otherClient} })
			a.asOther()
			return query(a, func(url.Values) {})
		}},
		"another's userinfo": {"another subject", func(a *attempt) url.Values {
			a.i.Bare()
			a.i.MixUp()
			return query(a, func(url.Values) {})
		}},
		"another browser's answer": {"begun in another browser", func(a *attempt) url.Values {
			mallory, err := a.s.BeginOIDC(a.w.Context(), "acme", "/")
			a.w.must(err)
			return a.i.follow(mallory.URL, "1")
		}},
		"no state": {"begun in another browser",
			func(a *attempt) url.Values { return query(a, func(q url.Values) { q.Del("state") }) }},
		"the cookie": {"begun in another browser",
			func(a *attempt) url.Values { return query(a, func(q url.Values) { q.Set("state", a.to.State) }) }},
		"another code": {"are not valid",
			func(a *attempt) url.Values { return query(a, func(q url.Values) { q.Set("code", "x") }) }},
		"no code": {"has no code", func(a *attempt) url.Values { return query(a, func(q url.Values) { q.Del("code") }) }},
		"two codes": {"occurs twice",
			func(a *attempt) url.Values { return query(a, func(q url.Values) { q.Add("code", "x") }) }},
		"another issuer": {"another provider", func(a *attempt) url.Values {
			return query(a, func(q url.Values) { q.Set("iss", "https://evil.test") })
		}},
		"the person's no": {"the provider refused", func(a *attempt) url.Values {
			return query(a, func(q url.Values) { q.Set("error", "access_denied") })
		}},
		// Another's code is bound to another verifier (PKCE).
		"an injected code": {"are not valid", func(a *attempt) url.Values {
			mallory, err := a.s.BeginOIDC(a.w.Context(), "acme", "/")
			a.w.must(err)
			stolen := a.i.follow(mallory.URL, "1").Get("code")
			return query(a, func(q url.Values) { q.Set("code", stolen) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &attempt{w: newWorld(t), i: newIDP(t), net: &tamper{}}
			a.i.join("1", "ana", "", "finance")
			c := a.i.config()
			c.HTTP = &http.Client{Transport: a.net}
			a.s = a.w.service(c)
			var err error
			a.to, err = a.s.BeginOIDC(t.Context(), "acme", "/")
			a.w.must(err)
			state := a.to.State
			_, err = a.s.FinishOIDC(t.Context(), state, tc.answer(a), gatehouse.Browser{})
			a.w.refused(err, tc.why)
			if page, err := a.w.gate.ListSessions(a.w.admin, gatehouse.SessionFilter{All: true, Ended: true}); err != nil ||
				len(page.Items) != 0 {
				t.Errorf("a session began: %+v, %v", page.Items, err)
			}
		})
	}
}

// A state works once, whatever its result, and expires.
func TestStateWorksOnce(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance")
	s := w.service(i.config())
	to, err := s.BeginOIDC(t.Context(), "acme", "/")
	w.must(err)
	answer := i.follow(to.URL, "1")
	_, err = s.FinishOIDC(t.Context(), to.State, answer, gatehouse.Browser{})
	w.must(err)
	_, err = s.FinishOIDC(t.Context(), to.State, answer, gatehouse.Browser{})
	w.want(err, gatehouse.CodeUnauthenticated)

	to, err = s.BeginOIDC(t.Context(), "acme", "/")
	w.must(err)
	answer = i.follow(to.URL, "1")
	_, err = s.FinishOIDC(t.Context(), to.State, url.Values{}, gatehouse.Browser{})
	w.want(err, gatehouse.CodeUnauthenticated)
	_, err = s.FinishOIDC(t.Context(), to.State, answer, gatehouse.Browser{})
	w.want(err, gatehouse.CodeUnauthenticated)

	to, err = s.BeginOIDC(t.Context(), "acme", "/")
	w.must(err)
	answer = i.follow(to.URL, "1")
	w.advance(gatehouse.CeremonyTTL)
	_, err = s.FinishOIDC(t.Context(), to.State, answer, gatehouse.Browser{})
	w.want(err, gatehouse.CodeUnauthenticated)
	for _, state := range []string{"", "x"} {
		_, err = s.FinishOIDC(t.Context(), state, answer, gatehouse.Browser{})
		w.want(err, gatehouse.CodeUnauthenticated)
	}
}

func TestClockLeeway(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance")
	for ahead, refused := range map[time.Duration]bool{
		time.Hour + 30*time.Second: false, time.Hour + 2*time.Minute: true, // tokens live an hour
		-30 * time.Second: false, -2 * time.Minute: true,
	} {
		c := i.config()
		c.Now = func() time.Time { return time.Now().Add(ahead) }
		if _, err := w.signIn(w.service(c), i, "1"); (err != nil) != refused {
			t.Errorf("a clock %s ahead: %v", ahead, err)
		}
	}
}

func TestProviderThatIsDownTakesNothing(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance")
	i.Bare()
	net := &tamper{}
	c := i.config()
	c.HTTP = &http.Client{Transport: net}
	s := w.service(c)
	in, err := w.signIn(s, i, "1")
	w.must(err)
	net.request = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/userinfo") {
			r.URL.Host = "127.0.0.1:1"
		}
	}
	_, err = w.signIn(s, i, "1")
	w.want(err, gatehouse.CodeBusy)
	if p := who(w.browser(in)); !p.Has(gatehouse.RoleApprover) {
		t.Errorf("roles %v", p.Roles)
	}
	net.request = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/userinfo") {
			r.Header.Set("Authorization", "Bearer x")
		}
	}
	_, err = w.signIn(s, i, "1")
	w.refused(err, "userinfo: 401")
	keys := &tamper{request: func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/keys") {
			r.URL.Host = "127.0.0.1:1"
		}
	}}
	c.HTTP = &http.Client{Transport: keys}
	_, err = w.signIn(w.service(c), i, "1")
	w.want(err, gatehouse.CodeBusy)
	gone := w.service(
		signin.Config{Providers: []signin.Provider{{Name: "acme", Issuer: "http://127.0.0.1:1", ClientID: "x"}}})
	for range 2 {
		_, err = gone.BeginOIDC(t.Context(), "acme", "/")
		w.want(err, gatehouse.CodeBusy)
	}
	_, err = gone.BeginOIDC(t.Context(), "nobody", "/")
	w.want(err, gatehouse.CodeNotFound)
}

// TestSlowProvider: a sign-in that waits for the provider's answer to another sign-in ends with its own context.
func TestSlowProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-answer }))
	t.Cleanup(slow.Close)
	s := w.service(signin.Config{Providers: []signin.Provider{{Name: "acme", Issuer: slow.URL, ClientID: "x"}}})
	first := make(chan error, 1)
	go func() {
		_, err := s.BeginOIDC(t.Context(), "acme", "/")
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	late := time.AfterFunc(time.Minute, func() { close(answer) })
	_, err := s.BeginOIDC(ctx, "acme", "/")
	w.want(err, gatehouse.CodeBusy)
	select {
	case err := <-first:
		t.Fatalf("the second sign-in waited for the first: %v", err)
	default:
	}
	if late.Stop() {
		close(answer)
	}
	w.want(<-first, gatehouse.CodeBusy)
}

func TestStrangersAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.service(
		signin.Config{Passkeys: &signin.Passkeys{RPID: "gate.test", Origins: []string{publicURL}}, BeginsPerSecond: 0.001})
	_, err := s.BeginPasskeySignIn(t.Context())
	w.must(err)
	_, err = s.BeginPasskeySignIn(t.Context())
	w.want(err, gatehouse.CodeRateLimited)
}

func TestOIDCStepUp(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	i.join("1", "ana", "", "finance")
	i.join("2", "ben", "", "finance")
	s := w.service(i.config())
	in, err := w.signIn(s, i, "1")
	w.must(err)
	ana := w.browser(in)
	a, b := w.high("SKU-A"), w.high("SKU-B")
	w.want(w.approve(ana, a), gatehouse.CodeStepUpRequired)
	begin := func(a *gatehouse.Action) *gatehouse.Redirect {
		t.Helper()
		to, err := s.BeginOIDCStepUp(ana, "acme", a.ID, a.Digest, "/actions/"+a.ID)
		w.must(err)
		if q, _ := url.Parse(to.URL); q.Query().Get("prompt") != "login" || q.Query().Get("max_age") != "0" {
			t.Errorf("asked %s", to.URL)
		}
		return to
	}
	finish := func(to *gatehouse.Redirect, subject string) error {
		_, err := s.FinishOIDC(ana, to.State, i.follow(to.URL, subject), gatehouse.Browser{})
		return err
	}
	w.want(finish(begin(a), "2"), gatehouse.CodeUnauthenticated) // somebody else at the keyboard
	for why, spoil := range map[string]func(*idptest.Authentication){
		"authenticated before the step-up": func(s *idptest.Authentication) { s.At = s.At.Add(-2 * time.Minute) },
		"does not say when":                func(s *idptest.Authentication) { s.At = time.Time{} },
		"in the future":                    func(s *idptest.Authentication) { s.At = s.At.Add(2 * time.Minute) },
	} {
		i.Spoil(spoil)
		w.refused(finish(begin(a), "1"), why)
	}
	i.Spoil(nil)
	w.want(w.approve(ana, a), gatehouse.CodeStepUpRequired)
	w.must(finish(begin(b), "1"))
	w.want(w.approve(ana, a), gatehouse.CodeStepUpRequired) // this proof was for b
	to := begin(a)
	_, err = s.FinishOIDC(t.Context(), to.State, i.follow(to.URL, "1"), gatehouse.Browser{}) // signed out meanwhile
	w.refused(err, "another session")
	w.must(finish(begin(a), "1"))
	w.must(w.approve(ana, a))
	_, err = s.BeginOIDCStepUp(t.Context(), "acme", a.ID, a.Digest, "/")
	w.want(err, gatehouse.CodeUnauthenticated)
}

// A provider's people are only in its tenant.
func TestProviderOfAnotherTenant(t *testing.T) {
	t.Parallel()
	w, i := newWorld(t), newIDP(t)
	_, err := w.gate.CreateTenant(w.admin, "acme")
	w.must(err)
	i.join("1", "ana", "", "finance")
	s := w.service(i.config(func(p *signin.Provider) { p.Tenant = "acme" }))
	in, err := w.signIn(s, i, "1")
	w.must(err)
	browser := w.browser(in)
	if who(browser).Tenant != "acme" || in.Session.Tenant != "acme" {
		t.Errorf("signed in %+v", in.Session)
	}
	a := w.high("SKU-A")
	_, err = w.gate.FindAction(browser, a.ID)
	w.want(err, gatehouse.CodeNotFound)
	to, err := s.BeginOIDCStepUp(browser, "acme", a.ID, a.Digest, "/")
	w.must(err)
	_, err = s.FinishOIDC(browser, to.State, i.follow(to.URL, "1"), gatehouse.Browser{})
	w.want(err, gatehouse.CodeNotFound)
	ben := w.person("ben") // of the tenant default
	to, err = s.BeginOIDCLink(ben, "acme", "", "/")
	w.must(err)
	_, err = s.FinishOIDC(ben, to.State, i.follow(to.URL, "1"), gatehouse.Browser{})
	w.want(err, gatehouse.CodeRoleRequired)
	nowhere := w.service(i.config(func(p *signin.Provider) { p.Tenant = "nowhere" }))
	_, err = w.signIn(nowhere, i, "1")
	w.want(err, gatehouse.CodeNotFound)
}
