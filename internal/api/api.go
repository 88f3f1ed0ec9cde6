package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// Prefix is the path prefix of the API.
const Prefix = "/api/v1"

// Authenticator identifies the holder of a credential.
type Authenticator interface {
	// Authenticate returns the principal of an API key. The error has code unauthenticated if the key is
	// unknown or revoked, or its principal is disabled.
	Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error)
	// CheckEditToken reports whether token is the principal's edit token.
	CheckEditToken(ctx context.Context, p *gatehouse.Principal, token string) (bool, error)
	// CachedCaller returns the last known caller with these secrets, or nil; see
	// [gatehouse.CachedCredential]. editToken is "" if the request has none, or the route does not read it.
	CachedCaller(key, editToken string) *gatehouse.Caller
}

// The kinds of objects that a path can name.
const (
	ObjectAction    = "action" // by its own id or its approval's
	ObjectPush      = "push"
	ObjectPrincipal = "principal" // by id or name
	ObjectKey       = "key"
	ObjectPolicy    = "policy" // by version
	ObjectSession   = "session"
	ObjectWorkflow  = "workflow" // by name
	ObjectRun       = "run"
	ObjectStep      = "step"
	ObjectGroup     = "group" // by name
	ObjectLinkKey   = "link_key"

	ObjectDelegation = "delegation"
	ObjectGrant      = "grant"
	ObjectDevice     = "device" // of the caller
	ObjectMandate    = "mandate"
	ObjectSecret     = "secret" // by name

	ObjectConnectorVersion = "connector_version"
)

// Lookup finds the object that a path names.
type Lookup interface {
	// Exists returns an error with code not_found if the caller's tenant lacks the object, or if it is an action,
	// push, run, step or mandate that the caller may not read, or another person's device. kind is one of the
	// Object constants; for any other kind, Exists returns nil.
	Exists(ctx context.Context, kind, id string) error
	// Resolve returns the full id for a short id (see [gatehouse.ShortID]), and any other id unchanged. The
	// error has code not_found if no id that the caller may read begins with the short id, and code
	// ambiguous_id if several do.
	Resolve(ctx context.Context, kind, id string) (string, error)
}

// Config configures a [Server]. Actions, Dispatch, Admin, Policies, Audit, Sessions, Auth, Lookup and Logger are
// required. If any other service is nil, its routes do not exist. All other fields have defaults.
type Config struct {
	Actions       gatehouse.ActionService
	Dispatch      gatehouse.DispatchService
	Admin         gatehouse.AdminService
	Policies      gatehouse.PolicyService
	Audit         gatehouse.AuditService
	Sessions      gatehouse.SessionService
	Runs          gatehouse.RunService
	Workers       gatehouse.WorkerService
	Hooks         Hooks
	Notices       gatehouse.NoticeService
	Notifications gatehouse.NotificationService
	LinkKeys      gatehouse.LinkKeyService
	Reviews       gatehouse.ReviewService
	Secrets       gatehouse.SecretService
	Delegations   gatehouse.DelegationService
	Grants        gatehouse.GrantService
	Devices       gatehouse.DeviceService
	Preferences   gatehouse.PreferenceService
	Connectors    gatehouse.ConnectorService
	Mandates      gatehouse.MandateService
	Evaluations   gatehouse.EvaluationService
	Targets       gatehouse.TargetService
	TargetHooks   TargetHooks
	Bounces       gatehouse.BounceService
	Events        gatehouse.EventService
	Insights      gatehouse.InsightService
	Checks        gatehouse.CheckService
	Keeper        gatehouse.KeeperService

	// EventBeat is the interval of keep-alive messages on a stream without events; 15 s by default.
	EventBeat time.Duration
	// PublicURL is the console's URL for browsers; "" when it is not configured.
	PublicURL string

	Auth   Authenticator
	Lookup Lookup
	Logger *slog.Logger
	// Build describes the server for /healthz and the OpenAPI document.
	Build gatehouse.Build
	// ConnectorState, if not nil, returns the version of the connectors, which /healthz then shows.
	ConnectorState func() *gatehouse.ConnectorState
	// Registerer and Gatherer are the registry behind /metrics. If both are nil, the server makes a registry.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Ready reports whether the server can work; nil means always.
	Ready func(ctx context.Context) error
	// BodyTimeout bounds the time in which a client sends a body; 30 s by default.
	BodyTimeout time.Duration
	// BulkPerMinute bounds the bulk decisions of one person in any 60 s; 30 by default.
	BulkPerMinute int
	// RequestsPerSecond bounds the requests of one principal, with bursts of RequestBurst; 0 means no bound.
	// Rates, if not nil, applies the bound to all processes together.
	RequestsPerSecond float64
	RequestBurst      int
	Rates             RateStore
	// Addresses bounds the requests with wrong keys from one address; nil means that the server makes one.
	Addresses *Addresses
	// HooksPerSecond bounds the deliveries from one address to one workflow or source, and of returned mails, with
	// bursts of HookBurst. 0 means 50, and a negative value no bound. HookBurst 0 means four times the rate.
	HooksPerSecond float64
	HookBurst      int
	// HookRates are the bounds of individual workflows, by name. The bound of all deliveries from one address is
	// four times the largest rate of HooksPerSecond and HookRates; there is none if one of them is negative.
	HookRates map[string]HookRate
}

// Server is the HTTP API. It is an http.Handler by itself; to share a mux with
// other handlers, use [Server.Mount] and [Server.Front].
type Server struct {
	cfg     Config
	log     *slog.Logger
	routes  []route
	metrics *metrics
	running running
	bulk    *window
	general *buckets
	answers answers
	hooks   hookLimits
	reviews *buckets // by address
	mux     *http.ServeMux
	front   http.Handler
}

// New returns a server. It fails if a required field is missing, or if the registerer already has the metrics
// of a server.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Actions == nil, cfg.Dispatch == nil, cfg.Admin == nil, cfg.Policies == nil, cfg.Audit == nil,
		cfg.Sessions == nil:
		return nil, errors.New("api: a service is missing")
	case cfg.Auth == nil:
		return nil, errors.New("api: the authenticator is missing")
	case cfg.Lookup == nil:
		return nil, errors.New("api: the lookup is missing")
	case cfg.Logger == nil:
		return nil, errors.New("api: the logger is missing")
	}
	if cfg.Registerer == nil && cfg.Gatherer == nil {
		own := prometheus.NewRegistry()
		cfg.Registerer, cfg.Gatherer = own, own
	}
	if cfg.BodyTimeout == 0 {
		cfg.BodyTimeout = 30 * time.Second
	}
	if cfg.Addresses == nil {
		cfg.Addresses = new(Addresses)
	}
	if cfg.BulkPerMinute == 0 {
		cfg.BulkPerMinute = 30
	}
	s := &Server{cfg: cfg, log: cfg.Logger, bulk: newWindow(cfg.BulkPerMinute)}
	s.general = newBuckets(cfg.RequestsPerSecond, cfg.RequestBurst)
	s.general.sharedBy(cfg.Rates, cfg.Logger)
	s.hooks = newHookLimits(HookRate{cfg.HooksPerSecond, cfg.HookBurst}, cfg.HookRates)
	s.reviews = newBuckets(reviewsPerSecond, reviewBurst)
	s.routes = s.table()
	var err error
	if s.metrics, err = newMetrics(cfg.Registerer, s.routes); err != nil {
		return nil, err
	}
	s.mux = http.NewServeMux()
	s.Mount(s.mux)
	s.mux.Handle("/", s.plain(s.notFound))
	s.front = s.Front(s.mux)
	return s, nil
}

// ServeHTTP serves the paths of [Server.Mount], and answers 404 for all others.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.front.ServeHTTP(w, r) }

// Mount adds the API, its documentation and the health endpoints to a mux. It registers /api, /api/,
// /openapi.json, /docs, /docs/docs.css, /healthz, /readyz and /metrics, for every method, and no other path.
func (s *Server) Mount(mux *http.ServeMux) {
	byPath := make(map[string]methods)
	for i := range s.routes {
		rt := &s.routes[i]
		m := byPath[rt.path]
		m.set(rt.method, s.serve(rt))
		byPath[rt.path] = m
	}
	for path, m := range byPath {
		mux.Handle(Prefix+path, s.byMethod(m))
	}
	if s.cfg.Hooks != nil {
		mux.Handle(Prefix+hookRoute.path, s.serveHook(&hookRoute, s.receive))
	}
	if s.cfg.TargetHooks != nil {
		mux.Handle(Prefix+targetHookRoute.path, s.serveHook(&targetHookRoute, s.receiveTarget))
	}
	if s.cfg.Bounces != nil {
		mux.Handle(Prefix+bounceRoute.path, s.serveHook(&bounceRoute, s.receiveBounce))
	}
	if s.cfg.Reviews != nil {
		s.mountReviews(mux)
	}
	// Without the first pattern, the mux would redirect /api to /api/.
	mux.Handle("/api", s.unknownPath())
	mux.Handle("/api/", s.unknownPath())
	s.mountOps(mux)
}

// methods holds the handlers of one path. The mux gets each path once, without a method, so that this package
// answers a request with a wrong method.
type methods struct {
	get, post, put, patch, del http.Handler
}

func (m *methods) set(method string, h http.Handler) {
	*m.handler(method) = h
}

// handler returns the field for a method's handler; HEAD is GET without a body. For an unknown method, the
// field is always nil.
func (m *methods) handler(method string) *http.Handler {
	switch method {
	case http.MethodGet, http.MethodHead:
		return &m.get
	case http.MethodPost:
		return &m.post
	case http.MethodPut:
		return &m.put
	case http.MethodPatch:
		return &m.patch
	case http.MethodDelete:
		return &m.del
	}
	return new(http.Handler)
}

// allowed lists the methods that have a handler, for the Allow header.
func (m *methods) allowed() string {
	var list []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if *m.handler(method) != nil {
			list = append(list, method)
		}
	}
	return strings.Join(list, ", ")
}

// byMethod returns the handler of a path. It answers a method without a handler with method_not_allowed.
func (s *Server) byMethod(m methods) http.Handler {
	allowed := m.allowed()
	wrongMethod := s.authenticated(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path allows %s", allowed)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := *m.handler(r.Method); h != nil {
			h.ServeHTTP(w, r)
			return
		}
		wrongMethod.ServeHTTP(w, r)
	})
}

// unknownPath answers requests for unknown paths under /api/: 401 without a valid key, and else 404.
func (s *Server) unknownPath() http.Handler { return s.authenticated(s.notFound) }

func (s *Server) notFound(http.ResponseWriter, *http.Request) error {
	return gatehouse.E(gatehouse.CodeNotFound, "no such path")
}
