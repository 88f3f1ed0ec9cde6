package proof

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestFaults runs a load while the connections between clients, servers, store
// and targets fail, and while the store itself fails. Nothing is lost, repeated
// or left behind.
func TestFaults(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		inLegs(t, e, "faults", goal{"answers lost to clients", 50, 2000, 200},
			func(t *testing.T, l *leg, n int) { faults(t, e, l, n) })
	})
}

// faulty is a gate with wires in all its connections.
type faulty struct {
	*leg
	*world
	load    *load
	cluster *pgtest.Cluster // nil on a data folder
	// clients has a wire for each address that a server has had.
	clients sync.Map
	target  *wire
	store   *wire // nil on a data folder
}

func faults(t *testing.T, e engine, l *leg, lost int) {
	f := &faulty{leg: l}
	e.target = func(address string) string {
		f.target = newWire(t, "tcp", strings.TrimPrefix(address, "http://"))
		return "http://" + f.target.addr()
	}
	if e.dsn != nil {
		e.dsn = f.newCluster
		e.proxied = func(string) string {
			if f.store == nil {
				u, err := url.Parse(f.cluster.DSN("postgres"))
				if err != nil {
					t.Fatal(err)
				}
				f.store = newWire(t, "unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
			}
			return "postgres://postgres@" + f.store.addr() + "/postgres?sslmode=disable"
		}
	}
	f.world = newWorldOn(t, e, 40_000, "")
	f.address = f.through(t)
	f.load = newLoad(t, f.world, l.rng, 8)
	f.load.acks(t, crashAcks)
	f.lostToClients(t, lost)
	f.lostAtTheTarget(t, scale(20, 200))
	if f.store != nil {
		f.lostAtTheStore(t, scale(20, 200))
		f.restartedStore(t, scale(2, 20))
	} else {
		f.lockedStore(t, scale(2, 10))
	}
	f.load.stop()
	f.heal(t, 90*time.Second)
	l.add("acknowledgements", f.load.journal.acks)
	l.add("calls without an answer", int(f.load.lost.Load()))
	l.add("calls told to come again", int(f.load.busy.Load()))
	db := openStore(t, f.gate)
	defer db.Close()
	if lost := rowsOf(t, db,
		`SELECT p.operation, u.connector, u.status, u.error_code, count(*) AS n FROM push u
			JOIN proposal p ON p.seq = u.action_seq
		WHERE u.status <> 'applied' AND NOT (u.status = 'unknown' AND p.operation = 'once') GROUP BY 1, 2, 3, 4`); len(
		lost) > 0 {
		t.Errorf("approved changes were not applied: %v", lost)
	}
	f.check(t, f.load.journal)
}

func (f *faulty) newCluster(t testing.TB) string {
	f.cluster = pgtest.New(t)
	return f.cluster.DSN("postgres")
}

// through puts a wire in front of every server that is started.
func (f *faulty) through(t testing.TB) func(string) string {
	return func(address string) string {
		one, _ := f.clients.LoadOrStore(address, sync.OnceValue(func() *wire {
			return newWire(t, "tcp", strings.TrimPrefix(address, "http://"))
		}))
		return "http://" + one.(func() *wire)().addr()
	}
}

// each calls fn for every client wire.
func (f *faulty) each(fn func(*wire)) {
	f.clients.Range(func(_, one any) bool { fn(one.(func() *wire)()); return true })
}

// goesOn waits for proof that the gate works again.
func (f *faulty) goesOn(t *testing.T) {
	t.Helper()
	f.load.fresh.Store(0)
	f.load.acks(t, crashAcks)
}

// lostToClients loses answers, and a few requests, between clients and servers.
func (f *faulty) lostToClients(t *testing.T, n int) {
	answers := func() (sum int) {
		f.each(func(w *wire) { sum += int(w.answersLost.Load()) })
		return sum
	}
	f.each(func(w *wire) {
		w.trouble(troubles{loseAnswer: 0.2, loseRequest: 0.05, delay: 0.1, forAsLong: 20 * time.Millisecond})
	})
	until(t, "lost answers", func() bool { return answers() >= n })
	f.each(func(w *wire) { w.calm(); f.add("requests lost on their way", int(w.requestsLost.Load())) })
	f.add("answers lost to clients", answers())
	f.goesOn(t)
}

// lostAtTheTarget does the same between the servers and the http target.
func (f *faulty) lostAtTheTarget(t *testing.T, n int) {
	f.target.trouble(
		troubles{loseAnswer: 0.15, loseRequest: 0.1, delay: 0.1, forAsLong: 1500 * time.Millisecond},
	) // longer than a lease
	until(t, "lost answers of the target", func() bool {
		return f.target.answersLost.Load() >= int64(n) && f.target.requestsLost.Load() >= int64(n)/2
	})
	f.target.calm()
	f.add("answers of the target lost", int(f.target.answersLost.Load()))
	f.goesOn(t)
}

// lostAtTheStore first loses the answers to COMMITs, then any message, between
// the servers and PostgreSQL.
func (f *faulty) lostAtTheStore(t *testing.T, n int) {
	f.store.trouble(troubles{loseAnswer: 0.1, among: []byte("COMMIT\x00")})
	until(t, "lost COMMITs", func() bool { return f.store.answersLost.Load() >= int64(n) })
	f.store.calm()
	commits := int(f.store.answersLost.Load())
	f.add("answers to COMMIT lost", commits)
	f.goesOn(t)
	f.store.trouble(troubles{loseAnswer: 0.02, loseRequest: 0.02, delay: 0.05, forAsLong: 50 * time.Millisecond})
	until(t, "lost words of the store", func() bool {
		return f.store.answersLost.Load() >= int64(commits+n/2) && f.store.requestsLost.Load() >= int64(n/2)
	})
	f.store.calm()
	f.add("connections to the store cut", int(f.store.answersLost.Load())-commits+int(f.store.requestsLost.Load()))
	f.goesOn(t)
}

// restartedStore crashes PostgreSQL during transactions and restarts it.
func (f *faulty) restartedStore(t *testing.T, n int) {
	for range n {
		if err := f.cluster.Down(true); err != nil {
			t.Fatal(err)
		}
		if err := f.cluster.Up(); err != nil {
			t.Fatal(err)
		}
		f.add("crashes of PostgreSQL", 1)
		f.goesOn(t)
	}
}

// lockedStore lets another process hold the write lock of the store's file:
// briefly, and once until calls are told that the store is busy.
func (f *faulty) lockedStore(t *testing.T, n int) {
	db := writeStore(t, f.gate)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range n {
		if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before := f.load.busy.Load()
			until(t, "answers that the store is busy", func() bool { return f.load.busy.Load() > before })
		} else {
			time.Sleep(time.Duration(f.rng.IntN(1500)) * time.Millisecond)
		}
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		f.add("locks on the store's file", 1)
		f.goesOn(t)
	}
}
