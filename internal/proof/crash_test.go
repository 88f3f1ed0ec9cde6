package proof

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The counts without which a crash storm proves nothing.
const (
	crashAcks   = 20 // new acknowledgements before each kill
	crashStates = 10 // kills each while pushes are picking, and while they are sent
)

// What a round of the storm arranges before it kills.
const (
	roundPicking    = iota // reads of the http target hang: pushes stay picking
	roundSent              // its writes hang: pushes stay sent
	roundSQLSent           // the ledger is locked for writing
	roundSQLPicking        // the ledger is locked for reading, too
	roundFree              // nothing: whatever the moment brings
	roundKinds
)

// TestCrashStorm kills the server with SIGKILL again and again under load, at
// times when work hangs at every stage, and then walks the invariants.
func TestCrashStorm(t *testing.T) {
	kills := scale(50, 2000)
	w := newWorld(t, 1000*kills, "")
	s := &crashStorm{world: w, journal: newJournal(), db: openStore(t, w.gate)}
	defer s.db.Close()
	for _, name := range []string{"ana", "ben", "cleo", "dan"} {
		s.people = append(s.people, w.admin.create(t, name, "person", "approver"))
	}
	rng := seeded(t)
	w.target.mu.Lock()
	w.target.stall = s.stall
	w.target.mu.Unlock()
	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 8 {
		mine := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
		clients.Go(func() { s.client(ctx, mine) })
	}
	least := 1 << 30
	for round := range kills {
		if round%3 == 2 {
			s.rescued(t) // what the last kills left is taken up again before the next
		}
		if round%10 == 9 { // an orderly end, between the others
			s.stop()
			s.start()
		}
		acks := s.round(t, rng, round%roundKinds)
		least = min(least, acks)
		if t.Failed() {
			break
		}
	}
	cancel()
	clients.Wait()
	s.calm()
	w.heal(t, 90*time.Second)
	healed := time.Since(began)

	t.Logf("%d kills in %s, at least %d and in all %d acknowledgements (%d proposals, %d decisions, %d cancellations)",
		s.kills, healed.Round(time.Second), least, s.journal.acks, len(s.journal.proposed), len(s.journal.decided), len(s.journal.canceled))
	t.Logf("kills while pushes were picking %d (of the ledger %d), sent %d (of the ledger %d), claimed again %d",
		s.picking, s.sqlPicking, s.sent, s.sqlSent, s.again)
	t.Logf("at the target: %d calls, %d effects; pushes: %v", len(w.target.log()), len(w.target.effects), s.outcomes(t))
	if s.kills < kills || least < crashAcks || s.picking < crashStates || s.sent < crashStates {
		t.Errorf("the storm does not count: %d kills, at least %d acknowledgements, %d while picking, %d while sent",
			s.kills, least, s.picking, s.sent)
	}
	if s.sqlPicking < crashStates/2 || s.sqlSent < crashStates/2 || s.again < crashStates {
		t.Errorf("the storm does not count: at the ledger %d kills while picking, %d while sent; %d met work that an earlier kill had left",
			s.sqlPicking, s.sqlSent, s.again)
	}
	// Class A comes through every crash: only a call that cannot be repeated
	// may end as unknown, and nothing has reason to fail.
	if lost := rowsOf(t, s.db, `SELECT p.operation, u.connector, u.status, u.error_code, count(*) AS n FROM push u JOIN proposal p ON p.seq = u.action_seq
		WHERE u.status <> 'applied' AND NOT (u.status = 'unknown' AND p.operation = 'once') GROUP BY 1, 2, 3, 4`); len(lost) > 0 {
		t.Errorf("what was approved did not come through: %v", lost)
	}
	if used := count(t, s.db, `SELECT count(*) FROM ceiling_claim WHERE ceiling = 'by-count' AND released_at IS NULL`); used != 25 {
		t.Errorf("invariant 10: %d claims on a ceiling of 25, which the storm should have filled", used)
	}
	w.check(t, s.journal)
	w.stop()
}

type crashStorm struct {
	*world
	journal *journal
	people  []*person
	db      *sql.DB

	// hang names the method that hangs at the target, nil for none.
	hang atomic.Pointer[string]
	// free is closed to let go what hangs.
	mu      sync.Mutex
	free    chan struct{}
	hanging atomic.Int64
	seq     atomic.Int64
	fresh   atomic.Int64 // acknowledgements since the last start

	kills, picking, sent, sqlPicking, sqlSent int
	// again counts the kills that met a push on its second claim or a later one.
	again int
}

// stall holds up to four requests of the round's method, half of them before
// their effect and half after it. Those of a server that was killed meanwhile
// go on, as at a real target.
func (s *crashStorm) stall(method string) *stall {
	hang := s.hang.Load()
	if hang == nil || (*hang == http.MethodGet) != (method == http.MethodGet) || s.hanging.Load() >= 4 {
		return nil
	}
	n := s.hanging.Add(1)
	s.mu.Lock()
	free := s.free
	s.mu.Unlock()
	return &stall{before: n%2 == 0, wait: func(*http.Request) { <-free }}
}

// set begins a round in which requests of a method hang; "" for none.
func (s *crashStorm) set(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = make(chan struct{})
	s.hanging.Store(0)
	s.hang.Store(nil)
	if method != "" {
		s.hang.Store(&method)
	}
}

// calm lets everything go that hangs.
func (s *crashStorm) calm() {
	s.hang.Store(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free != nil {
		close(s.free)
		s.free = nil
	}
}

// round waits for the acknowledgements and the state that it wants, kills,
// looks at what the kill met, and starts the server again.
func (s *crashStorm) round(t *testing.T, rng *rand.Rand, kind int) (acks int) {
	t.Helper()
	switch kind {
	case roundPicking:
		s.set(http.MethodGet)
	case roundSent:
		s.set(http.MethodPatch)
	default:
		s.set("")
	}
	until(t, "acknowledgements", func() bool { return s.fresh.Load() >= crashAcks })
	unlock := func() {}
	switch kind {
	case roundPicking, roundSent:
		until(t, "a request that hangs at the target", func() bool { return s.hanging.Load() > 0 })
	case roundSQLSent:
		unlock = s.lockShop(t, "BEGIN IMMEDIATE")
		until(t, "a push that is sent to the ledger", func() bool { return s.held(t, "sent", "shop") > 0 })
	case roundSQLPicking:
		unlock = s.lockShop(t, "BEGIN EXCLUSIVE")
		until(t, "a push that reads the ledger", func() bool { return s.held(t, "picking", "shop") > 0 })
	}
	time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
	pid := s.cmd.Process.Pid
	s.kill()
	acks = int(s.fresh.Swap(0))
	s.kills++
	s.look(t, pid)
	unlock()
	s.calm()
	s.start()
	return acks
}

func until(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !fn(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the load brings no %s", what)
		}
	}
}

// lockShop locks the ledger from outside until unlock is called.
func (s *crashStorm) lockShop(t *testing.T, how string) (unlock func()) {
	t.Helper()
	conn, err := s.shop.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), how); err != nil {
		t.Fatalf("%s: %v", how, err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Errorf("unlock the ledger: %v", err)
		}
		conn.Close()
	}
}

// owned is whether a push is in the hands of the process with the number.
const owned = `lease_owner LIKE '%:' || ? || ':%'`

// held counts the pushes of a connector ("" for all) that the running server
// has in its hands in a state.
func (s *crashStorm) held(t *testing.T, status, connector string) int {
	return s.heldBy(t, s.cmd.Process.Pid, status, connector)
}

func (s *crashStorm) heldBy(t *testing.T, pid int, status, connector string) int {
	return count(t, s.db, `SELECT count(*) FROM push WHERE `+owned+` AND status = ? AND ? IN ('', connector)`, pid, status, connector)
}

// look reads from the store's file what the kill has met in the server's own
// hands: what earlier kills have left does not count.
func (s *crashStorm) look(t *testing.T, pid int) {
	t.Helper()
	for status, met := range map[string][2]*int{"picking": {&s.picking, &s.sqlPicking}, "sent": {&s.sent, &s.sqlSent}} {
		if s.heldBy(t, pid, status, "") > 0 {
			*met[0]++
		}
		if s.heldBy(t, pid, status, "shop") > 0 {
			*met[1]++
		}
	}
	if count(t, s.db, `SELECT count(*) FROM push WHERE `+owned+` AND status IN ('picking','sent') AND generation > 1`, pid) > 0 {
		s.again++
	}
}

// rescued waits until no lease of an earlier process is left.
func (s *crashStorm) rescued(t *testing.T) {
	t.Helper()
	until(t, "end of the leases of the dead", func() bool {
		return count(t, s.db, `SELECT count(*) FROM push WHERE status IN ('picking','sent') AND NOT (`+owned+`)`, s.cmd.Process.Pid) == 0
	})
}

func (s *crashStorm) outcomes(t *testing.T) []string {
	return rowsOf(t, s.db, `SELECT connector, status, count(*) AS n FROM push GROUP BY 1, 2`)
}

// client proposes and decides until the context ends. What it has begun it
// brings to an answer, over as many kills as it takes.
func (s *crashStorm) client(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		n := s.seq.Add(1)
		var p object
		switch key := fmt.Sprintf("crash-%d", n); rng.IntN(10) {
		case 0, 1, 2:
			p = price(s.sku(), fmt.Sprintf("%d.50", 11+n), object{"idempotency_key": key})
		case 3: // two persons, or one of the few places under a ceiling
			p = price(s.sku(), fmt.Sprintf("%d.50", 11+n), object{"idempotency_key": key, "action_type": [...]string{"pair", "counted"}[n%2]})
		case 4, 5, 6, 7:
			p = contact(key, "update", fmt.Sprintf("new-%d", n), object{"idempotency_key": key})
		default:
			p = contact(key, "once", fmt.Sprintf("new-%d", n), object{"idempotency_key": key})
		}
		var header []string
		if n%4 == 0 {
			header = []string{"Idempotency-Key", fmt.Sprintf("propose-%d", n)}
		}
		res := s.sure(ctx, func() answer { return s.agent.post("/proposed-actions", p, header...) })
		if res.status/100 != 2 {
			s.wrong(res, "propose")
			continue
		}
		a := &gatehouse.Action{ID: res.str("id"), Digest: gatehouse.Digest(res.str("digest"))}
		a.ActionType = res.str("action_type")
		s.journal.propose(a.ID, a.Digest)
		s.fresh.Add(1)
		s.settle(ctx, rng, a)
	}
}

// settle brings an action to one of its fates.
func (s *crashStorm) settle(ctx context.Context, rng *rand.Rand, a *gatehouse.Action) {
	first := rng.IntN(len(s.people))
	who, other := s.people[first], s.people[(first+1+rng.IntN(len(s.people)-1))%len(s.people)]
	stale := object{"acknowledge_stale": true} // the locked ledger must not hold a decision up
	switch fate := rng.IntN(20); {
	case fate < 12:
		s.told(ctx, a, who, "approved", func() answer { return who.decide(a, "approved", stale) })
		if a.ActionType == "pair" && fate < 10 {
			s.told(ctx, a, other, "approved", func() answer { return other.decide(a, "approved", stale) })
		}
	case fate < 15:
		s.told(ctx, a, who, "rejected", func() answer { return who.short(a, "reject") })
	case fate < 17:
		res := s.sure(ctx, func() answer { return s.agent.post("/proposed-actions/"+a.ID+"/cancel", nil) })
		if res.status != 200 {
			s.wrong(res, "cancel")
			return
		}
		s.journal.cancel(a.ID, s.agent.name)
		s.fresh.Add(1)
	case fate < 19: // two people disagree at the same moment
		var race sync.WaitGroup
		race.Go(func() {
			s.told(ctx, a, who, "approved", func() answer { return who.decide(a, "approved", stale) })
		})
		race.Go(func() {
			s.told(ctx, a, other, "rejected", func() answer { return other.decide(a, "rejected") })
		})
		race.Wait()
	}
}

// told asks until there is an answer, and notes what a person was told. A
// person's retry of what stands counts: the first answer may have been lost.
func (s *crashStorm) told(ctx context.Context, a *gatehouse.Action, who *person, outcome string, fn func() answer) {
	res := s.sure(ctx, fn)
	switch {
	case res.err != nil:
	case res.status == 200 && res.word() == "vote_recorded":
		s.journal.vote(a.ID, who.name)
		s.fresh.Add(1)
	case res.status == 200:
		if word := res.word(); word == "already_"+outcome && res.str("rejected_by") != "" && res.str("rejected_by") != who.name {
			s.wrong(res, "a retry is answered in another's name")
		}
		s.journal.decide(a.ID, outcome, who.name)
		s.fresh.Add(1)
	case res.status == 409 && (res.word() == "already_decided" || res.word() == "not_awaiting_approval"):
	case res.status == 409 && res.word() == "ceiling_exceeded" && a.ActionType == "counted":
	default:
		s.wrong(res, outcome)
	}
}

// sure repeats a call until the server has answered it. 5xx is no answer.
func (s *crashStorm) sure(ctx context.Context, fn func() answer) answer {
	for {
		res := fn()
		if res.err == nil && res.status < 500 {
			return res
		}
		if res.err == nil && res.status != http.StatusServiceUnavailable {
			s.wrong(res, "a call")
		}
		if ctx.Err() != nil && res.err == nil {
			return res
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *crashStorm) wrong(res answer, what string) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.wrong = append(s.journal.wrong, what+" was answered "+res.String())
}
