package console_test

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// fill replaces {id} in a pattern with an id, and every other wildcard with 1.
func fill(path, id string) string {
	for strings.Contains(path, "{") {
		open, end := strings.Index(path, "{"), strings.Index(path, "}")
		value := "1"
		if path[open:end+1] == "{id}" {
			value = id
		}
		path = path[:open] + strings.TrimPrefix(value, "$") + path[end+1:]
	}
	return path
}

// headers checks the headers of every answer.
func (p *page) headers() {
	p.t.Helper()
	csp := p.header.Get("Content-Security-Policy")
	parts := []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'",
		"base-uri 'none'",
		"connect-src 'self'", "img-src 'self' data:", "font-src 'self'",
	}
	if strings.HasPrefix(p.url.Path, "/review/") || p.url.Path == "/unsubscribe" { // the pages of links run no script
		parts = []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"}
	}
	for _, part := range parts {
		if !slices.Contains(strings.Split(csp, "; "), part) {
			p.t.Errorf("%s: the content policy %q lacks %q", p.url, csp, part)
		}
	}
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	} {
		if got := p.header.Get(name); got != want {
			p.t.Errorf("%s: %s is %q, want %q", p.url, name, got, want)
		}
	}
	if cache := p.header.Get("Cache-Control"); !strings.HasPrefix(p.url.Path, "/assets/") && cache != "no-store" {
		p.t.Errorf("%s: Cache-Control is %q", p.url, cache)
	}
	if strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		p.plain()
	}
}

// plain parses a page as a browser does and checks that it has nothing inline and links only to
// this site.
func (p *page) plain() {
	p.t.Helper()
	z := html.NewTokenizer(strings.NewReader(p.body))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag := z.Token()
		if slices.Contains([]string{"style", "iframe", "base", "object", "embed", "img", "math", "foreignobject", "template"},
			tag.Data) {
			p.t.Errorf("%s has %s", p.url, tag)
		}
		src := false
		for _, a := range tag.Attr {
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"), a.Key == "srcdoc",
				a.Key == "http-equiv":
				p.t.Errorf("%s has %s", p.url, tag)
			case slices.Contains([]string{"src", "href", "action", "formaction", "hx-get", "hx-post"}, a.Key):
				src = src || a.Key == "src"
				if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") {
					p.t.Errorf("%s leads elsewhere: %s", p.url, tag)
				}
			}
		}
		if tag.Data == "script" && !src {
			p.t.Errorf("%s has a script of its own", p.url)
		}
	}
}

// TestEveryRoute requests every page in six roles, and posts every form as a viewer: a stranger is
// redirected to sign in, a person without the role gets 403, all answers have the headers, and none
// shows another tenant's action.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	foreign := w.foreignAction()
	people := map[gatehouse.Role]*browser{}
	for _, role := range []gatehouse.Role{
		gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAuditor, gatehouse.RoleViewer,
		gatehouse.RoleAdmin,
	} {
		people[role] = w.signIn("p-"+string(role), role)
	}
	stranger := w.stranger()
	stranger.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	seen := 0
	for _, rt := range console.Routes(w.console) {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if path == "/events/changes" || strings.HasPrefix(path, "/signin") || path == "/signout" || path == "/{$}" {
			continue // tested by themselves
		}
		seen++
		own := fill(path, a.ID)
		if !rt.Public {
			p := stranger.do(stranger.request(method, own, url.Values{}))
			p.headers()
			if p.status != http.StatusSeeOther || !strings.HasPrefix(p.header.Get("Location"), "/signin") {
				t.Errorf("%s to a stranger: %d to %q", rt.Pattern, p.status, p.header.Get("Location"))
			}
		}
		for role, b := range people {
			if method != http.MethodGet && role != gatehouse.RoleViewer {
				continue // their effects are tested page by page
			}
			p := b.do(b.request(method, own, url.Values{}))
			p.headers()
			person := gatehouse.Principal{Roles: []gatehouse.Role{role}}
			entitled := len(rt.Roles) == 0 || slices.ContainsFunc(rt.Roles, person.Has)
			if !entitled && p.status != http.StatusForbidden {
				t.Errorf("%s to %s: %d, want 403", rt.Pattern, role, p.status)
			}
			if p.status >= 500 {
				t.Errorf("%s to %s: %d\n%s", rt.Pattern, role, p.status, p.text())
			}
			if strings.Contains(path, "/actions/{id}") && entitled {
				p := b.do(b.request(method, fill(path, foreign), url.Values{}))
				p.headers()
				if p.status < 400 {
					t.Errorf("%s to %s: another tenant's action answers %d", rt.Pattern, role, p.status)
				}
				p.lacks("OTHER-TENANT")
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d routes were walked", seen)
	}
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending || len(got.Approval.Votes) > 0 {
		t.Errorf("a viewer's requests left the action %s with %d votes", got.Status, len(got.Approval.Votes))
	}
}

// foreignAction is an action of another tenant.
func (w *world) foreignAction() string {
	w.t.Helper()
	if _, err := w.gate.CreateTenant(w.admin, "other"); err != nil {
		w.t.Fatal(err)
	}
	c, err := w.gate.CreatePrincipal(w.foreignAdmin(), gatehouse.NewPrincipal{
		Tenant: "other", Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer},
	})
	must(w.t, err)
	return w.propose(w.as(c), func(p *gatehouse.Proposal) { p.Target.EntityRef = "OTHER-TENANT" }).ID
}

// foreignAdmin is the context of the administrator of the tenant "other"; the first call creates
// both.
func (w *world) foreignAdmin() context.Context {
	w.t.Helper()
	if w.foreign == nil {
		c, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
			Tenant: "other", Name: "other-root", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
		})
		must(w.t, err)
		w.foreign = w.as(c)
	}
	return w.foreign
}

func TestOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	form := url.Values{"decision": {"approved"}, "digest": {string(a.Digest)}}
	for _, header := range [][2]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		r := ana.request(http.MethodPost, "/actions/"+a.ID+"/decide", form)
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set(header[0], header[1])
		p := ana.do(r).want(http.StatusForbidden)
		p.headers()
	}
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Errorf("another site left the action %s", got.Status)
	}
	// A GET with all parameters of a decision decides nothing.
	ana.get("/actions/" + a.ID + "/decide?" + form.Encode()).want(http.StatusNotFound)
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Errorf("a GET left the action %s", got.Status)
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stranger()
	body := b.get("/signin").want(200).body
	start := strings.Index(body, "/assets/")
	css := body[start : start+strings.Index(body[start:], `"`)]
	p := b.get(css).want(200)
	if cache := p.header.Get("Cache-Control"); !strings.Contains(cache, "immutable") {
		t.Errorf("%s: Cache-Control is %q", css, cache)
	}
	for _, name := range []string{"console.css", "console.js", "htmx.min.js"} {
		b.get(css[:strings.LastIndex(css, "/")+1] + name).want(200).headers()
	}
	b.get("/assets/0000000000000000/console.css").want(http.StatusNotFound)
	b.get(css[:strings.LastIndex(css, "/")+1] + "htmx.LICENSE").want(http.StatusNotFound)
}

// TestEveryPostStaysInItsTenant posts ids of another tenant's objects to every route with a wildcard: each
// is refused, and nothing changes in the other tenant.
func TestEveryPostStaysInItsTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := w.foreignAction()
	stranger := w.foreignPerson()
	before := w.foreignState(foreign, stranger)
	form := url.Values{
		"decision": {"approved"}, "digest": {string(before.action.Digest)}, "sure": {"yes"}, "reason": {"x"}, "notes": {"x"},
		"outcome": {"applied"},
		"change":  {"{}"}, "rationale": {"x"}, "roles": {"admin"}, "role": {"admin"}, "name": {"x"},
	}
	seen := 0
	for _, role := range gatehouse.Roles() {
		if role == gatehouse.RoleWorker || role == gatehouse.RoleEvaluator {
			continue // not for people
		}
		b := w.signIn("p-"+string(role), role)
		for _, rt := range console.Routes(w.console) {
			method, path, _ := strings.Cut(rt.Pattern, " ")
			// Each tenant has a version 1 of its policy, and this world has every connector.
			if method != http.MethodPost || !strings.Contains(path, "{") || strings.Contains(path, "{version}") ||
				strings.Contains(path, "{connector}") {
				continue
			}
			for _, id := range []string{foreign, stranger, before.action.Approval.ID, "other-person", before.keys[0].ID} {
				seen++
				p := b.do(b.request(method, fillAll(path, id), form))
				if p.status < 400 {
					t.Errorf("%s to %s with %s: %d\n%s", rt.Pattern, role, id, p.status, p.text())
				}
				p.lacks("OTHER-TENANT", "other-person")
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d posts", seen)
	}
	if after := w.foreignState(foreign, stranger); !reflect.DeepEqual(before, after) {
		t.Errorf("the other tenant was changed: %+v, before %+v", after, before)
	}
}

// TestEveryGetStaysInItsTenant requests another tenant's objects by path and by query: a path with the
// id is refused, and no page shows the objects.
func TestEveryGetStaysInItsTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := w.foreignAction()
	stranger := w.foreignPerson()
	before := w.foreignState(foreign, stranger)
	seen := 0
	for _, role := range gatehouse.Roles() {
		if role == gatehouse.RoleWorker || role == gatehouse.RoleEvaluator {
			continue // not for people
		}
		b := w.signIn("p-"+string(role), role)
		for _, id := range []string{foreign, stranger, before.action.Approval.ID} {
			for _, rt := range console.Routes(w.console) {
				method, path, _ := strings.Cut(rt.Pattern, " ")
				if method != http.MethodGet || !strings.Contains(path, "{id}") && !strings.Contains(path, "{principal}") {
					continue
				}
				seen++
				p := b.get(fillAll(path, id)).lacks("OTHER-TENANT", "other-person")
				if p.status < 400 {
					t.Errorf("%s to %s with %s: %d", rt.Pattern, role, id, p.status)
				}
			}
			for _, path := range []string{"/inbox?tab=team&open=", "/inbox?tab=team&q=", "/inbox/bulk?pick=", "/search?q=",
				"/policies/explain?action=", "/insights?by=", "/audit?after="} {
				b.get(path+id).lacks("OTHER-TENANT", "other-person")
			}
		}
		for _, path := range []string{"/inbox?tab=team", "/inbox?tab=team&q=OTHER", "/insights", "/audit",
			"/dispatch?tab=queue", "/settings/principals", "/policies"} {
			p := b.get(path)
			if strings.Contains(p.body, foreign) || strings.Contains(p.body, stranger) {
				t.Errorf("%s to %s shows another tenant's id", path, role)
			}
			p.lacks("OTHER-TENANT", "other-person")
		}
	}
	if seen < 60 {
		t.Errorf("only %d pages", seen)
	}
}

// otherTenant holds the objects of another tenant that a form could change.
type otherTenant struct {
	action *gatehouse.Action
	person *gatehouse.Principal
	keys   []*gatehouse.Key
}

func (w *world) foreignPerson() string {
	w.t.Helper()
	c, err := w.gate.CreatePrincipal(w.foreignAdmin(), gatehouse.NewPrincipal{
		Tenant: "other", Name: "other-person", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	must(w.t, err)
	return c.ID
}

func (w *world) foreignState(action, person string) (s otherTenant) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), "other", func(tx gatehouse.ReadTx) (err error) {
		if s.action, err = tx.FindAction(action); err != nil {
			return err
		}
		if s.person, err = tx.FindPrincipal(person); err != nil {
			return err
		}
		s.keys, err = tx.ListKeys(person)
		return err
	})
	must(w.t, err)
	return s
}
