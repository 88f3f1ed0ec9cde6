package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	// URL is the database: postgres://user:password@host/database?sslmode=…
	// or a keyword/value string, as libpq has them. Its parameters win over
	// what the store would set, such as lock_timeout (10 s) and
	// idle_in_transaction_session_timeout (60 s).
	URL string
	// Logger takes what operators should know; nil is slog.Default.
	Logger *slog.Logger
	// MaxConns bounds the connections; 0 means 16, the least is 2. Updates and
	// Views each leave one to the other. More than about 16 gain nothing.
	MaxConns int
	// Clock replaces the database's clock, for tests.
	Clock func() time.Time
	// Patience is how long a COMMIT is waited for, and how long one whose
	// answer was lost is looked up; 0 means 30 s each.
	Patience time.Duration
	// Moving opens a database into which a data folder is being copied; without
	// it that is [ErrMoving].
	Moving bool

	inspect bool // see Inspect
	// callers replaces maxCallers, for tests.
	callers int
	// trip is told the statements of each round trip, for tests.
	trip func(statements []string)
}

// Store is a gatehouse.Store on PostgreSQL, for any number of processes.
type Store struct {
	config Config
	log    *slog.Logger
	pool   *pgxpool.Pool
	conn   *pgx.ConnConfig
	high   atomic.Int64 // the highest reading of the clock so far, in microseconds
	lag    atomic.Int64 // how far the clock is behind that, in nanoseconds, if far
	told   atomic.Int64 // when it was last told so, in seconds

	// Places for Updates' connections and for Views, and for closures of
	// Updates under way, of which there are more.
	updates, views, callers chan struct{}
	// patience has places for Updates that wait for a lock for long; they need one
	// of the others besides. tickets is where those wait that want the same.
	patience chan struct{}
	tickets  tickets
	// patiently is what an Update begins with that may wait long for a lock.
	patiently string
	// line is where Updates wait for each other; sets has the statements that
	// groups of them send.
	line line
	sets map[string]*set
	// Where the queues of the dispatcher, the sequencer, those who carry out steps
	// and the sweeper begin.
	pushes, leaves, steps, pending front
	// timelines knows the servers that others took the place of.
	timelines *timelines
	// wholes are a decision in one statement, without and with an answer.
	wholes [2]string

	closing   chan struct{}
	closeOnce sync.Once
}

var _ gatehouse.Store = (*Store)(nil)

// Open connects, and creates or migrates the tables where needed. Any number
// of processes may do so at the same time.
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
	// Servers have few connections: what a rush took, others can have after it.
	pc.MaxConnIdleTime = time.Minute
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	for name, value := range settings() {
		if pc.ConnConfig.RuntimeParams[name] == "" {
			pc.ConnConfig.RuntimeParams[name] = value
		}
	}
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	pc.ConnConfig.DialFunc = dialer().DialContext // a connect_timeout bounds it all the same
	known := newTimelines(config.Logger)
	pc.ConnConfig.ValidateConnect = known.guard(pc.ConnConfig.ValidateConnect)
	pc.PrepareConn = known.current
	pc.BeforeConnect, pc.AfterConnect = attend, register
	if config.inspect {
		pc.BeforeConnect, pc.AfterConnect = nil, onlyRead // who only reads needs no session
		err = inspectable(ctx, pc.ConnConfig)
	} else {
		err = migrate(ctx, pc.ConnConfig, migrations, config.Moving)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := warn(ctx, pool, config.Logger); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Store{
		sets: makeSets(), wholes: [2]string{makeWhole(false), makeWhole(true)},
		config: config, log: config.Logger, pool: pool, conn: pc.ConnConfig,
		updates: make(chan struct{}, config.MaxConns-1), views: make(chan struct{}, config.MaxConns-1),
		callers: make(chan struct{}, config.callers), patience: make(chan struct{}, max(1, (config.MaxConns-1)/2)),
		tickets: tickets{lines: make(map[thing]waiters)},
		pushes:  front{table: "push", look: pushMarks, times: true},
		leaves:  front{table: "audit_waiting", look: leafMarks},
		steps:   front{table: "step", look: stepMarks, times: true},
		pending: front{table: "action", look: expiryMark, times: true},
		closing: make(chan struct{}), timelines: known,
	}
	if s.patiently, err = patiently(ctx, pool); err == nil {
		err = s.recall(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return s, nil
}

// settings are those of each connection. Every statement is written for an
// index, and reads few rows by it. The planner must not find otherwise because
// the tables were empty when it looked: prepared statements keep their plan
// until the next ANALYZE, and a table can grow a lot before that. Nor is there
// anything to find by planning anew for each call's arguments.
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

// Close lets what runs finish, and closes the connections. Later calls of the
// store fail.
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

// may reports what is in the way of anything.
func (s *Store) may(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed() {
		return errClosed
	}
	return nil
}

// take waits for a place.
func (s *Store) take(ctx context.Context, places chan struct{}) error {
	if err := s.may(ctx); err != nil {
		return err
	}
	select {
	case places <- struct{}{}:
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

// Distant says that questions cost round trips: see [gatehouse.Distant].
func (s *Store) Distant() {}

// View runs fn on one snapshot. When ctx ends, the running statement ends too.
func (s *Store) View(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	return s.look(ctx, false, fn)
}

// Read is View of one question, in one round trip.
func (s *Store) Read(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	return s.look(ctx, true, fn)
}

// connecting is how long a View is kept by a server that refuses connections, as
// one does that restarts. Nothing was asked by then, so all may be tried again.
const connecting = time.Second

// viewing takes a place for a View, and a connection. Between its attempts it
// leaves the place to others, so that they wait beside each other.
func (s *Store) viewing(ctx context.Context) (*pgxpool.Conn, error) {
	began := time.Now()
	for pause := connecting / 20; ; pause *= 2 {
		if err := s.take(ctx, s.views); err != nil {
			return nil, err
		}
		c, err := s.acquire(ctx)
		if err == nil {
			return c, nil
		}
		<-s.views
		if kindOf(err) != lost || time.Since(began)+pause > connecting {
			return nil, err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-s.closing:
			timer.Stop()
			return nil, errClosed
		}
	}
}

func (s *Store) look(ctx context.Context, single bool, fn func(gatehouse.ReadTx) error) error {
	c, err := s.viewing(ctx)
	if err != nil {
		return err
	}
	t := &readTx{s: s, ctx: ctx, c: c.Conn(), view: true, single: single}
	defer func() {
		t.end = true
		leave := func() {
			t.leave(c)
			<-s.views
		}
		if t.open() {
			go leave() // nobody has to wait for the end of what only read
		} else {
			leave()
		}
	}()
	err = fn(t.walled())
	if t.err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = t.err
	}
	return err
}

// open reports whether the connection is within a transaction.
func (t *readTx) open() bool {
	return t.begun && !t.c.IsClosed() && t.c.PgConn().TxStatus() != 'I'
}

// leave rolls back what was not committed, and gives the connection back.
func (t *readTx) leave(c *pgxpool.Conn) {
	if t.open() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 5*time.Second)
		defer cancel()
		t.s.tell([]query{{sql: `rollback`}})
		if _, err := t.c.Exec(ctx, `rollback`); err != nil {
			_ = t.c.Close(ctx)
		}
	}
	c.Release()
}
