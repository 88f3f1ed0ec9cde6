package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Config configures a [Console]. Log is required, and so is every service whose comment does not
// mention nil.
type Config struct {
	Actions  gatehouse.ActionService
	Finder   Finder
	Dispatch gatehouse.DispatchService
	Admin    gatehouse.AdminService
	Policies gatehouse.PolicyService
	Audit    gatehouse.AuditService
	Runs     RunKeeper
	// Notices lists changes of rights and rules for administrators.
	Notices gatehouse.NoticeService
	// Notifications lists the messages sent, with their recipients.
	Notifications gatehouse.NotificationService
	// Reviews opens and decides reviews by link; nil leaves those pages out.
	Reviews gatehouse.ReviewService
	// Slack links people to their Slack users.
	Slack gatehouse.SlackService
	// Delegations lets people delegate their answers; nil leaves its page out.
	Delegations Delegations
	// Connectors shows the connectors of the server; nil leaves its page out.
	Connectors Connectors
	// ConnectorStore changes the connectors of the store; nil leaves its forms out.
	ConnectorStore gatehouse.ConnectorService
	// Secrets manages the secrets of the store; nil leaves its page out.
	Secrets gatehouse.SecretService
	// Grants lets people approve in advance; nil leaves its page out.
	Grants Grants
	// Devices lets people manage the browsers that get their notifications; nil leaves its page out.
	Devices Devices
	// Preferences lets people choose their messages; nil leaves that part of the devices page out.
	Preferences gatehouse.PreferenceService
	// Unsubscribe serves the unsubscribe links in digests; nil leaves its page out.
	Unsubscribe gatehouse.UnsubscribeService
	// Mandates lets people stop plans that they approved in advance; nil leaves its page out.
	Mandates Mandates
	// LogChecker verifies the audit log.
	LogChecker LogChecker
	// PolicyChecker lints and tests policies that are not stored yet.
	PolicyChecker PolicyChecker
	Statistics    gatehouse.InsightService
	// Targets reads targets, and asks them for previews.
	Targets TargetReader

	// Browser stores the sessions, SignIn runs OIDC and passkey sign-ins, Sessions lists and ends
	// sessions.
	Browser  gatehouse.BrowserService
	SignIn   gatehouse.SignInService
	Sessions gatehouse.SessionService
	// Self lets people manage their own secrets, Views stores their saved lists.
	Self  Self
	Views Views
	// Snoozes hides items from a person's own inbox; nil leaves that out.
	Snoozes Snoozes
	// Hints wakes open pages after a change; with nil, the pages poll.
	Hints Hints
	Log   *slog.Logger
	// PublicURL is the console's address for browsers; if "", links use the host of the request. With an
	// https address, also behind a proxy that ends TLS, the session cookie is sent over https only.
	PublicURL string
	// TLS says that browsers use HTTPS although PublicURL is "".
	TLS bool
	// Development serves the page with the design tokens, for developers.
	Development bool
	// Now is the clock for displayed times; no decision depends on it.
	Now func() time.Time
}

// Finder reads the actions of a list together.
type Finder interface {
	// FindActions returns the actions with these ids, by id, without those that the caller may not read.
	FindActions(ctx context.Context, ids []string) (map[string]*gatehouse.Action, error)
}

// Hints announces changes to the console.
type Hints interface {
	// Subscribe returns a channel that receives after a change in any of the topics, and a function
	// that ends the subscription.
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Console is the http.Handler for all pages.
type Console struct {
	secure      bool
	cfg         Config
	log         *slog.Logger
	assets      *assets
	nav         []navItem
	served      map[string]route // by pattern
	handler     http.Handler
	streams     streams
	presence    presence
	targetReads *readings // of targets, each kept for readAgain
	// bodyTime limits how long a request's body may take; heartbeat is the interval of the
	// keep-alive messages of an idle stream.
	bodyTime, heartbeat time.Duration
}

// navItem is an entry of the navigation. Key is its shortcut after "g".
type navItem struct {
	Path, Label, Key string
	roles            []gatehouse.Role
}

// navigation lists the sections in order. An entry is shown if a route serves its path and the
// person has one of its roles.
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

// route is a page or the target of a form.
type route struct {
	// pattern is a pattern of http.ServeMux, with the method.
	pattern string
	// roles are the permitted roles, of which the person needs one; empty permits everybody who is
	// signed in.
	roles []gatehouse.Role
	// changesRights marks a form that changes rights, credentials or rules. The services behind it require a
	// fresh sign-in or the form's edit token, which showEditToken passes on.
	changesRights bool
	// public routes are served without a session.
	public bool
	// background marks requests that do not keep a session alive: those of an open page's script, and those of
	// links in messages.
	background bool
	handle     func(*view) error
}

func (c *Console) routes() []route {
	return slices.Concat(
		c.baseRoutes(),
		c.signinRoutes(),
		c.reviewRoutes(),
		c.unsubscribeRoutes(),
		c.inboxRoutes(),
		c.actionRoutes(),
		c.conversationRoutes(),
		c.runRoutes(),
		c.workflowRoutes(),
		c.dispatchRoutes(),
		c.policyRoutes(),
		c.auditRoutes(),
		c.insightRoutes(),
		c.settingsRoutes(),
		c.viewRoutes(),
		c.docRoutes(),
		c.designRoutes(),
	)
}

// New makes a console. It returns an error if a required service or the log is missing.
func New(cfg Config) (*Console, error) {
	switch {
	case cfg.Actions == nil, cfg.Dispatch == nil, cfg.Admin == nil, cfg.Policies == nil, cfg.Audit == nil,
		cfg.Runs == nil, cfg.LogChecker == nil, cfg.PolicyChecker == nil, cfg.Statistics == nil, cfg.Notices == nil,
		cfg.Notifications == nil, cfg.Targets == nil, cfg.Slack == nil, cfg.Browser == nil, cfg.SignIn == nil,
		cfg.Sessions == nil, cfg.Self == nil, cfg.Views == nil, cfg.Finder == nil:
		return nil, errors.New("console: a service is missing")
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
	c := &Console{cfg: cfg, secure: strings.HasPrefix(cfg.PublicURL, "https://") || cfg.TLS && cfg.PublicURL == "",
		log: cfg.Log, assets: a, targetReads: newReadings(), bodyTime: bodyTime, heartbeat: heartbeat}
	mux := http.NewServeMux()
	c.served = make(map[string]route)
	for _, rt := range c.routes() {
		mux.Handle(rt.pattern, c.serve(rt))
		c.served[rt.pattern] = rt
	}
	for _, item := range navigation() {
		if _, ok := c.served["GET "+item.Path]; ok {
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

func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// baseRoutes are the routes that belong to no section.
func (c *Console) baseRoutes() []route {
	return []route{
		{pattern: "GET /{$}", public: true, handle: func(v *view) error { return v.redirect("/inbox") }},
		{pattern: "POST /preferences", public: true, handle: c.savePreferences},
		{pattern: "GET /help", handle: c.help},
		{pattern: "GET /search", handle: c.search},
		{pattern: "GET /palette", handle: c.palette},
		{pattern: "GET " + changesPath, background: true, handle: c.changes},
	}
}
