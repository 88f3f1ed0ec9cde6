package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Config sets how pushes are carried out. Zero members take the default, but
// for Retries, where zero means that there is one call and no more.
type Config struct {
	// Retries is how often a call is tried again after the first one.
	Retries int
	// Patience lets operations of class A be tried again, with the last wait, for so
	// long after a push was first due, when Retries are used up, and never for
	// longer than the target keeps idempotency keys; 0 for not at all.
	Patience time.Duration
	// Backoff is the wait after each attempt; the last one stays. By default
	// 5 s, 30 s, 2 min, 10 min. Each is varied by up to a fifth.
	Backoff []time.Duration
	// Lease is how long a claimed push belongs to its worker; 60 s by default.
	// A call must end a sixth of it before its end.
	Lease time.Duration
	// Workers bounds the calls that are under way at a time; 16 by default. Over a
	// store that is far away, the outcomes of as many may be on their way to it
	// besides.
	Workers int
	// Tenants has the weight and the bound of single tenants, Default those of
	// all others.
	Tenants map[string]Tenant
	Default Tenant
	// Batch bounds the pushes claimed at a time; by default as Workers. No
	// more are claimed than workers are free, so that no lease runs in vain.
	Batch int
	// Poll is the longest sleep between two looks at the queue; 1 s by default.
	Poll time.Duration
	// CheckTimeout bounds each look at the target that changes nothing
	// (check, read-back); 10 s by default.
	CheckTimeout time.Duration
	// MaxClaims is how often a push may be claimed without coming to an
	// attempt before it is quarantined as poison; 10 by default.
	MaxClaims int
	// Breaker stops the calls of a connector for a while; none by default.
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

// of returns what a tenant may have.
func (c *Config) of(tenant string) Tenant {
	if t, ok := c.Tenants[tenant]; ok {
		return t
	}
	return c.Default
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (c Config) validate() error {
	for _, d := range append([]time.Duration{c.Lease, c.Poll, c.CheckTimeout}, c.Backoff...) {
		if d <= 0 {
			return errors.New("dispatch: lease, poll and backoff must be longer than zero")
		}
	}
	if c.Patience < 0 || c.Retries < 0 || c.Workers < 0 || c.Batch < 0 || c.MaxClaims < 0 {
		return errors.New("dispatch: patience, retries, workers and batch cannot be negative")
	}
	for name, t := range c.Tenants {
		if t.Weight < 0 || t.Weight > MaxWeight || t.MaxConcurrency < 0 {
			return fmt.Errorf("dispatch: tenant %s: weight must be at most %d, max_concurrency not negative", name, MaxWeight)
		}
	}
	if c.Default.Weight < 0 || c.Default.Weight > MaxWeight || c.Default.MaxConcurrency < 0 {
		return fmt.Errorf("dispatch: weight must be at most %d, max_concurrency not negative", MaxWeight)
	}
	if c.Breaker.Failures < 0 || c.Breaker.Open < 0 || c.Breaker.Longest < 0 {
		return errors.New("dispatch: the breaker's failures and times cannot be negative")
	}
	return nil
}

// Unjudged is the error of what has to be judged before the transaction, since a
// judgement may take long. Judge fails when the context ends.
type Unjudged interface {
	error
	Judge(ctx context.Context) error
}

// Authority looks a last time whether an approval still holds.
type Authority interface {
	// Recheck runs in the transaction that writes the intent, with the action
	// as stored. A *gatehouse.Error ends the push without a call, under its
	// code. [Unjudged] ends the transaction, which is run again after Judge. Any
	// other error is the store's: the push waits and is tried again.
	Recheck(tx gatehouse.Tx, a *gatehouse.Action) error
}

// Metrics counts; see internal/telemetry. Its methods are called after the
// commit, concurrently.
type Metrics interface {
	// PushSent counts a call, with the time from when the push was due until
	// its intent was recorded.
	PushSent(connector string, waited time.Duration)
	// PushSettled counts what a push came to: applied, failed, unknown, retry,
	// quarantined, released, late or rescued. took is the time of the call, 0
	// without one.
	PushSettled(connector, outcome string, took time.Duration)
}

// Dependencies are what a dispatcher works with. Store, Targets and Authority
// are needed.
type Dependencies struct {
	Store     gatehouse.Store
	Targets   *Registry
	Authority Authority
	// Owner names this process in leases and audit leaves.
	Owner string
	// Wake hints that something may be due. May be nil: then polling finds it.
	Wake <-chan struct{}
	// Committed is told the id of each action that has changed, after the
	// commit and never under a lock. May be nil.
	Committed func(actionID string)
	Log       *slog.Logger
	Metrics   Metrics
	// BreakerMoved is told of each change of a breaker: closed, open or half_open. May
	// be nil.
	BreakerMoved func(connector, state string)
	// Trace begins the span of a piece of a push's way, "dispatch" or "call",
	// which the function that it returns ends. Nil for none.
	Trace func(ctx context.Context, name string, p *gatehouse.Push) (context.Context, func(outcome string, err error))
	// Random returns numbers in [0, 1) for the jitter; nil for the usual ones.
	Random func() float64
	// Failpoint is called between the steps that a crash must not confuse; nil
	// but in crash tests. The binary has package failpoint's.
	Failpoint func(Point)
}

// Point is a place between two steps where a crash test strikes.
type Point string

// The places, in the order of the path, and of a rescue. Those before a commit
// lie within a transaction: they may be passed more than once, and only the death of the
// whole process can be tried there.
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

// Points lists those of the path.
func Points() []Point {
	return []Point{
		PointClaimed, PointIntent, PointIntentCommit, PointSent, PointCalled,
		PointOutcome, PointOutcomeCommit, PointSettled,
	}
}

// RescuePoints lists those of a rescue.
func RescuePoints() []Point { return []Point{PointRescue, PointRescued} }

// Dispatcher carries out pushes. Several on one store share the work.
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
	// now is this process's monotonic clock, by which leases run out here.
	now    func() time.Time
	config Config
	// slots has an element for each push that is being carried out; those of which
	// only the outcome is still to be stored may be in recording instead.
	slots, recording chan struct{}
	// gathering is the store, if it would rather have Updates at once.
	gathering gatehouse.Gathering
	linger    time.Duration
	// nudge wakes Run when this process has put a push back to a later time, or
	// has settled one while a tenant waits for that (full).
	nudge chan struct{}
	full  atomic.Bool
	fair  *fair
	// breakers are nil where workers outside make the calls.
	breakers *breakers
}

// New makes a dispatcher.
func New(d Dependencies, c Config) (*Dispatcher, error) {
	if d.Store == nil || d.Targets == nil || d.Authority == nil || d.Owner == "" {
		return nil, errors.New("engine: store, targets, authority and owner are needed")
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
		failpoint: d.Failpoint, now: time.Now, config: c, slots: make(chan struct{}, c.Workers), recording: make(chan struct{}, c.Workers),
		nudge: make(chan struct{}, 1), linger: linger,
	}
	dispatcher.gathering, _ = d.Store.(gatehouse.Gathering)
	dispatcher.fair = newFair(&dispatcher.config)
	dispatcher.breakers = newBreakers(c.Breaker, dispatcher.now, func(name, state string) {
		dispatcher.log.Warn("the breaker of a connector has moved", "connector", name, "state", state)
		if d.BreakerMoved != nil {
			d.BreakerMoved(name, state)
		}
		if state == breakerClosed {
			dispatcher.hint()
		}
	})
	return dispatcher, nil
}

type noMetrics struct{}

func (noMetrics) PushSent(string, time.Duration)            {}
func (noMetrics) PushSettled(string, string, time.Duration) {}

// Loop calls fn at once and then every interval until ctx ends, and at once
// again while fn reports that more is waiting. Errors are logged, and that they
// are over; the next round comes after the interval.
func Loop(ctx context.Context, log *slog.Logger, name string, interval time.Duration, fn func(context.Context) (more bool, err error)) {
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
			log.InfoContext(ctx, "background work goes on", "work", name)
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
