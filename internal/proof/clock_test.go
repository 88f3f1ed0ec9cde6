package proof

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestClockJumps makes the store's clock jump forward and back by hours around an expiry, a hold
// and a lease: on SQLite the wall clock of a running server, on PostgreSQL the database's clock,
// under two replicas. After a jump forward, everything that is due ends, once. After a jump back,
// time does not advance, even across a kill: nothing that has expired revives, and no replica
// considers another's lease ended.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		var c clock
		if e.name == onPostgres.name {
			e.dsn = func(t testing.TB) (dsn string) {
				dsn, c.to = pgtest.Skewed(t)
				return dsn
			}
		}
		oneLeg(t, e, "clock jumps", func(t *testing.T, l *leg) {
			w := newWorldOn(t, e, 50, "")
			if c.to == nil {
				c = wallClock(t, w.servers[0])
			}
			clockJumps(t, w, c, l)
		})
	})
}

func clockJumps(t *testing.T, w *world, clock clock, l *leg) {
	ana := w.admin.create(t, "ana", "person", "approver")
	to := func(d time.Duration) {
		t.Helper()
		clock.to(d)
		l.add("jumps", 1)
	}
	approved := func(p object) *gatehouse.Action {
		t.Helper()
		a := w.agent.propose(t, p)
		must(t, ana.decide(a, "approved"), 200, "decided")
		return a
	}
	applied := func(a *gatehouse.Action) {
		t.Helper()
		if end := w.admin.finished(t, a.ID); end.Status != gatehouse.StatusApplied || w.effects(t, a) != 1 {
			t.Fatalf("it is %s with %d effects: %+v", end.Status, w.effects(t, a), end.Failure)
		}
	}
	// every calls each server in turn.
	every := func(fn func()) {
		for range w.servers {
			fn()
		}
	}
	four := object{"expires_in": "4h"}
	late, early := w.agent.propose(t, price(w.sku(), "12.50", four)), w.agent.propose(t, price(w.sku(), "12.50", four))
	held := approved(price(w.sku(), "12.50", object{"action_type": "held"}))

	to(59 * time.Minute)
	applied(approved(price(w.sku(), "12.50")))
	if got := w.admin.action(t, held.ID); got.Status != gatehouse.StatusApproved || w.effects(t, held) != 0 {
		t.Errorf("a minute before its hold is over it is %s", got.Status)
	}
	to(61 * time.Minute)
	applied(held)

	to(4*time.Hour - 2*time.Minute)
	must(t, ana.decide(early, "approved"), 200, "decided")
	applied(early)
	to(4*time.Hour + time.Minute)
	every(func() { must(t, ana.decide(late, "approved"), 410, "expired") })
	db := openStore(t, w.gate)
	defer db.Close()
	until(t, "sweep of what has expired", func() bool {
		return count(t, db, `SELECT count(*) FROM action WHERE id = ? AND status = 'expired'`, late.ID) == 1
	})

	// The leases of two calls end during the calls.
	release := w.stallWrites()
	again, once := approved(contact("again", "update", "new")), approved(contact("once", "once", "new"))
	until(t, "calls that hang", func() bool {
		return w.target.callsFor(again.IdempotencyKey) > 0 && w.target.callsFor(once.IdempotencyKey) > 0
	})
	to(5 * time.Hour)
	until(t, "end of the leases", func() bool {
		return count(t, db, `SELECT count(*) FROM push WHERE action_id IN (?, ?) AND (generation > 1 OR status = 'unknown')`,
			again.ID, once.ID) == 2
	})
	release()
	applied(again)
	if end := w.admin.finished(t, once.ID); end.Status != gatehouse.StatusApplied &&
		end.Status != gatehouse.StatusUnknown {
		t.Errorf("class C is %s", end.Status)
	}
	if n := w.target.callsFor(once.IdempotencyKey); n != 1 {
		t.Errorf("%d calls of class C", n)
	}

	// Back, where nothing has happened yet.
	to(0)
	until(t, "word of the clock that is behind", func() bool { return w.behind(t) > 4*3600 })
	brief := w.agent.propose(t, price(w.sku(), "12.50", object{"expires_in": "1s"}))
	proposed := time.Now()
	release = w.stallWrites()
	slow := approved(contact("slow", "update", "new"))
	until(t, "call that hangs", func() bool { return w.target.callsFor(slow.IdempotencyKey) > 0 })
	release()
	applied(slow)
	w.target.script("failing", 429)
	failing := approved(contact("failing", "update", "new"))
	until(t, "call that fails", func() bool { return w.target.callsFor(failing.IdempotencyKey) > 0 })
	time.Sleep(time.Until(proposed.Add(1100 * time.Millisecond))) // past its expiry, if time had advanced
	must(t, ana.decide(brief, "approved"), 200, "decided")
	applied(brief)
	every(func() { must(t, ana.decide(late, "approved"), 410, "expired") })
	w.servers[0].kill()
	w.servers[0].start()
	every(func() { must(t, ana.decide(late, "approved"), 410, "expired") })
	after := w.agent.propose(t, price(w.sku(), "12.50"))
	if after.ProposedAt.Before(brief.ProposedAt) {
		t.Errorf("proposed at %s, after what was proposed at %s", after.ProposedAt, brief.ProposedAt)
	}
	every(func() {
		if w.behind(t) < 4*3600 {
			t.Error("a process does not say that its clock is behind")
		}
	})
	// Some server takes these up, and some looks for ended leases meanwhile.
	for i := range 8 {
		a := approved(contact(fmt.Sprintf("blind-%d", i), "once", "new"))
		applied(a)
		if n := count(t, db, `SELECT count(*) FROM push WHERE action_id = ? AND generation > 1`, a.ID); n > 0 {
			t.Error("a lease that began just now counted as ended")
		}
	}

	to(6 * time.Hour)
	must(t, ana.decide(after, "approved"), 200, "decided")
	applied(after)
	applied(failing) // its retry was due at a time that did not come before
	if n := w.behind(t); n != 0 {
		t.Errorf("the clock is said to be %v seconds behind", n)
	}
	w.checkTables(t, db)
	w.onceEach(t)
	w.checkDoctor(t)
}

// behind reads how far the clock is behind the stored one, in seconds.
func (w *world) behind(t *testing.T) float64 {
	t.Helper()
	res := w.admin.get("/metrics")
	m := regexp.MustCompile(`(?m)^gatehouse_clock_behind_seconds (\S+)$`).FindSubmatch(res.raw)
	if res.status != http.StatusOK || m == nil {
		t.Fatalf("no such metric: %d", res.status)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stallWrites delays every write at the target, before its effect, until
// release is called.
func (w *world) stallWrites() (release func()) {
	free := make(chan struct{})
	w.target.mu.Lock()
	w.target.stall = func(method string) *stall {
		if method == http.MethodGet {
			return nil
		}
		return &stall{before: true, wait: func(*http.Request) { <-free }}
	}
	w.target.mu.Unlock()
	return sync.OnceFunc(func() {
		w.target.mu.Lock()
		w.target.stall = nil
		w.target.mu.Unlock()
		close(free)
	})
}

// clock is the clock of a gate. to sets its offset for all later readings.
type clock struct{ to func(time.Duration) }

const envClock = "PROOF_CLOCK"

// wallClock restarts a server with a clock whose offset is in a file.
func wallClock(t testing.TB, s *server) clock {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clock")
	c := clock{func(d time.Duration) {
		t.Helper()
		write(t, file+".new", d.String())
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}}
	c.to(0)
	path, err := mortal()
	if err != nil {
		t.Fatal(err)
	}
	s.binary = path
	s.env = append(s.env, envClock+"="+file)
	s.stop()
	s.start()
	return c
}
