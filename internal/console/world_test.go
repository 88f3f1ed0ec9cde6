package console_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// world is a console over a real gate and store, behind a real server.
type world struct {
	t       *testing.T
	gate    *gate.Gate
	runs    *runs.Runs
	store   *sqlite.Store
	hub     *wake.Hub
	dir     string
	server  *httptest.Server
	console *console.Console
	config  console.Config
	admin   context.Context
	foreign context.Context // see foreignAdmin
	mu      sync.Mutex
	drift   bool           // the target was changed elsewhere
	gone    bool           // the target was removed elsewhere
	state   gatehouse.JSON // its new state, where that matters
	ahead   time.Duration  // how far the clock was advanced
	// would is the preview of the target, nil if it supports none; mute keeps it from answering.
	would *gatehouse.Preview
	mute  bool
	// connectors are those in the store.
	connectors *storedConnectors
}

// now is the clock of the store and of the pages.
func (w *world) now() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return time.Now().Add(w.ahead) }

// afterHold lets held rejections take effect.
func (w *world) afterHold() {
	w.t.Helper()
	w.advance(2 * time.Minute)
	if _, err := w.gate.SweepHeld(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// afternoon advances the clock to the next 15:00 UTC, so that no day ends during the test.
func (w *world) afternoon() {
	w.advance((39*time.Hour - w.now().Sub(w.now().Truncate(24*time.Hour))) % (24 * time.Hour))
}

func (w *world) advance(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.ahead += d }

// targets replaces the configured connectors.
type targets struct{ w *world }

func (targets) Describe(string, *gatehouse.Proposal) (string, gatehouse.RiskLevel, time.Duration, error) {
	return "f1", 0, time.Hour, nil
}
func (targets) Declared(string, *gatehouse.Proposal) *gatehouse.Declared { return nil }
func (targets) Lane(string, string) string                               { return "" }
func (targets) Checks(*gatehouse.Action) bool                            { return true }
func (targets) ChecksAny() bool                                          { return true }
func (targets) Validate(*gatehouse.Action) error                         { return nil }

// Reverses: every connector except "once" can reverse.
func (targets) Reverses(_, connector, _ string) bool { return connector != "once" }

func (x targets) Check(context.Context, *gatehouse.Action) (bool, gatehouse.JSON, gatehouse.JSON, bool, error) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	return !x.w.drift, `{"price":"10.00"}`, `{"price":"11.11"}`, true, nil
}

// ReadsState: every connector except "once" can read its state.
func (targets) ReadsState(a *gatehouse.Action) bool { return a.Connector != "once" }

func (x targets) ReadState(context.Context, *gatehouse.Action) (gatehouse.TargetState, error) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	if x.w.gone {
		return gatehouse.TargetState{Gone: true}, nil
	}
	return gatehouse.TargetState{Matches: !x.w.drift, CurrentState: cmp.Or(x.w.state, `{"price":"11.11"}`)}, nil
}

func (x targets) Previews(*gatehouse.Action) bool {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	return x.w.would != nil
}

func (x targets) Preview(context.Context, *gatehouse.Action) (gatehouse.Preview, error) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	if x.w.mute {
		return gatehouse.Preview{}, errors.New("the target is down")
	}
	return *x.w.would, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t)
}

// newWorldWith is newWorld with channels.
func newWorldWith(t *testing.T, channels ...gate.ChannelInfo) *world {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	path := migratedfile.New(t)
	dir := filepath.Dir(path)
	w := &world{t: t, dir: dir, hub: &wake.Hub{}}
	store := migratedfile.Open(t, path, w.now)
	w.store = store
	hold := time.Minute
	w.gate = gate.New(store, targets{w}, w.hub, gate.Config{PolicySource: policy.DefaultSource(), Hold: &hold,
		Master: master(t), Channels: channels}, log)
	w.runs = runs.New(w.gate, runs.Config{})
	creds, err := w.gate.Bootstrap(t.Context())
	must(t, err)
	w.admin = w.as(creds)
	ceremonies, err := signin.New(signin.Config{}, w.gate, log)
	must(t, err)
	w.connectors = &storedConnectors{Gate: w.gate}
	w.config = console.Config{
		Actions: w.gate, Finder: w.gate, Dispatch: w.gate, Admin: w.gate, Policies: w.gate, Audit: w.gate, Runs: w.runs,
		LogChecker: w.gate, PolicyChecker: w.gate, Statistics: w.gate, Notices: w.gate, Notifications: w.gate,
		Reviews: w.gate, Targets: w.gate,
		Slack: w.gate, Delegations: w.gate, Grants: w.gate, Devices: w.gate, Mandates: w.gate,
		Preferences: w.gate, Unsubscribe: w.gate,
		Secrets: w.gate, Connectors: connectors{w.gate}, ConnectorStore: w.connectors,
		Browser: w.gate, Sessions: w.gate, Self: w.gate, Views: w.gate, Snoozes: w.gate,
		SignIn: ceremonies, Hints: w.hub, Log: log, Now: w.now,
	}
	pages, err := console.New(w.config)
	must(t, err)
	w.server, w.console = httptest.NewServer(pages), pages
	t.Cleanup(w.server.Close)
	return w
}

// master encrypts the keys that sign links.
func master(t *testing.T) *ring.Master {
	t.Helper()
	m, err := ring.Parse(ring.NewMasterKey())
	must(t, err)
	return m
}

// public sets the console's public address, as behind a proxy.
func (w *world) public(address string) {
	w.t.Helper()
	cfg := w.config
	cfg.PublicURL = address
	pages, err := console.New(cfg)
	must(w.t, err)
	w.server.Config.Handler = pages
}

// as is a context with the principal of the credentials.
func (w *world) as(c *gatehouse.Credentials) context.Context {
	w.t.Helper()
	p, err := w.gate.Authenticate(w.t.Context(), c.Key)
	must(w.t, err)
	return gatehouse.NewContext(w.t.Context(),
		&gatehouse.Caller{Principal: p, StepUp: c.EditToken != "", Via: gatehouse.ViaAPI})
}

func (w *world) principal(name string, kind gatehouse.Kind, roles ...gatehouse.Role) *gatehouse.Credentials {
	w.t.Helper()
	c, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{Name: name, Kind: kind, Roles: roles})
	must(w.t, err)
	return c
}

// agent is the context of a new agent with the right to propose.
func (w *world) agent(name string) context.Context {
	return w.as(w.principal(name, gatehouse.KindAgent, gatehouse.RoleProposer))
}

// priceChange is an L3 proposal.
func priceChange() *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042", Version: "7"},
		CurrentState: `{"currency":"USD","price":"10.00"}`, ProposedChange: `{"price":"12.50"}`,
		Rationale: "supplier raised cost by 25 %",
	}
}

func (w *world) propose(ctx context.Context, change func(*gatehouse.Proposal)) *gatehouse.Action {
	w.t.Helper()
	p := priceChange()
	if change != nil {
		change(p)
	}
	a, _, err := w.gate.Propose(ctx, p)
	must(w.t, err)
	return a
}

func (w *world) action(id string) *gatehouse.Action {
	w.t.Helper()
	a, err := w.gate.FindAction(w.admin, id)
	must(w.t, err)
	return a
}

// browser is a person's browser without scripts.
type browser struct {
	w      *world
	name   string
	creds  *gatehouse.Credentials
	client *http.Client
	jar    *cookiejar.Jar
}

// page is a response.
type page struct {
	t      *testing.T
	status int
	header http.Header
	url    *url.URL
	body   string
}

// stranger is a browser without a session. It follows redirects.
func (w *world) stranger() *browser {
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	// Closing a test server also closes idle connections of the default transport, which other
	// tests may be using.
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &browser{w: w, jar: jar, client: &http.Client{Jar: jar, Transport: transport, Timeout: 2 * time.Minute}}
}

// signIn creates a person and signs them in with a set-up link.
func (w *world) signIn(name string, roles ...gatehouse.Role) *browser {
	w.t.Helper()
	b := w.stranger()
	b.name, b.creds = name, w.principal(name, gatehouse.KindPerson, roles...)
	link, err := w.gate.CreateSetupLink(w.admin, name)
	must(w.t, err)
	p := b.post("/setup", "token", link.Token)
	p.want(http.StatusOK)
	if p.url.Path != "/inbox" && !slices.Equal(roles, []gatehouse.Role{gatehouse.RoleWorker}) {
		w.t.Fatalf("signing in ended at %s", p.url)
	}
	return b
}

func (b *browser) do(r *http.Request) *page {
	b.w.t.Helper()
	res, err := b.client.Do(r)
	must(b.w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(b.w.t, err)
	return &page{t: b.w.t, status: res.StatusCode, header: res.Header, url: res.Request.URL, body: string(body)}
}

func (b *browser) request(method, path string, form url.Values) *http.Request {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.server.URL+path, strings.NewReader(form.Encode()))
	must(b.w.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func (b *browser) get(path string) *page {
	b.w.t.Helper()
	return b.do(b.request(http.MethodGet, path, nil))
}

// post sends a form as a page of this site does; fields are names and values in turn.
func (b *browser) post(path string, fields ...string) *page {
	b.w.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.do(b.request(http.MethodPost, path, form))
}

func (p *page) want(status int) *page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("%s: status %d, want %d\n%s", p.url, p.status, status, p.text())
	}
	return p
}

var tags = regexp.MustCompile(`(?s)<[^>]*>`)
var spaces = regexp.MustCompile(`\s+`)

// text approximates the text that a person reads.
func (p *page) text() string {
	return strings.TrimSpace(spaces.ReplaceAllString(tags.ReplaceAllString(p.body, " "), " "))
}

func (p *page) has(parts ...string) *page {
	p.t.Helper()
	for _, part := range parts {
		if !strings.Contains(p.body, part) && !strings.Contains(p.text(), part) {
			p.t.Errorf("%s lacks %q:\n%s", p.url, part, p.text())
		}
	}
	return p
}

func (p *page) lacks(parts ...string) *page {
	p.t.Helper()
	for _, part := range parts {
		if strings.Contains(p.body, part) {
			p.t.Errorf("%s has %q:\n%s", p.url, part, p.text())
		}
	}
	return p
}

func testid(id string) string { return `data-testid="` + id + `"` }

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
