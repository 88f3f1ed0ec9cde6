package console_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/api"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// linked is a world that also serves the API and captures the log. The approvers ana and ben are signed in; link
// makes their review links.
type linked struct {
	*world
	logs     *bytes.Buffer
	bot      context.Context
	ana, ben *browser
	api      *browser // without a session; call uses it
}

func newLinked(t *testing.T) *linked {
	t.Helper()
	w := &linked{world: newWorld(t), logs: &bytes.Buffer{}}
	cfg := w.config
	cfg.Log = slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	pages, err := console.New(cfg)
	must(t, err)
	server, err := api.New(api.Config{
		Actions: w.gate, Dispatch: w.gate, Admin: w.gate, Policies: w.gate, Audit: w.gate, Sessions: w.gate, Auth: w.gate,
		Lookup: w.gate, Notices: w.gate, LinkKeys: w.gate, Reviews: w.gate, PublicURL: "https://gate.example",
		Logger: cfg.Log,
	})
	must(t, err)
	mux := http.NewServeMux()
	server.Mount(mux)
	mux.Handle("/", pages)
	w.server.Config.Handler = mux
	w.bot, w.api = w.agent("bot"), w.stranger()
	// ana signs in before the first link key exists, so she has no known device.
	w.ana, w.ben = w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	return w
}

// link returns the review link of an action for a person, as a mail has it.
func (w *linked) link(a *gatehouse.Action, to *browser) *gatehouse.ReviewLink {
	w.t.Helper()
	p, err := w.gate.Authenticate(w.t.Context(), to.creds.Key)
	must(w.t, err)
	l, err := w.gate.ReviewLink(w.t.Context(), a, p)
	if err != nil || l == nil {
		w.t.Fatalf("no link: %v", err)
	}
	return l
}

func pathOf(l *gatehouse.ReviewLink, d gatehouse.DecisionKind) string {
	return gatehouse.ReviewPath(l.ID, d) + "?token=" + l.Token
}

var nonces = regexp.MustCompile(`name="nonce" value="([^"]+)"`)

// send opens the page and posts one of its forms.
func (w *linked) send(b *browser, l *gatehouse.ReviewLink, d gatehouse.DecisionKind, fields ...string) *page {
	w.t.Helper()
	nonce := "none"
	if m := nonces.FindStringSubmatch(b.get(pathOf(l, d)).body); m != nil {
		nonce = m[1]
	}
	return b.post(gatehouse.ReviewPath(l.ID, d), append([]string{"token", l.Token, "nonce", nonce}, fields...)...)
}

// call calls the API, without credentials if b is nil.
func (w *linked) call(method, path string, b *browser, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+"/api/v1"+path, strings.NewReader(body))
	must(w.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if b != nil {
		r.Header.Set("Authorization", "Bearer "+b.creds.Key)
	}
	p := w.api.do(r)
	code := regexp.MustCompile(`"code":"([a-z_]+)"`).FindStringSubmatch(p.body)
	if code == nil {
		return p.status, p.body
	}
	return p.status, code[1]
}

// allowCodes applies a policy in which codes decide up to a level.
func (w *linked) allowCodes(upTo int) {
	w.t.Helper()
	source := strings.Replace(string(policy.DefaultSource()), "version: 1\n",
		fmt.Sprintf("version: 1\nlinks: {decide_up_to: %d}\n", upTo), 1)
	if _, err := w.gate.ApplyPolicy(w.admin, source); err != nil {
		w.t.Fatal(err)
	}
}

func (w *linked) status(a *gatehouse.Action, want gatehouse.Status) *gatehouse.Action {
	w.t.Helper()
	now := w.action(a.ID)
	if now.Status != want {
		w.t.Fatalf("the action is %s, want %s", now.Status, want)
	}
	return now
}

// stored dumps every row of every table.
func (w *linked) stored() string {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "gatehouse.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	must(w.t, err)
	defer db.Close()
	rows := func(query string, each func(row []any)) {
		list, err := db.QueryContext(w.t.Context(), query)
		must(w.t, err)
		defer list.Close()
		columns, err := list.Columns()
		must(w.t, err)
		for list.Next() {
			row, to := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				to[i] = &row[i]
			}
			must(w.t, list.Scan(to...))
			each(row)
		}
		must(w.t, list.Err())
	}
	var all strings.Builder
	var tables []string
	rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name", func(row []any) {
		tables = append(tables, fmt.Sprint(row[0]))
	})
	for _, table := range tables {
		rows("SELECT * FROM "+table+" ORDER BY 1", func(row []any) { fmt.Fprintf(&all, "%s %q\n", table, row) })
	}
	if !strings.Contains(all.String(), "review ") {
		w.t.Fatal("the dump has no reviews")
	}
	return all.String()
}

// TestReviewBySession decides by a link in a browser with the recipient's session.
func TestReviewBySession(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	if again := w.link(a, w.ana); again.ID != l.ID || again.Token != l.Token {
		t.Error("a mail that is sent again has another link")
	}
	if l.Code != "" {
		t.Error("there is a code that the policy does not allow")
	}
	p := w.ana.get(pathOf(l, "")).want(http.StatusOK).has("SKU-1042", "12.50", "The agent&#39;s own words. Not verified.",
		"supplier raised", "Reject")
	p.lacks("data-key", "open data-testid").has("data-review=")
	stranger := w.stranger().get(pathOf(l, "")).lacks("<script", "data-review=")
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; form-action " +
			"'self'; frame-ancestors 'none'; base-uri 'none'",
	} {
		if got := stranger.header.Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	w.ana.get(pathOf(l, gatehouse.Reject)).has(`open data-testid="review-rejected"`).lacks(
		`open data-testid="review-approved"`)
	// Without a session, the page asks to sign in and offers no decision.
	w.stranger().get(pathOf(l, gatehouse.Approve)).want(http.StatusOK).has("SKU-1042", testid("sign-in")).lacks("<form",
		"nonce")
	w.ben.get(pathOf(l, gatehouse.Approve)).want(http.StatusForbidden).has("not_yours").lacks("SKU-1042", "<form")

	w.send(w.ana, l, gatehouse.Reject).want(http.StatusUnprocessableEntity).has("Say why")
	w.send(w.ana, l, gatehouse.Approve, "reason", "fine").want(http.StatusOK).has("Approved")
	done := w.status(a, gatehouse.StatusApproved)
	if done.DecidedVia != gatehouse.ViaLink || done.DecidedBy != "ana" || done.Approval.Votes[0].Notes != "fine" {
		t.Errorf("decided via %s by %s: %+v", done.DecidedVia, done.DecidedBy, done.Approval.Votes)
	}
	w.stranger().get(pathOf(l, "")).want(http.StatusOK).has(`data-state="decided"`, "Decided by ana").lacks("<form")
	w.send(w.ana, l, gatehouse.Approve).want(http.StatusForbidden) // the page no longer has a form
	w.number()
	completed := 0
	entries, err := w.gate.ListEntries(w.admin, 0, 200)
	must(t, err)
	for _, e := range entries {
		if strings.Contains(string(e.Body), l.Token) {
			t.Error("the log has the token")
		}
		if strings.Contains(string(e.Body), `"review.completed"`) {
			completed++
		}
	}
	if completed != 1 {
		t.Errorf("%d entries say that the review is completed", completed)
	}
}

// TestReviewMatrix decides over the API with valid and invalid tokens, as several callers, and in each state of a
// review.
func TestReviewMatrix(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	approve := func(id, token string) string { return "/reviews/" + id + "/approve?token=" + token }
	want := func(what string, status int, code string, path string, b *browser, body string) {
		t.Helper()
		got, text := w.call("POST", path, b, body)
		if got != status || text != code {
			t.Errorf("%s: %d %s, want %d %s", what, got, text, status, code)
		}
	}
	first := w.propose(w.bot, nil)
	old, bens := w.link(first, w.ana), w.link(first, w.ben)
	keys, err := w.gate.ListLinkKeys(w.admin)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	if _, err := w.gate.RotateLinkKeys(w.admin); err != nil {
		t.Fatal(err)
	}
	second := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	fresh := w.link(second, w.ana)
	if old.Token[:12] == fresh.Token[:12] {
		t.Fatal("the new link is signed by the old key")
	}
	// No caller, the wrong caller, a token of another review, another recipient's token, an altered
	// token.
	want("nobody", 403, "sign_in_required", approve(old.ID, old.Token), nil, "")
	want("another", 403, "sign_in_required", approve(old.ID, old.Token), w.ben, "")
	want("a code that nobody asked for", 403, "sign_in_required", approve(old.ID, old.Token), nil, `{"code":"234567"}`)
	want("a swapped review", 401, "bad_token", approve(old.ID, fresh.Token), w.ana, "")
	want("a swapped recipient", 401, "bad_token", approve(bens.ID, old.Token), w.ana, "")
	want("an altered token", 401, "bad_token", approve(old.ID, old.Token[:len(old.Token)-2]+"AA"), w.ana, "")
	want("no token", 401, "bad_token", "/reviews/"+old.ID+"/approve", w.ana, "")
	want("an unknown review", 401, "bad_token", approve("rev_none", old.Token), w.ana, "")
	want("a wrong API key", 401, "unauthenticated", approve(old.ID, old.Token),
		&browser{creds: &gatehouse.Credentials{Key: "gth_x"}}, "")
	want("a body with an unknown member", 400, "malformed", approve(old.ID, old.Token), w.ana, `{"other":1}`)
	w.status(first, gatehouse.StatusPending)
	// The old key still verifies. The reason may be in the query, as the token is.
	want("the old key", 200, "decided", "/reviews/"+old.ID+"/reject?token="+old.Token+"&reason=too+much", w.ana, "")
	if v := w.status(first, gatehouse.StatusRejected).Approval.Votes[0]; v.Notes != "too much" {
		t.Errorf("the reason is %q", v.Notes)
	}
	want("reused", 409, "already_decided", approve(old.ID, old.Token), w.ana, "")
	want("the same again", 409, "already_decided", "/reviews/"+old.ID+"/reject?token="+old.Token, w.ana, "")
	want("the other recipient's link", 409, "already_decided", approve(bens.ID, bens.Token), w.ben, "")
	// Revoking a key invalidates its links and no others.
	if _, err := w.gate.RevokeLinkKey(w.admin, keys[0].ID); err != nil {
		t.Fatal(err)
	}
	want("a revoked key", 401, "bad_token", approve(bens.ID, bens.Token), w.ben, "")
	w.stranger().get(pathOf(bens, "")).want(http.StatusGone).has(`data-state="revoked"`).lacks("SKU-1042")
	if status, body := w.call("GET", "/reviews/"+fresh.ID+"?token="+fresh.Token, nil, ""); status != 200 ||
		!strings.Contains(body, `"state":"pending"`) ||
		!strings.Contains(body, "https://gate.example/review/"+fresh.ID+"/approve?token=") {
		t.Errorf("the new key's link: %d %s", status, body)
	}
	want("the new key", 200, "decided", approve(fresh.ID, fresh.Token), w.ana, `{"reason":"ok"}`)

	// The recipient loses the right.
	third := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-3" })
	lost := w.link(third, w.ben)
	viewer := []gatehouse.Role{gatehouse.RoleViewer}
	if _, err := w.gate.UpdatePrincipal(w.admin, "ben", gatehouse.PrincipalChange{Roles: &viewer}); err != nil {
		t.Fatal(err)
	}
	want("a right that is lost", 403, "role_required", approve(lost.ID, lost.Token), w.ben, "")
	w.stranger().get(pathOf(lost, "")).want(http.StatusForbidden).lacks("SKU-3")

	// A newer revision, and the expiry.
	revised := w.link(third, w.ana)
	if _, err := w.gate.Revise(w.bot, third.ID, priceChange()); err != nil {
		t.Fatal(err)
	}
	w.stranger().get(pathOf(revised, "")).has(`data-state="superseded"`, "newer revision")
	want("superseded", 409, "already_decided", approve(revised.ID, revised.Token), w.ana, "")
	fourth := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-4" })
	late := w.link(fourth, w.ana)
	w.advance(time.Until(late.ExpiresAt) + time.Minute)
	w.stranger().get(pathOf(late, "")).want(http.StatusGone).has(`data-state="expired"`)
	want("expired", 410, "link_expired", approve(late.ID, late.Token), w.ana, "")
}

// TestReviewLastsAsLongAsItsQuestion: if a time-out extends a question, links mailed earlier stay
// valid until the end of the extension.
func TestReviewLastsAsLongAsItsQuestion(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	const source = "version: 1\napprovals:\n  3: {required: 1, expiry: 1h, on_timeout: {extend: 2h}}\n"
	if _, err := w.gate.ApplyPolicy(w.admin, source); err != nil {
		t.Fatal(err)
	}
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	if !l.ExpiresAt.Equal(a.Approval.ExpiresAt.Add(2 * time.Hour)) {
		t.Errorf("the link ends at %s, want two hours after %s, the end of the question",
			l.ExpiresAt, a.Approval.ExpiresAt)
	}
	w.advance(90 * time.Minute)
	w.stranger().get(pathOf(l, "")).want(http.StatusOK).has(`data-state="pending"`)
}

// TestReviewKeyRevokedMeanwhile: a decision that passed the check before its key was revoked is not
// stored after the revocation.
func TestReviewKeyRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	keys, err := w.gate.ListLinkKeys(w.admin)
	must(t, err)
	if _, err := w.gate.RevokeLinkKey(w.admin, keys[0].ID); err != nil {
		t.Fatal(err)
	}
	p, err := w.gate.Authenticate(t.Context(), w.ana.creds.Key)
	must(t, err)
	ctx := gatehouse.NewContext(t.Context(), &gatehouse.Caller{
		Principal: p, StepUp: true, Via: gatehouse.ViaLink, Link: &gatehouse.LinkProof{Review: l.ID, Key: keys[0].Number},
	})
	_, err = w.gate.Decide(ctx, a.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest})
	if gatehouse.CodeOf(err) != gatehouse.CodeBadToken {
		t.Errorf("decided by a revoked link: %v", err)
	}
	w.status(a, gatehouse.StatusPending)
}

// TestReviewByCode decides with the code from the mail, if the policy permits it.
func TestReviewByCode(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	w.allowCodes(3)
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	if l.Code == "" {
		t.Fatal("there is no code")
	}
	phone := w.stranger()
	phone.get(pathOf(l, gatehouse.Approve)).want(http.StatusOK).has(testid("code")).lacks(l.Code)
	w.send(phone, l, gatehouse.Approve, "code", "").want(http.StatusForbidden)
	before := w.stored()
	w.send(phone, l, gatehouse.Approve, "code", "123456").want(http.StatusForbidden).has("not a code")
	if w.stored() != before {
		t.Error("an invalid code changes the store")
	}
	wrong := "222222"
	if l.Code == wrong {
		wrong = "333333"
	}
	w.send(phone, l, gatehouse.Approve, "code", wrong).want(http.StatusForbidden).has("4 of 5 tries are left")
	// The form of a page can be sent once, even if the code is wrong.
	used := nonces.FindStringSubmatch(phone.get(pathOf(l, gatehouse.Approve)).body)[1]
	for _, c := range []struct{ code, answer string }{{wrong, "3 of 5 tries are left"}, {l.Code, "was sent before"}} {
		phone.post(gatehouse.ReviewPath(l.ID, gatehouse.Approve), "token", l.Token, "nonce", used, "code", c.code).
			want(http.StatusForbidden).has(c.answer)
	}
	// The right code is refused without the page's cookie, and if the browser does not say that the form is from
	// this origin.
	nonce := nonces.FindStringSubmatch(phone.get(pathOf(l, gatehouse.Approve)).body)[1]
	form := []string{"token", l.Token, "nonce", nonce, "code", l.Code}
	w.stranger().post(gatehouse.ReviewPath(l.ID, gatehouse.Approve), form...).want(http.StatusForbidden)
	for _, site := range []string{"cross-site", "same-site", "none", ""} {
		r := phone.request(http.MethodPost, gatehouse.ReviewPath(l.ID, gatehouse.Approve), map[string][]string{
			"token": {l.Token}, "nonce": {nonce}, "code": {l.Code},
		})
		r.Header.Del("Sec-Fetch-Site")
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		if p := phone.do(r); p.status != http.StatusForbidden {
			t.Errorf("from %q: %d", site, p.status)
		}
	}
	w.status(a, gatehouse.StatusPending)
	phone.post(gatehouse.ReviewPath(l.ID, gatehouse.Approve), form...).want(http.StatusOK).has("Approved")
	if w.status(a, gatehouse.StatusApproved).DecidedBy != "ana" {
		t.Error("somebody else decided")
	}
	// After too many wrong codes, even concurrent ones, the right code is refused too.
	b := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	m := w.link(b, w.ana)
	var tries sync.WaitGroup
	for i := range 12 {
		tries.Go(func() {
			code := strings.Repeat(string("BCDFGHJKMNPQ"[i]), 6)
			_, _ = w.gate.DecideReview(t.Context(), m.ID, m.Token,
				gatehouse.ReviewDecision{Decision: gatehouse.Approve, Code: code})
		})
	}
	tries.Wait()
	_, err := w.gate.DecideReview(t.Context(), m.ID, m.Token,
		gatehouse.ReviewDecision{Decision: gatehouse.Approve, Code: m.Code})
	if gatehouse.CodeOf(err) != gatehouse.CodeSignInRequired || !strings.Contains(err.Error(), "too many") {
		t.Errorf("the code after five tries: %v", err)
	}
	w.status(b, gatehouse.StatusPending)
	w.stranger().get(pathOf(m, "")).has(testid("sign-in")).lacks("<form")
	// L4 is never decided by a link, even with a session.
	c := w.propose(w.bot,
		func(p *gatehouse.Proposal) { p.ActionType, p.Target.EntityRef = "propose_create_item", "SKU-9" })
	n := w.link(c, w.ana)
	if n.Code != "" {
		t.Error("an L4 has a code")
	}
	w.ana.get(pathOf(n, "")).want(http.StatusOK).has(testid("cannot")).lacks("<form")
	_, err = w.gate.DecideReview(w.as(w.ana.creds), n.ID, n.Token,
		gatehouse.ReviewDecision{Decision: gatehouse.Reject, Reason: "x"})
	if gatehouse.CodeOf(err) != gatehouse.CodeSignInRequired {
		t.Errorf("an L4 by link: %v", err)
	}
}

// TestReviewByDevice uses a browser in which the recipient has signed in before.
func TestReviewByDevice(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	w.allowCodes(3)
	a := w.propose(w.bot, nil)
	w.link(a, w.ana) // makes sure that a key exists
	laptop := w.stranger()
	setup, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	laptop.post("/setup", "token", setup.Token).want(http.StatusOK)
	w.advance(gatehouse.SessionIdle + time.Minute) // the session has expired
	b := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	l, bens := w.link(b, w.ana), w.link(b, w.ben)
	laptop.get(pathOf(l, "")).lacks(testid("code"))
	laptop.get(pathOf(bens, "")).has(testid("code")) // the device does not belong to ben
	w.send(laptop, l, gatehouse.Approve).want(http.StatusOK).has("Approved")
	w.status(b, gatehouse.StatusApproved)
	// Ending the session also forgets the device.
	sessions, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{Principal: "ana", Ended: true})
	must(t, err)
	c := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-3" })
	m := w.link(c, w.ana)
	laptop.get(pathOf(m, "")).lacks(testid("code"))
	for _, s := range sessions.Items {
		_, err = w.gate.RevokeSession(w.admin, s.ID)
		must(t, err)
	}
	laptop.get(pathOf(m, "")).has(testid("code"))
}

// TestReviewIsInert sends many GET, HEAD and OPTIONS requests, and unauthorized posts; each row of the store
// stays the same.
func TestReviewIsInert(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	w.allowCodes(3)
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	w.number()
	before := w.stored()
	paths := []string{pathOf(l, ""), pathOf(l, gatehouse.Approve), pathOf(l, gatehouse.Reject),
		"/api/v1/reviews/" + l.ID + "?token=" + l.Token}
	work := make(chan string, 64)
	var busy sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{} // by method and status
	for range 8 {
		busy.Go(func() {
			b := w.stranger()
			for job := range work {
				method, path, _ := strings.Cut(job, " ")
				r := b.request(method, path, nil)
				status := b.do(r).status
				mu.Lock()
				answers[fmt.Sprint(method, " ", status)]++
				mu.Unlock()
			}
		})
	}
	requests := 240 // twenty of each kind
	if os.Getenv("GATEHOUSE_STORM") == "long" {
		requests = 10_000
	}
	for i := range requests {
		work <- []string{"GET", "HEAD", "OPTIONS"}[i%3] + " " + paths[(i/3)%len(paths)]
	}
	close(work)
	busy.Wait()
	if answers["GET 200"] < 80 || answers["HEAD 200"] < 80 {
		t.Errorf("too few pages were read: %v", answers)
	}
	for answer := range answers {
		if _, status, _ := strings.Cut(answer, " "); status >= "500" {
			t.Errorf("%s: %d times", answer, answers[answer])
		}
	}
	b := w.stranger()
	for _, d := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
		w.send(b, l, d, "reason", "yes", "code", "test").want(http.StatusForbidden)
		w.stranger().post(gatehouse.ReviewPath(l.ID, d), "token", l.Token).want(http.StatusForbidden)
	}
	// A prefetching browser gets no nonce.
	for _, header := range []string{"Sec-Purpose", "Purpose"} {
		r := b.request(http.MethodGet, paths[1], nil)
		r.Header.Set(header, "prefetch;prerender")
		if p := w.stranger().do(r); nonces.MatchString(p.body) || p.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: there is a nonce", header)
		}
	}
	if w.stored() != before {
		t.Error("the store has changed")
	}
	w.status(a, gatehouse.StatusPending)
	if strings.Contains(w.logs.String(), l.Token) {
		t.Error("the logs have the token")
	}
}

// TestReviewRace decides by link and without a link concurrently: exactly one decision is stored.
func TestReviewRace(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	for i := range 10 {
		a := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = fmt.Sprint("SKU-", i) })
		l := w.link(a, w.ana)
		var both sync.WaitGroup
		results := make([]error, 2)
		both.Go(func() {
			_, results[0] = w.gate.DecideReview(w.as(w.ana.creds), l.ID, l.Token,
				gatehouse.ReviewDecision{Decision: gatehouse.Approve})
		})
		both.Go(func() {
			_, results[1] = w.gate.Decide(w.as(w.ben.creds), a.ID, gatehouse.Decision{Decision: gatehouse.Reject, Notes: "no"})
		})
		both.Wait()
		if (results[0] == nil) == (results[1] == nil) {
			t.Fatalf("not exactly one of the two decisions was stored: %v", results)
		}
		for _, err := range results {
			if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided {
				t.Errorf("the refused decision: %v", err)
			}
		}
	}
}

// TestReviewHostile shows hostile text as text, and refuses to approve a payload that is too large
// to show.
func TestReviewHostile(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	quoted := gatehouse.StringJSON(hostileText)
	a := w.propose(w.bot, func(p *gatehouse.Proposal) {
		p.ProposedChange = gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: quoted})
		p.Rationale, p.Context = hostileText, gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: quoted})
		p.Evaluations = []gatehouse.Evaluation{{Name: "check", Kind: "human", Result: "pass", Details: hostileText}}
	})
	w.ana.post("/actions/"+a.ID+"/comments", "text", hostileText, "kind", "question").want(http.StatusOK)
	for _, d := range []gatehouse.DecisionKind{"", gatehouse.Approve, gatehouse.Reject} {
		p := w.ana.get(pathOf(w.link(a, w.ana), d)).want(http.StatusOK).
			has("alert(1)", "asks bot", "not answered").lacks("<script>", "<img", "\u202e", "\x1b")
		p.shown("the page of a link")
	}
	large := w.propose(w.bot, func(p *gatehouse.Proposal) {
		p.Target.EntityRef = "SKU-2"
		p.ProposedChange = gatehouse.ObjectJSON(
			gatehouse.Member{Name: "text", Value: gatehouse.StringJSON(strings.Repeat("line\n", 60_000))})
	})
	l := w.link(large, w.ana)
	w.ana.get(pathOf(l, "")).want(http.StatusOK).has(testid("hidden-lock")).lacks(testid("approve"))
	w.send(w.ana, l, gatehouse.Approve).want(http.StatusUnprocessableEntity)
	w.status(large, gatehouse.StatusPending)
}
