package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// Prefix is where the API stands.
const Prefix = "/api/v1"

// Authenticator tells who holds a credential.
type Authenticator interface {
	// Authenticate returns the principal of an API key. A key that is
	// unknown, revoked, or of a disabled principal is an error with code
	// unauthenticated.
	Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error)
	// CheckEditToken reports whether token is the principal's edit token.
	CheckEditToken(ctx context.Context, p *gatehouse.Principal, token string) (bool, error)
}

// Presumer is what an [Authenticator] may be besides.
type Presumer interface {
	// Presume returns the caller that was last known by the secrets, or nil: see
	// [gatehouse.Presumption]. editToken is "" where there is none.
	Presume(key, editToken string) *gatehouse.Caller
}

// The kinds of what a path can name.
const (
	ThingAction    = "action" // by its own id or its approval's
	ThingPush      = "push"
	ThingPrincipal = "principal" // by id or name
	ThingKey       = "key"
	ThingPolicy    = "policy" // by version
	ThingSession   = "session"
	ThingWorkflow  = "workflow" // by name
	ThingRun       = "run"
	ThingStep      = "step"
	ThingGroup     = "group" // by name
	ThingLinkKey   = "link_key"

	ThingDelegation = "delegation"
)

// Lookup tells whether the caller's tenant has a thing, whatever the caller's
// roles: by it a missing thing is 404 before a missing role is 403.
type Lookup interface {
	// Exists returns nil, or an error with code not_found. kind is one of the
	// Thing constants; of a kind that it does not know, everything exists.
	Exists(ctx context.Context, kind, id string) error
}

// Resolver is what a [Lookup] may be besides.
type Resolver interface {
	// Resolve returns the whole id that a short one in a path stands for (see
	// [gatehouse.ShortID]), and any other id as it is. Where nothing that the
	// caller may read begins so it is an error with code not_found, where several
	// do one with code ambiguous_id.
	Resolve(ctx context.Context, kind, id string) (string, error)
}

// Config is what a [Server] is made of. The services, Auth and Logger are
// needed; the rest has defaults.
type Config struct {
	Actions  gatehouse.ActionService
	Dispatch gatehouse.DispatchService
	Admin    gatehouse.AdminService
	Policies gatehouse.PolicyService
	Audit    gatehouse.AuditService
	Sessions gatehouse.SessionService
	// Runs, Workers and Hooks, when nil, leave their routes out.
	Runs    gatehouse.RunService
	Workers gatehouse.WorkerService
	Hooks   Hooks
	// Notices, when nil, leaves its routes out.
	Notices gatehouse.NoticeService
	// Notifications, when nil, leaves its routes out.
	Notifications gatehouse.NotificationService
	// LinkKeys and Reviews, when nil, leave their routes out.
	LinkKeys gatehouse.LinkKeyService
	Reviews  gatehouse.ReviewService
	// Delegations, when nil, leaves its routes out.
	Delegations gatehouse.DelegationService
	// Targets, when nil, leaves its route out.
	Targets gatehouse.TargetService
	// Events, when nil, leaves its route out. EventBeat is the pace at which a quiet
	// stream shows that it lives; 15 s by default.
	Events    gatehouse.EventService
	EventBeat time.Duration
	// PublicURL is how browsers reach the console, "" where nobody said.
	PublicURL string
	// Insights, when nil, leaves its route out.
	Insights gatehouse.InsightService
	// Checks and Keeper, when nil, leave their routes out.
	Checks gatehouse.CheckService
	Keeper gatehouse.KeeperService

	Auth Authenticator
	// Lookup, when nil, asks the services: then pushes, keys and steps cannot be
	// looked up, and a missing role is told before they are missed.
	Lookup Lookup
	Logger *slog.Logger
	// Build is the server's, for /healthz and the OpenAPI document.
	Build gatehouse.Build
	// Registerer and Gatherer are for /metrics; both nil means a registry of
	// the server's own.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Ready reports whether the server can do its work; nil means always.
	Ready func(ctx context.Context) error
	// BodyTimeout bounds how long a client may take to send a body; 30 s by
	// default.
	BodyTimeout time.Duration
	// BulkPerMinute bounds the bulk decisions of one person in any 60 s;
	// 30 by default.
	BulkPerMinute int
	// RequestsPerSecond bounds the requests of one principal, with bursts of
	// RequestBurst; 0 means no bound. Rates, when not nil, shares the bound with
	// the other processes.
	RequestsPerSecond float64
	RequestBurst      int
	Rates             RateStore
	// Addresses bounds wrong keys by address; nil for one of the server's own.
	Addresses *Addresses
	// HooksPerSecond bounds the deliveries of one address to one workflow, with
	// bursts of HookBurst; four times as many to all workflows. By default 50
	// and 200; less than 0 means no bound.
	HooksPerSecond float64
	HookBurst      int
	// HookRates are those of single workflows, by name. The bound of an address
	// over all workflows is four times the greatest of all.
	HookRates map[string]HookRate
}

// Server is the HTTP surface. It is an http.Handler by itself; with other
// surfaces on one mux, use [Server.Mount] and [Server.Front].
type Server struct {
	cfg     Config
	log     *slog.Logger
	routes  []route
	presume Presumer // nil for none
	metrics *metrics
	running running
	bulk    *window
	general *buckets
	answers answers
	hooks   hookLimits
	reviews *buckets // by address
	health  []byte   // what /healthz answers
	mux     *http.ServeMux
	front   http.Handler
}

// New makes a server. It fails on a configuration that lacks something, and
// when the registerer already holds a server's metrics.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Actions == nil, cfg.Dispatch == nil, cfg.Admin == nil, cfg.Policies == nil, cfg.Audit == nil, cfg.Sessions == nil:
		return nil, errors.New("api: a service is missing")
	case cfg.Auth == nil:
		return nil, errors.New("api: the authenticator is missing")
	case cfg.Logger == nil:
		return nil, errors.New("api: the logger is missing")
	}
	if cfg.Lookup == nil {
		cfg.Lookup = serviceLookup{cfg}
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
	s.presume, _ = cfg.Auth.(Presumer)
	s.general = newBuckets(cfg.RequestsPerSecond, cfg.RequestBurst)
	s.general.sharedBy(cfg.Rates, cfg.Logger)
	s.hooks = newHookLimits(HookRate{cfg.HooksPerSecond, cfg.HookBurst}, cfg.HookRates)
	s.reviews = newBuckets(reviewsPerSecond, reviewBurst)
	s.routes = s.table()
	var err error
	if s.metrics, err = newMetrics(cfg.Registerer, s.routes); err != nil {
		return nil, err
	}
	if s.health, err = json.Marshal(gatehouse.Health{Status: "ok", Build: cfg.Build}); err != nil {
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
// takes /api, /api/, /openapi.json, /docs, /docs/, /healthz, /readyz and /metrics,
// with every method, and leaves the rest to others.
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
		mux.Handle(Prefix+hookRoute.path, s.serveHook())
	}
	if s.cfg.Reviews != nil {
		s.mountReviews(mux)
	}
	// Without the first, the mux would send one on from there.
	mux.Handle("/api", s.unknownPath())
	mux.Handle("/api/", s.unknownPath())
	s.mountOps(mux)
}

// methods holds the handlers of one path. A path is registered once, without
// a method, so that a wrong one is answered by us and not by the mux.
type methods struct {
	get, post, put, patch, del http.Handler
}

func (m *methods) set(method string, h http.Handler) {
	*m.slot(method) = h
}

// slot returns where a method's handler stands; HEAD is GET without a body.
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
		return gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path takes %s", allowed)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := *m.slot(r.Method); h != nil {
			h.ServeHTTP(w, r)
			return
		}
		wrong.ServeHTTP(w, r)
	})
}

// unknownPath answers for what is under /api/ and is no route: to a stranger
// 401, as for everything there, else 404.
func (s *Server) unknownPath() http.Handler { return s.authenticated(s.notFound) }

func (s *Server) notFound(http.ResponseWriter, *http.Request) error {
	return gatehouse.E(gatehouse.CodeNotFound, "no such path")
}
