package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// journal records the results that callers of Update got, by the tenant that they stored.
type journal struct {
	sync.Mutex
	stored, failed map[string]error
}

// note stores a tenant and a leaf, and records the result.
func (j *journal) note(t *testing.T, s *Store, id string) {
	err := s.Update(context.Background(), id, func(tx gatehouse.Tx) error {
		if err := tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()}); err != nil {
			return err
		}
		if _, err := tx.FindTenant(); err != nil {
			return err
		}
		return tx.AppendLeaf(&gatehouse.Leaf{Tenant: id, Type: "t", Subject: id, Actor: "a"})
	})
	j.Lock()
	defer j.Unlock()
	if err == nil {
		j.stored[id] = nil
		return
	}
	j.failed[id] = err
	if !errors.Is(err, gatehouse.ErrBusy) {
		t.Errorf("%s: error %v, want busy", id, err)
	}
}

// storm writes from several goroutines while disturb runs, then checks the journal: what was
// acknowledged is stored, what failed is not, and nothing is stored partly or twice.
func storm(t *testing.T, s *Store, disturb func(written func(more int))) {
	t.Helper()
	j := &journal{stored: make(map[string]error), failed: make(map[string]error)}
	var count atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				j.note(t, s, fmt.Sprintf("t-%d-%d", g, i))
				count.Add(1)
			}
		})
	}
	disturb(func(more int) {
		for end := count.Load() + int64(more); count.Load() < end && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	})
	close(stop)
	wg.Wait()
	t.Logf("%d stored, %d failed", len(j.stored), len(j.failed))
	err := s.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) error {
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		there := make(map[string]bool)
		for _, n := range tenants {
			there[n.ID] = true
			if err := j.failed[n.ID]; err != nil {
				t.Errorf("%s is stored and failed: %v", n.ID, err)
			}
		}
		for id := range j.stored {
			if !there[id] {
				t.Errorf("%s was acknowledged and is lost", id)
			}
		}
		leaves, err := q.UnnumberedLeaves(1 << 30)
		if len(leaves) != len(tenants)-1 {
			t.Errorf("%d leaves for %d transactions", len(leaves), len(tenants)-1)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestServerRestarted stops the server under load, by a crash and in order.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t)
	s := openTest(t, Config{URL: c.DSN("postgres")})
	storm(t, s, func(written func(int)) {
		for _, crash := range []bool{true, false, true} {
			written(50)
			if err := c.Down(crash); err != nil {
				t.Error(err)
			}
			if err := c.Up(); err != nil {
				t.Error(err)
				return
			}
		}
		written(50)
	})
}

// TestSessionsKilled terminates sessions under load, at any point.
func TestSessionsKilled(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	storm(t, s, func(written func(int)) {
		for range 8 {
			statement(t, s.config.URL, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`)
			written(7)
		}
	})
}

// The ways to lose a COMMIT.
const (
	loseNothing  = int32(iota)
	loseAnswer   // the server commits, but its answer does not arrive
	loseRequest  // the connection breaks before the COMMIT reaches the server
	swallowWhole // the COMMIT never reaches the server, and its session stays open
	endSession   // the server commits, but reports a shutdown instead
)

// proxy is between the store and the server.
type proxy struct {
	dir string
	// server is the server's socket; gone refuses new connections.
	server string
	gone   atomic.Bool
	// refuse is how many more connections it refuses.
	refuse atomic.Int32
	mu     sync.Mutex
	conns  []net.Conn
	// lose is applied to the next message of the client.
	lose atomic.Int32
	// client, if set, forwards what a client sends; then nothing is lost.
	client func(server io.Writer, client net.Conn) error
}

// newProxy returns a proxy and its address.
func newProxy(t *testing.T, dsn string) (p *proxy, through string) {
	t.Helper()
	return newProxyBy(t, dsn, nil)
}

// newProxyBy returns a proxy that forwards client messages with a function.
func newProxyBy(
	t *testing.T, dsn string, client func(server io.Writer, client net.Conn) error,
) (p *proxy, through string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	const socket = ".s.PGSQL.5432"
	p = &proxy{client: client, dir: t.TempDir(), server: filepath.Join(q.Get("host"), socket)}
	if u.Port() != "" || u.Host != "" {
		t.Fatalf("the test needs a server on a unix socket, not %s", dsn)
	}
	l, err := net.Listen("unix", filepath.Join(p.dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(t, c) })
		}
	})
	q.Set("host", p.dir)
	u.RawQuery = q.Encode()
	return p, u.String()
}

func (p *proxy) serve(t *testing.T, client net.Conn) {
	defer client.Close()
	if p.gone.Load() || p.refuse.Load() > 0 && p.refuse.Add(-1) >= 0 {
		return
	}
	server, err := net.Dial("unix", p.server)
	if err != nil {
		t.Error(err)
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var mute, end atomic.Bool
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer client.Close()
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			if err == nil && end.Load() {
				fatal := pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01",
					Message: "shutting down"}
				if b, err := fatal.Encode(nil); err == nil {
					_, _ = client.Write(b)
				}
			}
			if err != nil || mute.Load() {
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	if p.client != nil {
		_ = p.client(server, client) // until one side closes the connection
		server.Close()
		<-answered
		return
	}
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if err != nil {
			server.Close()
			<-answered
			return
		}
		lose := p.lose.Swap(loseNothing)
		switch lose {
		case loseAnswer, endSession:
			end.Store(lose == endSession)
			mute.Store(true)
		case loseRequest:
			server.Close()
			<-answered
			return
		case swallowWhole:
			<-answered // until the server ends the session
			server.Close()
			return
		}
		if _, err := server.Write(b[:n]); err != nil {
			server.Close()
			<-answered
			return
		}
		if lose == loseAnswer || lose == endSession {
			<-answered // the server has answered, so the transaction is committed
			server.Close()
			return
		}
	}
}

// TestViewWaitsForAConnection: a server that refuses connections for a moment causes no error;
// one that keeps refusing does, and the View keeps no slot.
func TestViewWaitsForAConnection(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, database(t))
	s := openTest(t, Config{URL: through, MaxConns: 2})
	view := func(ctx context.Context) error {
		return s.ViewQueues(ctx, func(q gatehouse.ReadQueues) error { _, err := q.ListTenants(); return err })
	}
	const never = 1 << 20
	for _, c := range []struct {
		name   string
		refuse int32
		retry  time.Duration
		want   error
	}{
		{"a moment", 2, time.Minute, nil}, {"always", never, maxConnectRetry, gatehouse.ErrBusy},
		{"again", 3, time.Minute, nil},
	} {
		s.config.maxConnectRetry = c.retry
		p.refuse.Store(c.refuse)
		s.pool.Reset()
		if err := view(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if left := p.refuse.Load(); c.want != nil && left > never-2 {
			t.Errorf("%s: %d attempts", c.name, never-left)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := view(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has gone: %v", err)
	}
}

// TestCommitLost loses a COMMIT in each way: the store finds the outcome, and the transaction
// is stored exactly once.
func TestCommitLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lose int32
		runs int
	}{{"answer", loseAnswer, 1}, {"request", loseRequest, 2}, {"session stays open", swallowWhole, 2}, {"shut down",
		endSession, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, through := newProxy(t, database(t))
			s := openTest(t, Config{URL: through, MaxConns: 2, Patience: 5 * time.Second})
			runs := 0
			write := func(id string, lose int32) error {
				return s.Update(context.Background(), id, func(tx gatehouse.Tx) error {
					runs++
					if err := tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()}); err != nil {
						return err
					}
					if runs == 1 {
						p.lose.Store(lose) // the next message contains the last write and COMMIT
					}
					return nil
				})
			}
			// The warm-up prepares the statements.
			if err := write("warm", loseNothing); err != nil {
				t.Fatal(err)
			}
			runs = 0
			if err := write("acme", c.lose); err != nil {
				t.Fatalf("Update: %v", err)
			}
			if runs != c.runs {
				t.Errorf("the closure ran %d times, want %d", runs, c.runs)
			}
			if err := s.View(context.Background(), "acme", func(tx gatehouse.ReadTx) error {
				_, err := tx.FindTenant()
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCommitNeverKnown loses the answer to a COMMIT, and every connection after that: the error does not
// allow a retry.
func TestCommitNeverKnown(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, database(t))
	s := openTest(t, Config{URL: through, MaxConns: 2, Patience: 300 * time.Millisecond})
	var err error
	for _, lose := range []int32{loseNothing, loseAnswer} {
		err = s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			err := tx.InsertTenant(&gatehouse.Tenant{ID: fmt.Sprintf("t%d", lose), CreatedAt: tx.Now()})
			p.lose.Store(lose)
			p.gone.Store(lose == loseAnswer)
			return err
		})
	}
	if err == nil || errors.Is(err, gatehouse.ErrBusy) {
		t.Errorf("error %v: it must not invite to try again", err)
	}
}

// TestFence looks up a transaction before its COMMIT arrives: the lookup reports it as lost,
// and the COMMIT then fails.
func TestFence(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	runs := 0
	err := s.Update(ctx, "acme", func(w gatehouse.Tx) error {
		if runs++; runs > 1 {
			return errors.New("it was run again")
		}
		now := w.Now() // the transaction has a connection from here on
		o := *sessionOf(w.(*tx).c)
		o.pid = 0 // so that the lookup does not end the session
		if err := w.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: now}); err != nil {
			return err
		}
		for range 2 {
			if stored, err := s.outcome(ctx, o); stored || err != nil {
				t.Errorf("stored %v, error %v", stored, err)
			}
		}
		return nil
	})
	if !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("Update: error %v, want a conflict", err)
	}
	err = s.View(ctx, "acme", func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err })
	if !errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("it was stored after all: %v", err)
	}
}
