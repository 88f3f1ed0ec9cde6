package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/lease"
)

// Config configures a dispatcher. A zero field means its default, but zero Retries means a single call.
type Config struct {
	// Retries is the number of retries after the first call.
	Retries int
	// Patience adds retries for operations of class A when Retries are used up: until this time has passed since
	// the push was first due, but only as long as the target keeps the idempotency key. The waits continue as in
	// Backoff. 0 means no such retries.
	Patience time.Duration
	// Backoff holds the wait after each attempt. Further attempts use the last wait. The default is 5 s,
	// 30 s, 2 min, 10 min. Each wait varies by up to a fifth.
	Backoff []time.Duration
	// Lease is how long a claimed push belongs to its worker; 60 s by default. A call must end when a sixth
	// of the lease is left.
	Lease time.Duration
	// Workers bounds the concurrent calls; 16 by default. While they run, the outcomes of up to Workers
	// earlier calls may be written.
	Workers int
	// Tenants holds the settings of individual tenants, Default the settings of all other tenants.
	Tenants map[string]Tenant
	Default Tenant
	// Batch bounds the pushes claimed at a time; Workers by default. A dispatcher claims only as many pushes
	// as it has free workers, so that no lease runs unused.
	Batch int
	// Poll is the longest time between two polls of the queue while a worker is free; 1 s by default.
	Poll time.Duration
	// CheckTimeout bounds each read of the target for a push (probe, check, read-back); 10 s by default.
	CheckTimeout time.Duration
	// MaxClaims bounds the claims of a push that led to no attempt and were not put back; 10 by default. Each
	// replay adds MaxClaims. Then the push is quarantined with the code poison.
	MaxClaims int
	// Breaker is the circuit breaker of each connector; none by default.
	Breaker Breaker
}

// DefaultConfig returns the defaults, with three retries.
func DefaultConfig() Config { return Config{Retries: 3}.withDefaults() }

func (c Config) withDefaults() Config {
	setDefault(&c.Lease, time.Minute)
	setDefault(&c.Workers, 16)
	setDefault(&c.Batch, c.Workers)
	setDefault(&c.Poll, time.Second)
	setDefault(&c.CheckTimeout, 10*time.Second)
	setDefault(&c.MaxClaims, 10)
	if len(c.Backoff) == 0 {
		c.Backoff = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}
	}
	return c
}

// tenant returns the settings of a tenant.
func (c *Config) tenant(name string) Tenant {
	if t, ok := c.Tenants[name]; ok {
		return t
	}
	return c.Default
}

// setDefault sets a zero value to its default.
func setDefault[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

func (c Config) validate() error {
	for _, d := range append([]time.Duration{c.Lease, c.Poll, c.CheckTimeout}, c.Backoff...) {
		if d <= 0 {
			return errors.New("dispatch: lease, poll, check timeout and backoff must be longer than zero")
		}
	}
	if c.Patience < 0 || c.Retries < 0 || c.Workers < 0 || c.Batch < 0 || c.MaxClaims < 0 {
		return errors.New("dispatch: patience, retries, workers, batch and max claims cannot be negative")
	}
	for name, t := range c.Tenants {
		if t.Weight < 0 || t.Weight > lease.MaxWeight || t.MaxConcurrency < 0 {
			return fmt.Errorf("dispatch: tenant %s: weight must be 0 to %d, and max_concurrency must not be negative",
				name, lease.MaxWeight)
		}
	}
	if c.Default.Weight < 0 || c.Default.Weight > lease.MaxWeight || c.Default.MaxConcurrency < 0 {
		return fmt.Errorf("dispatch: weight must be 0 to %d, and max_concurrency must not be negative", lease.MaxWeight)
	}
	if c.Breaker.Failures < 0 || c.Breaker.Open < 0 || c.Breaker.Longest < 0 {
		return errors.New("dispatch: the breaker's failures and times cannot be negative")
	}
	return nil
}

// Authority checks, immediately before a call, whether the approval is still valid.
type Authority interface {
	// Recheck runs in the transaction that writes the intent. That transaction has read the stored action and the
	// rights. If the error is a *gatehouse.Error whose code is not retryable, the push is quarantined with this
	// code. If the error is a [usecase.NeedsWork], its Do is called and the transaction runs again. After any other
	// error, the transaction runs again, up to five times in all. Then, or if Do fails, the push returns to the
	// queue.
	Recheck(tx gatehouse.Tx, a *gatehouse.Action, rights *gatehouse.Rights) error
}

// Metrics counts calls and their results; see internal/telemetry. Its methods are called after the commit,
// concurrently.
type Metrics interface {
	// PushSent counts a call. waited is the time from the push's due time to the commit of its intent.
	PushSent(connector string, waited time.Duration)
	// PushSettled counts a result of a push: applied, failed, unknown, retry, quarantined, released, late or
	// rescued. took is the duration of the call; 0 if this process made no call.
	PushSettled(connector, outcome string, took time.Duration)
}

// Dependencies are the parts that a dispatcher uses. Store, Targets, Authority and Owner are required.
type Dependencies struct {
	Store     gatehouse.Store
	Targets   *Registry
	Authority Authority
	// Owner names this process in leases and audit leaves.
	Owner string
	// Wake signals that a push may be due. It may be nil, since polling finds the push as well.
	Wake <-chan struct{}
	// Committed, if not nil, is called with an action's id after its push has settled or returned to the queue,
	// after the commit and without a lock. It is not called after an intent.
	Committed func(actionID string)
	Log       *slog.Logger
	Metrics   Metrics
	// BreakerChanged, if not nil, is called after each change of a circuit breaker's state: closed, open or
	// half_open.
	BreakerChanged func(connector, state string)
	// BreakerRemoved, if not nil, is called after a connector was removed, and its circuit breaker with it.
	BreakerRemoved func(connector string)
	// Trace, if not nil, begins a span of a push, with the name "dispatch" or "call". The returned function
	// ends the span.
	Trace func(ctx context.Context, name string, p *gatehouse.Push) (context.Context, func(outcome string, err error))
	// Random returns numbers in [0, 1) for the jitter; nil means the default source.
	Random func() float64
	// Failpoint, if not nil, is called at each Point, so that a test can crash the process there. The binary
	// passes package failpoint.
	Failpoint func(Point)
}

// Point is a place in the code at which a crash test kills the process.
type Point string

// The points that a push passes, in order, and then the points of a rescue. A point before a commit is inside a
// transaction, which may run more than once. A test can only kill the whole process there.
const (
	PointClaimed       Point = "dispatch/after-claim"
	PointIntent        Point = "dispatch/before-intent"
	PointIntentCommit  Point = "dispatch/before-intent-commit"
	PointSent          Point = "dispatch/after-intent"
	PointCalled        Point = "dispatch/after-call"
	PointOutcome       Point = "dispatch/before-outcome"
	PointOutcomeCommit Point = "dispatch/before-outcome-commit"
	PointSettled       Point = "dispatch/after-outcome"
	PointRescue        Point = "rescue/before-commit"
	PointRescued       Point = "rescue/committed"
)

// Points lists the points that a push passes.
func Points() []Point {
	return []Point{
		PointClaimed, PointIntent, PointIntentCommit, PointSent, PointCalled,
		PointOutcome, PointOutcomeCommit, PointSettled,
	}
}

// RescuePoints lists the points of a rescue.
func RescuePoints() []Point { return []Point{PointRescue, PointRescued} }

// Dispatcher carries out pushes. Dispatchers on the same store share the work.
type Dispatcher struct {
	store     gatehouse.Store
	targets   *Registry
	authority Authority
	owner     string
	wake      <-chan struct{}
	committed func(string)
	log       *slog.Logger
	metrics   Metrics
	trace     func(context.Context, string, *gatehouse.Push) (context.Context, func(string, error))
	random    func() float64
	failpoint func(Point)
	// now reads this process's monotonic clock, by which the dispatcher measures its leases.
	now    func() time.Time
	config Config
	// slots bounds the pushes in progress. After its call, a push may move from slots to recording until its
	// outcome is stored.
	slots, recording lease.Slots
	// nudge wakes Run: when this process has returned a push to the queue for a later time, when one of its
	// pushes has ended while full is true, when a slot of a connector is free, and when a breaker closes.
	nudge chan struct{}
	// full is true while some tenant may be at its MaxConcurrency.
	full atomic.Bool
	// asideUntil is set when a push is put back because this process cannot load the connectors of the store. Before
	// that time, Run does not wake at due times, so that a process with the stored version claims the push first.
	asideUntil atomic.Pointer[time.Time]
	// outdatedWait is how long a push waits that was put back for outdated connectors; tests shorten it.
	outdatedWait time.Duration
	// asideRescues holds the pushes that could not be rescued.
	asideRescues aside.Set[string]
	fair         *fair
	// breakers is nil when external workers make the calls.
	breakers *breakers
}

// New returns a dispatcher.
func New(d Dependencies, c Config) (*Dispatcher, error) {
	if d.Store == nil || d.Targets == nil || d.Authority == nil || d.Owner == "" {
		return nil, errors.New("dispatch: store, targets, authority and owner are required")
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Committed == nil {
		d.Committed = func(string) {}
	}
	if d.Metrics == nil {
		d.Metrics = noMetrics{}
	}
	if d.Trace == nil {
		d.Trace = func(ctx context.Context, _ string, _ *gatehouse.Push) (context.Context, func(string, error)) {
			return ctx, func(string, error) {}
		}
	}
	if d.Random == nil {
		d.Random = rand.Float64
	}
	if d.Failpoint == nil {
		d.Failpoint = func(Point) {}
	}
	dispatcher := &Dispatcher{
		store: d.Store, targets: d.Targets, authority: d.Authority, owner: d.Owner, wake: d.Wake,
		committed: d.Committed, log: d.Log.With("worker", d.Owner), metrics: d.Metrics, trace: d.Trace, random: d.Random,
		failpoint: d.Failpoint, now: time.Now, config: c, slots: make(lease.Slots, c.Workers),
		recording: make(lease.Slots, c.Workers), nudge: make(chan struct{}, 1), outdatedWait: outdatedWait,
	}
	d.Targets.callLimits.onSlotFree(dispatcher.hint)
	dispatcher.fair = newFair(&dispatcher.config)
	dispatcher.breakers = newBreakers(c.Breaker, dispatcher.now, d.Targets.exists, func(name, state string) {
		dispatcher.log.Warn("the circuit breaker of a connector changed its state", "connector", name, "state", state)
		if d.BreakerChanged != nil {
			d.BreakerChanged(name, state)
		}
		if state == breakerClosed {
			dispatcher.hint()
		}
	}, func(name string) {
		if d.BreakerRemoved != nil {
			d.BreakerRemoved(name)
		}
	})
	d.Targets.onRemoved.Store(new(dispatcher.breakers.remove))
	return dispatcher, nil
}

type noMetrics struct{}

func (noMetrics) PushSent(string, time.Duration)            {}
func (noMetrics) PushSettled(string, string, time.Duration) {}

// Loop calls fn repeatedly until ctx ends. It waits for the interval after each call, unless the call succeeds
// and reports more work. It logs each error of fn, and the first success after an error.
func Loop(
	ctx context.Context, log *slog.Logger, name string, interval time.Duration,
	fn func(context.Context) (more bool, err error),
) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	failed := false
	for ctx.Err() == nil {
		more, err := fn(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			log.ErrorContext(ctx, "background work failed", "work", name, "error", err)
			failed = true
		case err == nil && failed:
			log.InfoContext(ctx, "background work succeeds again", "work", name)
			failed = false
		}
		if more && err == nil {
			continue
		}
		timer.Reset(interval)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}
