package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/api"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slackdev"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

// The intervals of the background work, and the limits of a server. Hints start most work earlier.
const (
	sweepInterval = time.Second
	purgeInterval = 10 * time.Minute
	checkInterval = 24 * time.Hour
	// countInterval bounds how many seconds of decision counts a crash loses.
	countInterval = 5 * time.Second
	shutdownGrace = 20 * time.Second
	// RequestGrace is how long requests may continue after a stop. Then long polls are answered
	// with the present state.
	RequestGrace = time.Second
	// requestsPerSecond and requestBurst are the default bounds on the requests of
	// one principal: more than a person or a correct agent makes.
	requestsPerSecond = 500.0
	requestBurst      = 2000
)

// Server is a running node: HTTP surface and background work.
type Server struct {
	*Node
	URL string
	// MetricsURL is the URL of the metrics listener, "" for none.
	MetricsURL string
	http       *http.Server
	// stop ends the background work, hangUp the waiting requests.
	stop, hangUp context.CancelFunc
	work         sync.WaitGroup
	// failed receives the error that ended the server, if Close did not end it.
	failed chan error
	// stopping is true while the server is about to stop, but still takes requests.
	stopping atomic.Bool
	metrics  prometheus.Registerer
	audited  *telemetry.Audit
	prober   *prober
	// notified counts messages to people; nil without channels.
	notified *telemetry.Notifications
	// slackHandler takes clicks in Slack, nil if no channel supports them.
	slackHandler *slack.Handler
}

// Start serves all roles on the address until Close. The node must have an
// administrator. Start closes the node when it fails.
func Start(n *Node, listen string) (*Server, error) { return StartRoles(n, listen, AllRoles()) }

// StartRoles is Start for some roles. Health and metrics are always served.
func StartRoles(n *Node, listen string, roles []Role) (*Server, error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	telemetry.RegisterQueue(metrics, n.Store)
	telemetry.RegisterCeilings(metrics, n.Gate)
	telemetry.RegisterConnectors(metrics, n.stored.publicState)
	n.Runs.SetMetrics(telemetry.NewRuns(metrics, n.Store))
	archived := telemetry.NewArchive(metrics)

	ctx, stop := context.WithCancel(context.Background())
	requests, hangUp := context.WithCancel(context.Background())
	s := &Server{Node: n, stop: stop, hangUp: hangUp, failed: make(chan error, 1), metrics: metrics,
		audited: telemetry.NewAudit(metrics)}
	s.prober = newProber(n.Registry.Targets, telemetry.NewTargets(metrics), n.Registry.RedactTarget, n.Log)
	listener := n.listener
	fail := func(err error) (*Server, error) {
		stop()
		hangUp()
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
		s.work.Wait()
		return nil, errors.Join(err, n.Close())
	}
	pushes, _ := n.Hub.Subscribe(usecase.TopicPush)
	breakers := telemetry.NewBreakers(metrics, slices.Sorted(maps.Keys(n.stored.config().Connectors))...)
	dispatcher, err := dispatch.New(dispatch.Dependencies{
		Store: n.Store, Targets: n.Registry, Authority: n.Gate, Owner: newOwnerName(), Wake: pushes,
		Committed: func(id string) { n.Hub.Notify(id); n.Hub.Notify(usecase.TopicAudit) },
		Log:       n.Log, Metrics: telemetry.NewPushes(metrics, slices.Sorted(maps.Keys(n.stored.config().Connectors))...),
		BreakerChanged: breakers.Moved, BreakerRemoved: breakers.Gone,
		Failpoint: func(p dispatch.Point) { failpoint.Here(string(p)) },
		Trace:     n.tracing.Push,
	}, engineConfig(n.config.Dispatch))
	if err != nil {
		return fail(err)
	}
	n.Gate.SetDrainer(dispatcher)
	n.Runs.SetOutside(dispatch.Outside{Dispatcher: dispatcher})
	addresses := &api.Addresses{Trusted: n.config.TrustedProxies}
	rates, _ := n.Store.(api.RateStore)
	reports, err := newTargetHooks(n, metrics)
	if err != nil {
		return fail(err)
	}
	if len(n.channels) > 0 {
		s.notified = telemetry.NewNotifications(metrics, n.Store)
	}
	handler, err := api.New(api.Config{
		Actions: n.tracing.Actions(n.Gate), Dispatch: n.Gate, Admin: n.Gate, Policies: n.Gate, Audit: n.Gate,
		Sessions: n.Gate, Auth: n.Gate, Lookup: n.Gate,
		Runs: n.Runs, Workers: n.Runs, Hooks: n.Runs, Checks: n.checks, Keeper: n.Gate,
		Notices: n.Gate, Notifications: n.Gate, Insights: n.Gate,
		LinkKeys: n.Gate, Secrets: n.Gate, Reviews: n.tracing.Reviews(n.Gate), Delegations: n.Gate, Grants: n.Gate,
		Devices:     n.Gate,
		Preferences: n.Gate, Mandates: n.Gate, Connectors: n.Gate, Targets: n.Gate, Evaluations: n.Gate,
		TargetHooks: reports, Bounces: bounces(n, s.notified),
		Events: n.Gate, PublicURL: n.publicURL(),
		Logger: n.Log, Build: version.Build(), Registerer: metrics, Gatherer: metrics,
		Ready: s.ready, ConnectorState: n.stored.publicState,
		HooksPerSecond: n.config.Hooks.RateLimit.PerSecond, HookBurst: n.config.Hooks.RateLimit.Burst,
		HookRates:         hookRates(n.config.Hooks),
		RequestsPerSecond: cmp.Or(n.config.RateLimit.PerSecond, requestsPerSecond),
		RequestBurst:      cmp.Or(n.config.RateLimit.Burst, requestBurst),
		Addresses:         addresses, Rates: rates,
	})
	if err != nil {
		return fail(err)
	}
	pages, err := newConsole(n, signInConfig(n.config.SignIn), metrics)
	if err != nil {
		return fail(err)
	}
	if listener == nil {
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", listen); err != nil {
			return fail(portTaken(err, listen))
		}
	}
	s.URL = "http://" + listener.Addr().String()
	if n.certSource != nil {
		s.URL = "https://" + listener.Addr().String()
	}
	mux := http.NewServeMux()
	handler.Mount(mux)
	if n.caught != nil {
		mux.Handle("GET "+devMailPath, thisMachine(n.caught))
	}
	if s.slackHandler, err = newSlackHandler(n, metrics); err != nil {
		return fail(err)
	}
	if s.slackHandler != nil {
		mux.Handle(slack.InteractionsPath, s.slackHandler)
	}
	if n.cards != nil {
		n.cards.Serve(s.slackHandler, func(ctx context.Context, issuer, user string) (bool, error) {
			return n.Gate.SlackLinked(ctx, gatehouse.DefaultTenant, issuer, user)
		})
		mux.Handle(slackdev.Path, thisMachine(n.cards))
		mux.Handle(slackdev.Path+"/", thisMachine(n.cards))
	}
	mux.Handle("/", addresses.SignIn(pages, console.SignsIn))
	surface := n.tracing.Requests(handler.Front(mux))
	if !has(roles, RoleAPI) {
		surface = handler.HealthOnly()
	}
	s.http = &http.Server{
		Handler: s.lastAnswers(surface), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		// Longer than the longest poll: a client that does not read its answer
		// must not keep it in memory for ever.
		WriteTimeout: gatehouse.MaxWait + time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(n.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	if n.metricsListen != "" {
		if err := s.serveMetrics(ctx, n.metricsListen, handler.Metrics()); err != nil {
			return fail(err)
		}
	}
	if has(roles, RoleSweeper) {
		if err := s.archive(ctx, archived); err != nil {
			return fail(err)
		}
	}
	s.background(ctx, dispatcher, roles)
	s.work.Go(func() {
		if err := s.serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	})
	if n.certSource != nil {
		s.work.Go(n.certSource.keeper(ctx, n.Log))
	}
	return s, nil
}

func (s *Server) serve(listener net.Listener) error {
	if s.certSource == nil {
		return s.http.Serve(listener)
	}
	s.http.TLSConfig = s.certSource.config()
	return s.http.ServeTLS(listener, "", "")
}

// serveMetrics serves only the metrics, on a separate address, until the context
// ends.
func (s *Server) serveMetrics(ctx context.Context, listen string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return portTaken(err, listen)
	}
	scraped := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.Log.Handler(),
			slog.LevelWarn),
	}
	s.MetricsURL = "http://" + listener.Addr().String() + "/metrics"
	s.work.Go(func() {
		if err := scraped.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	})
	s.work.Go(func() {
		<-ctx.Done()
		_ = scraped.Close()
	})
	return nil
}

// background starts the background work of the roles.
func (s *Server) background(ctx context.Context, d *dispatch.Dispatcher, roles []Role) {
	if has(roles, RoleDispatcher) {
		s.work.Go(func() { d.Run(ctx) })
		s.work.Go(func() {
			dispatch.Loop(ctx, s.Log, "target probe", probeInterval, func(ctx context.Context) (bool, error) {
				s.prober.probe(ctx)
				return false, nil
			})
		})
	}
	if has(roles, RoleRunner) {
		r := runs.NewRuntime(s.Store, s.Runs, s.Hub, runtimeConfig(&s.config.Runs, newOwnerName()), s.Log)
		s.work.Go(func() { r.Run(ctx) })
	}
	if has(roles, RoleSequencer) {
		leaves, _ := s.Hub.Subscribe(usecase.TopicAudit)
		sequencer := &audit.Sequencer{
			Store: s.Store, Logger: s.Log, Numbered: func(tenant string) { s.Hub.Notify(usecase.TopicLog(tenant)) },
		}
		s.work.Go(func() { sequencer.Run(ctx, leaves) })
		s.work.Go(func() {
			dispatch.Loop(ctx, s.Log, "audit check", checkInterval, func(ctx context.Context) (bool, error) {
				return false, s.checkLogs(ctx)
			})
		})
	}
	if has(roles, RoleSweeper) {
		s.sweep(ctx)
		s.index(ctx)
	}
	if has(roles, RoleNotifier) && len(s.channels) > 0 {
		s.noteUnsigned(s.Log)
		s.work.Go(func() { s.notifier(s.notified).Run(ctx) })
		if s.slackHandler != nil {
			s.work.Go(func() { s.slackHandler.Run(ctx) })
		}
	}
	s.work.Go(func() { s.secrets.run(ctx, s.Hub) })
	s.work.Go(func() { s.stored.run(ctx, s.Hub) })
	s.work.Go(func() { s.watchVersion(ctx) })
	s.work.Go(func() {
		dispatch.Loop(ctx, s.Log, "decision counts", countInterval, func(ctx context.Context) (bool, error) {
			return false, s.Gate.StoreDecisionCounts(ctx)
		})
	})
	s.work.Go(func() { s.Hub.Run(ctx) })
	if has(roles, RoleFeed) && s.nats != nil {
		leaves, _ := s.Hub.Subscribe(usecase.TopicAudit)
		f := &feed.Feed{Store: s.Store, Conn: s.nats, Config: s.feed, Wake: leaves, Logger: s.Log}
		telemetry.RegisterFeed(s.metrics, f.Published, f.Behind)
		s.work.Go(func() { f.Run(ctx) })
	}
}

// checkLogs verifies every entry and every tree hash of every tenant's audit log.
// It runs at the start and once a day, in parallel with all other work.
func (s *Server) checkLogs(ctx context.Context) error {
	var tenants []*gatehouse.Tenant
	err := s.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		tenants, err = q.ListTenants()
		return err
	})
	for _, t := range tenants {
		report, e := audit.CheckBeside(ctx, s.Store, t.ID)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		s.audited.Checked(t.ID, report.Fault != nil)
		if report.Fault != nil {
			s.Log.ErrorContext(ctx, "the audit log is damaged", "tenant", t.ID, "error", report.Err())
		}
	}
	return err
}

// sweep starts the loops that expire actions, purge old records and rotate keys.
func (s *Server) sweep(ctx context.Context) {
	s.work.Go(func() {
		dispatch.Loop(ctx, s.Log, "expiry sweeper", sweepInterval, func(ctx context.Context) (bool, error) {
			n, err := s.Gate.Sweep(ctx)
			return n > 0, err
		})
	})
	s.work.Go(func() {
		dispatch.Loop(ctx, s.Log, "idempotency purge", purgeInterval, func(ctx context.Context) (bool, error) {
			_, err := s.Gate.PurgeIdempotency(ctx)
			return false, err
		})
	})
	s.work.Go(func() {
		dispatch.Loop(ctx, s.Log, "links", purgeInterval, func(ctx context.Context) (bool, error) {
			_, err := s.Gate.RotateOldLinkKeys(ctx)
			_, e := s.Gate.PurgeReviews(ctx)
			n, sealing := s.Gate.ResealKeys(ctx)
			if n > 0 {
				s.Log.InfoContext(ctx, "keys of secrets and of web push are sealed under the present master key", "keys", n)
			}
			return false, errors.Join(err, e, sealing)
		})
	})
	s.work.Go(func() {
		dispatch.Loop(ctx, s.Log, "session purge", purgeInterval, func(ctx context.Context) (bool, error) {
			_, err := s.Gate.PurgeSessions(ctx)
			return false, err
		})
	})
}

var errLeaving = errors.New("this process is about to stop")

// ready returns nil if this process can take more requests.
func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errLeaving
	}
	return s.Store.Ping(ctx)
}

// lastAnswers closes connections after their next answer once the server is about
// to stop, so that clients connect to another process.
func (s *Server) lastAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drain reports the server as not ready and continues to serve for d, so that load balancers stop
// sending requests before the listener closes. It returns an error that ended the server meanwhile.
func (s *Server) drain(d time.Duration) error {
	s.stopping.Store(true)
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case err := <-s.failed:
		return err
	}
}

// Close stops taking requests, waits for the running requests and connector
// calls to end, and closes the store.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	s.stop()
	hangUp := time.AfterFunc(RequestGrace, s.hangUp)
	defer hangUp.Stop()
	err := s.http.Shutdown(ctx)
	s.hangUp()
	s.work.Wait()
	s.lastCounts()
	return errors.Join(err, s.Node.Close())
}

// lastCounts stores the decision counts since the last interval. It has its own
// time limit, because requests may have used up that of the stop.
func (s *Server) lastCounts() {
	ctx, cancel := context.WithTimeout(context.Background(), countInterval)
	defer cancel()
	if err := s.Gate.StoreDecisionCounts(ctx); err != nil {
		s.Log.Warn("decision counts not stored", "error", err)
	}
}

// newOwnerName returns a new unique name for an owner of leases in this process.
func newOwnerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8])
}
