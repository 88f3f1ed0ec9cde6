package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
)

// Config sets up a store. Only URL is required.
type Config struct {
	// URL is the database: postgres://user:password@host/database?sslmode=… or a libpq
	// keyword/value string. Its parameters override the store's defaults, such as lock_timeout
	// (10 s) and idle_in_transaction_session_timeout (60 s). But pool_max_conns and
	// pool_max_conn_idle_time have no effect, and pool_max_conn_lifetime is at most a day.
	URL string
	// Logger receives messages for operators; nil means slog.Default.
	Logger *slog.Logger
	// MaxConns bounds the connections; 0 means 16, the minimum is 2. Updates always leave one
	// connection to Views, and Views one to Updates. More than about 16 gain nothing.
	MaxConns int
	// Clock replaces the database's clock, for tests.
	Clock func() time.Time
	// Patience bounds the work for a group of Updates or a batch of Reads, the wait for a COMMIT,
	// and the lookup of a COMMIT whose answer was lost; 0 means 30 s each.
	Patience time.Duration
	// Moving allows Open on a database into which a data folder is being copied. Without it,
	// Open returns [ErrMoving].
	Moving bool

	inspect bool // see Inspect
	// callers replaces maxCallers, for tests.
	callers int
	// companionWait replaces the constant companionWait, for tests.
	companionWait time.Duration
	// maxClosureTime replaces the constant maxClosureTime, for tests.
	maxClosureTime time.Duration
	// maxConnectRetry replaces the constant maxConnectRetry, for tests.
	maxConnectRetry time.Duration
	// trip receives the statements of each round trip, for tests.
	trip func(statements []string)
}

// Store is a gatehouse.Store on PostgreSQL, for any number of processes.
type Store struct {
	config    Config
	log       *slog.Logger
	pool      *pgxpool.Pool
	conn      *pgx.ConnConfig
	high      atomic.Int64 // the highest clock reading so far, in microseconds
	lag       atomic.Int64 // how far the clock is behind high, in nanoseconds; 0 below maxSilentLag
	lagLogged atomic.Int64 // when the lag was last logged, in seconds

	// updateSlots bounds the connections of Updates, viewSlots those of Views. callerSlots
	// bounds the running closures of Updates, which may outnumber the connections.
	updateSlots, viewSlots, callerSlots chan struct{}
	// longWaitSlots bounds the Updates that wait long for a lock; each of them also needs an
	// update slot. lockQueue is where Updates that want the same lock wait.
	longWaitSlots chan struct{}
	lockQueue     lockQueue
	// setTenantLongWait is the first statement of an Update that may wait long for a lock.
	setTenantLongWait string
	// groupQueue is where Updates wait to form a group, reads where Reads wait to form a batch.
	groupQueue groupQueue
	reads      readQueue
	// fullCeilings has the ceilings that refused a claim lately.
	fullCeilings fullCeilings
	// pushScan, leafScan, stepScan and expiryScan are the positions at which the scans of the
	// queues of the dispatcher, the sequencer, the step workers and the sweeper begin.
	pushScan, leafScan, stepScan, expiryScan scanStart
	searchHead                               searchHead
	// timelines refuses servers that were replaced by another primary.
	timelines *timelines

	closing   chan struct{}
	closeOnce sync.Once
}

var _ gatehouse.Store = (*Store)(nil)

// Open connects, and creates or migrates the tables when needed. Any number of processes may
// call it at the same time.
func Open(ctx context.Context, config Config) (*Store, error) {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.MaxConns == 0 {
		config.MaxConns = 16
	}
	config.MaxConns = max(config.MaxConns, 2)
	if config.callers == 0 {
		config.callers = maxCallers
	}
	if config.companionWait == 0 {
		config.companionWait = companionWait
	}
	if config.maxClosureTime == 0 {
		config.maxClosureTime = maxClosureTime
	}
	if config.maxConnectRetry == 0 {
		config.maxConnectRetry = maxConnectRetry
	}
	if config.Patience == 0 {
		config.Patience = 30 * time.Second
	}
	if err := pgurl.Check(config.URL); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	pc, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	pc.MaxConns = int32(min(config.MaxConns, 10_000))
	// Servers allow few connections: close idle ones soon, so that other clients can connect.
	pc.MaxConnIdleTime = time.Minute
	// After two days, beginSession may delete the row of a connection's session: the connection
	// must end before.
	pc.MaxConnLifetime = min(pc.MaxConnLifetime, 24*time.Hour)
	pc.MaxConnLifetimeJitter = min(pc.MaxConnLifetimeJitter, time.Hour)
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	for name, value := range settings() {
		if pc.ConnConfig.RuntimeParams[name] == "" {
			pc.ConnConfig.RuntimeParams[name] = value
		}
	}
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	pc.ConnConfig.DialFunc = dialer().DialContext // connect_timeout still bounds the whole attempt
	known := newTimelines(config.Logger)
	pc.ConnConfig.ValidateConnect = known.guard(pc.ConnConfig.ValidateConnect)
	pc.PrepareConn = known.usable
	pc.BeforeConnect, pc.AfterConnect = attachSession, registerSession
	if config.inspect {
		pc.BeforeConnect, pc.AfterConnect = nil, onlyRead // a reader needs no session
		err = inspectable(ctx, pc.ConnConfig)
	} else {
		err = migrate(ctx, pc.ConnConfig, migrations, config.Moving, config.Logger)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := warnOfBypass(ctx, pool, config.Logger); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Store{
		config: config, log: config.Logger, pool: pool, conn: pc.ConnConfig,
		updateSlots: make(chan struct{}, config.MaxConns-1), viewSlots: make(chan struct{}, config.MaxConns-1),
		callerSlots: make(
			chan struct{},
			config.callers,
		), longWaitSlots: make(chan struct{}, max(1, (config.MaxConns-1)/2)),
		lockQueue:  lockQueue{queues: make(map[lockKey]keyQueue)},
		pushScan:   scanStart{table: "push", query: pushMarks, times: true},
		leafScan:   scanStart{table: "audit_waiting", query: leafMarks},
		stepScan:   scanStart{table: "step", query: stepMarks, times: true},
		expiryScan: scanStart{table: "action", query: expiryMark, times: true},
		closing:    make(chan struct{}), timelines: known,
	}
	if s.setTenantLongWait, err = longLockTimeout(ctx, pool); err == nil {
		err = s.restoreClock(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return s, nil
}

// settings are the parameters of each connection. Every statement is written for an index and
// reads few rows through it. The planner must not choose another plan because the tables were
// empty when it planned: a prepared statement keeps its plan until the next ANALYZE, and a table
// can grow a lot before that. A new plan for each call's arguments would gain nothing.
func settings() map[string]string {
	return map[string]string{
		"application_name":                    "gatehouse",
		"lock_timeout":                        "10s",
		"idle_in_transaction_session_timeout": "60s",
		"row_security":                        "on", // "off" is for pg_dump: every statement would fail
		"enable_seqscan":                      "off",
		"enable_bitmapscan":                   "off",
		"enable_sort":                         "off",
		"plan_cache_mode":                     "force_generic_plan",
		"enable_hashjoin":                     "off",
		"enable_mergejoin":                    "off",
		"enable_memoize":                      "off",
		"max_parallel_workers_per_gather":     "0",
		"jit":                                 "off",
	}
}

// Close waits for running work and closes the connections. Later calls of the store fail.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.pool.Close()
	})
	return nil
}

func (s *Store) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// usable returns an error if the context has ended or the store is closed.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed() {
		return errClosed
	}
	return nil
}

// takeSlot waits for a slot.
func (s *Store) takeSlot(ctx context.Context, slots chan struct{}) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return errClosed
	}
}

// acquire takes a connection from the pool.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	c, err := s.pool.Acquire(ctx)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.closed():
		return nil, errClosed
	}
	return nil, &dbError{lost, err}
}

// Remote marks a store whose reads cost round trips: see [gatehouse.Remote].
func (s *Store) Remote() {}
