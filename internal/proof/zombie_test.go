package proof

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestZombies lets leases end during calls. Either the server is stopped
// (SIGSTOP) while its calls hang at the target, and continues when their leases
// are over; or the ledger is locked longer than a lease, so that the old
// holder's write succeeds after a new holder has tried. A holder that lost its
// lease changes nothing, and nothing is applied twice. Whether the old holder or
// the sweep writes first is a race: up to 30 rounds are added until a result was
// late.
func TestZombies(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		inLegs(t, e, "zombies", goal{"stopped workers", 10, 500, 50},
			func(t *testing.T, l *leg, n int) { zombies(t, e, l, n) })
	})
}

func zombies(t *testing.T, e engine, l *leg, rounds int) {
	most := rounds + 30
	w := newWorldOn(t, e, 4*most, "")
	ana := w.admin.create(t, "ana", "person", "approver")
	db := openStore(t, w.gate)
	defer db.Close()
	var hanging atomic.Int64
	var mu sync.Mutex
	var free chan struct{}
	w.target.mu.Lock()
	w.target.stall = func(method string) *stall {
		mu.Lock()
		wait := free
		mu.Unlock()
		if method == http.MethodGet || wait == nil {
			return nil
		}
		return &stall{before: hanging.Add(1)%2 == 0, wait: func(*http.Request) { <-wait }}
	}
	w.target.mu.Unlock()
	approve := func(p object) *gatehouse.Action {
		a := w.agent.propose(t, p)
		must(t, ana.decide(a, "approved"), 200, "decided")
		return a
	}
	outlived := 0 // pushes whose lease ended while held
	late := func() int { return count(t, db, `SELECT count(*) FROM receipt WHERE late`) }
	round := 0
	for ; round < rounds || round < most && late() == 0; round++ {
		var actions []*gatehouse.Action
		if round%2 == 0 {
			mu.Lock()
			free = make(chan struct{})
			mu.Unlock()
			hanging.Store(0)
			for i := range 4 {
				actions = append(actions,
					approve(contact(fmt.Sprintf("zombie-%d-%d", round, i), [...]string{"update", "once"}[i%2], "new")))
			}
			until(t, "calls that hang", func() bool { return hanging.Load() >= 4 })
			victim, inHands := w.servers[0], 0
			for _, one := range w.servers {
				if n := count(t, db, `SELECT count(*) FROM push WHERE `+owned+` AND status = 'sent'`,
					strconv.Itoa(one.pid())); n > inHands {
					victim, inHands = one, n
				}
			}
			if err := victim.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1050 * time.Millisecond) // longer than every lease
			outlived += inHands - count(t, db,
				`SELECT count(*) FROM push WHERE `+owned+` AND status = 'sent' AND lease_until > ?`, strconv.Itoa(victim.pid()),
				now())
			mu.Lock()
			close(free)
			free = nil
			mu.Unlock()
			if err := victim.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		} else {
			for range 4 {
				actions = append(actions, w.agent.propose(t, price(w.sku(), "12.50")))
			}
			conn, err := w.shop.db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			for _, a := range actions {
				must(t, ana.decide(a, "approved"), 200, "decided")
			}
			until(t, "push at the ledger",
				func() bool { return count(t, db, `SELECT count(*) FROM push WHERE status = 'sent'`) > 0 })
			time.Sleep(1300 * time.Millisecond)
			outlived += count(t, db,
				`SELECT count(*) FROM push WHERE generation > 1 AND status IN ('picking', 'sent', 'queued')`)
			if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
		for _, a := range actions {
			if end := w.admin.finished(t, a.ID); end.Status != gatehouse.StatusApplied &&
				(a.Operation != "once" || end.Status != gatehouse.StatusUnknown) {
				t.Errorf("round %d: %s of %s is %s: %+v", round, a.Operation, a.Connector, end.Status, end.Failure)
			}
		}
	}
	l.add("stopped workers", rounds)
	l.add("leases that ended in their holders' hands", outlived)
	l.add("late results kept as evidence", late())
	t.Logf("pushes: %v",
		rowsOf(t, db, `SELECT connector, status, count(*) AS n, max(generation) AS claims FROM push GROUP BY 1, 2`))
	if outlived < round || late() == 0 {
		t.Errorf("only %d leases ended while they were held, and %d late results arrived", outlived, late())
	}
	w.check(t, newJournal())
}
