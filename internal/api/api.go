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
	// Authenticate returns the principal of an API key. An unknown or revoked
	// key, or one of a disabled principal, is an error with code
	// unauthenticated.
	Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error)
	// CheckEditToken reports whether token is the principal's edit token.
	CheckEditToken(ctx context.Context, p *gatehouse.Principal, token string) (bool, error)
	// CachedCaller returns the last known caller with these secrets, or nil; see
	// [gatehouse.CachedCredential]. editToken is "" if the request has none.
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

// Lookup finds what a path names.
type Lookup interface {
	// Exists returns nil if the caller's tenant has the object, whatever the caller's roles, or an
	// error with code not_found. kind is one of the Object constants.
	// For an unknown kind it returns nil.
	Exists(ctx context.Context, kind, id string) error
	// Resolve returns the full id for a short one (see [gatehouse.ShortID]); any other id is returned
	// unchanged. If no id that the caller may read begins with it, the error has code not_found; if
	// several do, ambiguous_id.
	Resolve(ctx context.Context, kind, id string) (string, error)
}

// Config configures a [Server]. Actions, Dispatch, Admin, Policies, Audit, Sessions, Auth, Lookup and Logger are
// required; the rest has defaults. The routes of another service are left out if it is nil.
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

	// EventBeat is the interval of keep-alive messages on a quiet stream of events; 15 s by default.
	EventBeat time.Duration
	// PublicURL is the console's URL for browsers; "" when it is not configured.
	PublicURL string

	Auth   Authenticator
	Lookup Lookup
	Logger *slog.Logger
	// Build describes the server for /healthz and the OpenAPI document.
	Build gatehouse.Build
	// ConnectorState, when not nil, adds the version of the connectors to /healthz.
	ConnectorState func() *gatehouse.ConnectorState
	// Registerer and Gatherer are for /metrics; if both are nil, the server
	// uses its own registry.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Ready reports whether the server can work; nil means always.
	Ready func(ctx context.Context) error
	// BodyTimeout bounds the time for sending a body; 30 s by default.
	BodyTimeout time.Duration
	// BulkPerMinute bounds the bulk decisions of one person in any 60 s; 30 by
	// default.
	BulkPerMinute int
	// RequestsPerSecond bounds the requests of one principal, with bursts of
	// RequestBurst; 0 means no bound. Rates, when not nil, shares the bound
	// between processes.
	RequestsPerSecond float64
	RequestBurst      int
	Rates             RateStore
	// Addresses bounds wrong keys by address; nil means the server's own
	// instance.
	Addresses *Addresses
	// HooksPerSecond bounds the deliveries of one address to one workflow or source,
	// with bursts of HookBurst. Four times as many may go to all of them together.
	// The defaults are 50 and 200; a negative value means no bound.
	HooksPerSecond float64
	HookBurst      int
	// HookRates are the rates of individual workflows, by name. An address's
	// bound over all workflows is four times the largest rate.
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

// New returns a server. It fails on an incomplete configuration, and if the
// registerer already has a server's metrics.
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

// ServeHTTP serves the API alone; everything else is 404.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.front.ServeHTTP(w, r) }

// Mount adds the API, its document and the health endpoints to a mux. It
// handles /api, /api/, /openapi.json, /docs, /docs/docs.css, /healthz, /readyz and
// /metrics with every method, and no other path.
func (s *Server) Mount(mux *http.ServeMux) {
	byPath := make(map[string]methods)
	for i := range s.routes {
		rt := &s.routes[i]
		m := byPath[rt.path]
		m.set(rt.method, s.serve(rt))
		byPath[rt.path] = m
	}
	for path, m := range byPath {
		mux.Handle(Prefix+path, s.dispatch(m))
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

// methods holds the handlers of one path. A path is registered once, without a
// method, so that this package and not the mux answers a wrong method.
type methods struct {
	get, post, put, patch, del http.Handler
}

func (m *methods) set(method string, h http.Handler) {
	*m.slot(method) = h
}

// slot returns the field for a method's handler; HEAD is GET without a body.
func (m *methods) slot(method string) *http.Handler {
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

func (m *methods) allowed() string {
	var list []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if *m.slot(method) != nil {
			list = append(list, method)
		}
	}
	return strings.Join(list, ", ")
}

func (s *Server) dispatch(m methods) http.Handler {
	allowed := m.allowed()
	wrong := s.authenticated(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path allows %s", allowed)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := *m.slot(r.Method); h != nil {
			h.ServeHTTP(w, r)
			return
		}
		wrong.ServeHTTP(w, r)
	})
}

// unknownPath answers for unknown paths under /api/: 401 without a valid key,
// as everywhere there, else 404.
func (s *Server) unknownPath() http.Handler { return s.authenticated(s.notFound) }

func (s *Server) notFound(http.ResponseWriter, *http.Request) error {
	return gatehouse.E(gatehouse.CodeNotFound, "no such path")
}
