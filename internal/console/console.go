package console

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Config is what a [Console] is made of. The services, Sessions and Log are
// needed; the rest has defaults.
type Config struct {
	Actions  gatehouse.ActionService
	Dispatch gatehouse.DispatchService
	Admin    gatehouse.AdminService
	Policies gatehouse.PolicyService
	Audit    gatehouse.AuditService
	Runs     RunKeeper
	// Notices tells administrators of changes to rights and rules.
	Notices gatehouse.NoticeService
	// Notifications shows what was told to whom.
	Notifications gatehouse.NotificationService
	// Reviews opens and decides reviews by link; nil leaves their pages out.
	Reviews gatehouse.ReviewService
	// Slack links people to their Slack users.
	Slack gatehouse.SlackService
	// Delegations lets people answer for each other; nil leaves its page out.
	Delegations Delegations
	// Grants lets people approve in advance; nil leaves its page out.
	Grants Grants
	// LogChecker verifies the log from the inside.
	LogChecker LogChecker
	// PolicyChecker lints and tests policies that are not stored.
	PolicyChecker PolicyChecker
	Statistics    gatehouse.InsightService
	// Targets reads what a change would meet at its target now.
	Targets TargetReader

	// Browser keeps the sessions, SignIn runs the ceremonies, Sessions lists
	// and ends sessions.
	Browser  gatehouse.BrowserService
	SignIn   gatehouse.SignInService
	Sessions gatehouse.SessionService
	// Self is what people do with their own secrets, Views keeps their lists.
	Self  Self
	Views Views
	// Hints wakes the pages that are open; nil means that they poll.
	Hints Hints
	Log   *slog.Logger
	// PublicURL is how browsers reach the console, "" when nobody said: then
	// links name the host that was asked. Where it is https, be it through a
	// proxy, the session's cookie is sent over https only.
	PublicURL string
	// TLS says that browsers reach the console over HTTPS where PublicURL is "".
	TLS bool
	// Development serves the page of the design, for those who change it.
	Development bool
	// Now is the clock of what is displayed, never of what is decided.
	Now func() time.Time
}

// Hints is what tells the console that something changed.
type Hints interface {
	// Subscribe returns a channel that receives after a change of any of the
	// topics, and a function that ends the subscription.
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Console serves the pages. It is an http.Handler for all of them.
type Console struct {
	secure   bool
	cfg      Config
	log      *slog.Logger
	assets   *assets
	nav      []navItem
	handler  http.Handler
	streams  streams
	presence presence
	reads    *readings
	// bodyTime is how long a request's body may take, heartbeat how often a
	// stream that says nothing shows that it is there.
	bodyTime, heartbeat time.Duration
}

// navItem is an entry of the navigation. Key is the letter after g.
type navItem struct {
	Path, Label, Key string
	roles            []gatehouse.Role
}

// navigation lists the sections in their order. An entry is shown when a route
// serves its path, and to those who may see it.
func navigation() []navItem {
	return []navItem{
		{"/inbox", "Inbox", "i", nil},
		{"/runs", "Runs", "r", nil},
		{"/workflows", "Workflows", "w", nil},
		{"/dispatch", "Dispatch", "d", nil},
		{"/policies", "Policies", "p", nil},
		{"/audit", "Audit", "a", []gatehouse.Role{gatehouse.RoleAuditor}},
		{"/insights", "Insights", "n", nil},
		{"/settings", "Settings", "s", nil},
	}
}

// route is one page or one form's target.
type route struct {
	// pattern is that of http.ServeMux, with its method.
	pattern string
	// roles: any of them is needed; none listed means that a session is enough.
	roles []gatehouse.Role
	// mints says that the form changes rights, credentials or rules: it takes the
	// edit token where the sign-in is not fresh.
	mints bool
	// public routes are served without a session.
	public bool
	// background routes are asked for by open pages, not by people.
	background bool
	handle     func(*view) error
}

// routes lists every route there is, in the order of the sections.
func (c *Console) routes() []route {
	return slices.Concat(
		c.baseRoutes(),
		c.signinRoutes(),
		c.reviewRoutes(),
		c.inboxRoutes(),
		c.actionRoutes(),
		c.runRoutes(),
		c.workflowRoutes(),
		c.dispatchRoutes(),
		c.policyRoutes(),
		c.auditRoutes(),
		c.insightRoutes(),
		c.settingsRoutes(),
		c.viewRoutes(),
		c.designRoutes(),
	)
}

// New makes a console. It fails on a configuration that lacks something.
func New(cfg Config) (*Console, error) {
	switch {
	case cfg.Actions == nil, cfg.Dispatch == nil, cfg.Admin == nil, cfg.Policies == nil, cfg.Audit == nil,
		cfg.Runs == nil, cfg.LogChecker == nil, cfg.PolicyChecker == nil, cfg.Statistics == nil, cfg.Notices == nil,
		cfg.Notifications == nil, cfg.Targets == nil, cfg.Slack == nil:
		return nil, errors.New("console: a service is missing")
	case cfg.Browser == nil, cfg.SignIn == nil, cfg.Sessions == nil, cfg.Self == nil, cfg.Views == nil:
		return nil, errors.New("console: a service of sessions is missing")
	case cfg.Log == nil:
		return nil, errors.New("console: the logger is missing")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	a, err := loadAssets()
	if err != nil {
		return nil, err
	}
	c := &Console{cfg: cfg, secure: strings.HasPrefix(cfg.PublicURL, "https://") || cfg.TLS && cfg.PublicURL == "", log: cfg.Log, assets: a, reads: newReadings(), bodyTime: bodyTime, heartbeat: heartbeat}
	mux := http.NewServeMux()
	served := make(map[string]bool)
	for _, rt := range c.routes() {
		mux.Handle(rt.pattern, c.serve(rt))
		served[rt.pattern] = true
	}
	for _, item := range navigation() {
		if served["GET "+item.Path] {
			c.nav = append(c.nav, item)
		}
	}
	mux.Handle("GET /assets/", a)
	mux.Handle("/", c.serve(route{public: true, handle: func(*view) error {
		return gatehouse.E(gatehouse.CodeNotFound, "there is no such page")
	}}))
	c.handler = c.guard(mux)
	return c, nil
}

// ServeHTTP serves the pages.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// baseRoutes are those that belong to no section.
func (c *Console) baseRoutes() []route {
	return []route{
		{pattern: "GET /{$}", public: true, handle: func(v *view) error { return v.redirect("/inbox") }},
		{pattern: "POST /preferences", public: true, handle: c.savePreferences},
		{pattern: "GET /help", handle: c.help},
		{pattern: "GET /search", handle: c.search},
		{pattern: "GET " + changesPath, background: true, handle: c.changes},
	}
}
