package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// load is a set of clients that keep working whatever happens around them. Each
// client repeats its call over any number of failures until it has an answer,
// and the journal records what it was told.
type load struct {
	*world
	journal *journal
	people  []*person
	seq     atomic.Int64
	fresh   atomic.Int64 // acknowledgements since the last reset
	lost    atomic.Int64 // calls without an answer
	busy    atomic.Int64 // calls that must be repeated later
	// While full is set, a call may get an error; refused counts those.
	full    atomic.Bool
	refused atomic.Int64
	stop    func()
}

// newLoad starts clients on a world, which needs as many items as the clients
// decide on.
func newLoad(t *testing.T, w *world, rng *rand.Rand, clients int) *load {
	t.Helper()
	l := &load{world: w, journal: newJournal()}
	for _, name := range []string{"ana", "ben", "cleo", "dan"} {
		l.people = append(l.people, w.admin.create(t, name, "person", "approver"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range clients {
		mine := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
		wg.Go(func() { l.client(t, ctx, mine) })
	}
	l.stop = func() { cancel(); wg.Wait() }
	return l
}

// acks waits for n new acknowledgements.
func (l *load) acks(t *testing.T, n int64) {
	t.Helper()
	until(t, "acknowledgements", func() bool { return l.fresh.Load() >= n })
}

// client proposes and decides until the context ends or few items are left.
func (l *load) client(t *testing.T, ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil && l.next.Load() < l.items-64 {
		n := l.seq.Add(1)
		var p object
		left := false
		switch key := fmt.Sprintf("load-%d", n); rng.IntN(20) {
		case 0: // expires unanswered
			p, left = contact(key, "update", "late", object{"idempotency_key": key, "expires_in": "1s"}), true
		case 1, 2, 3, 4, 5:
			p = price(l.sku(), fmt.Sprintf("%d.50", 11+n), object{"idempotency_key": key})
		case 6, 7: // two persons, or a place under a tight ceiling
			p = price(l.sku(), fmt.Sprintf("%d.50", 11+n),
				object{"idempotency_key": key, "action_type": [...]string{"pair", "counted"}[n%2]})
		case 8, 9, 10, 11:
			p = contact(key, "update", fmt.Sprintf("new-%d", n), object{"idempotency_key": key})
		case 12, 13, 14, 15:
			p = l.mixed(t, n, key)
		default:
			p = contact(key, "once", fmt.Sprintf("new-%d", n), object{"idempotency_key": key})
		}
		var header []string
		if n%4 == 0 {
			header = []string{"Idempotency-Key", fmt.Sprintf("propose-%d", n)}
		}
		res := l.sure(ctx, func() answer { return l.agent.post("/proposed-actions", p, header...) })
		if res.status/100 != 2 {
			l.wrong(ctx, res, "propose")
			continue
		}
		a := &gatehouse.Action{ID: res.str("id"), Digest: gatehouse.Digest(res.str("digest"))}
		a.ActionType = res.str("action_type")
		l.journal.propose(a.ID, a.Digest)
		l.fresh.Add(1)
		if !left {
			l.settle(ctx, rng, a)
		}
		l.rest(ctx)
	}
}

// rest pauses a client when there have been enough acknowledgements since the last fault: a storm
// that waits for the end of a lease needs some load, and not all that the machine can do. The long
// form never rests.
func (l *load) rest(ctx context.Context) {
	if long() || l.fresh.Load() < crashAcks {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(400 * time.Millisecond):
	}
}

// mixed proposes a change of a target of the mixture, if there is one.
func (l *load) mixed(t *testing.T, n int64, key string) object {
	with := object{"idempotency_key": key}
	if l.mix == nil {
		return contact(key, "update", fmt.Sprintf("new-%d", n), with)
	}
	switch i := int(n) % (3 + len(systemNames)); i {
	case 0:
		return merged(l.mix.part(t, 11+n), with)
	case 1, 2:
		return merged(l.mix.incident([]string{"help", "desk"}[i-1]), with)
	default:
		return merged(l.mix.propose(systemNames[i-3]), with)
	}
}

// settle brings an action to one of its possible ends, or leaves it open.
func (l *load) settle(ctx context.Context, rng *rand.Rand, a *gatehouse.Action) {
	first := rng.IntN(len(l.people))
	who, other := l.people[first], l.people[(first+1+rng.IntN(len(l.people)-1))%len(l.people)]
	stale := object{"acknowledge_stale": true} // the locked ledger must not delay a decision
	switch fate := rng.IntN(20); {
	case fate < 12:
		l.told(ctx, a, who, "approved", func() answer { return who.decide(a, "approved", stale) })
		if a.ActionType == "pair" && fate < 10 {
			l.told(ctx, a, other, "approved", func() answer { return other.decide(a, "approved", stale) })
		}
	case fate < 15:
		l.told(ctx, a, who, "rejected", func() answer { return who.short(a, "reject") })
	case fate < 17:
		res := l.sure(ctx, func() answer { return l.agent.post("/proposed-actions/"+a.ID+"/cancel", nil) })
		if res.status != 200 {
			l.wrong(ctx, res, "cancel")
			return
		}
		l.journal.cancel(a.ID, l.agent.name)
		l.fresh.Add(1)
	case fate < 19: // two people disagree at the same time
		var race sync.WaitGroup
		race.Go(func() {
			l.told(ctx, a, who, "approved", func() answer { return who.decide(a, "approved", stale) })
		})
		race.Go(func() {
			l.told(ctx, a, other, "rejected", func() answer { return other.decide(a, "rejected") })
		})
		race.Wait()
	}
}

// told asks until there is an answer and records what a person was told. A repeated decision
// counts: the first answer may have been lost.
func (l *load) told(ctx context.Context, a *gatehouse.Action, who *person, outcome string, fn func() answer) {
	res := l.sure(ctx, fn)
	switch {
	case res.err != nil:
	case res.status == 200 && res.word() == "vote_recorded":
		l.journal.vote(a.ID, who.name)
		l.fresh.Add(1)
	case res.status == 200:
		if word := res.word(); word == "already_"+outcome && res.str("rejected_by") != "" &&
			res.str("rejected_by") != who.name {
			l.wrong(ctx, res, "a retry is answered in another's name")
		}
		l.journal.decide(a.ID, outcome, who.name)
		l.fresh.Add(1)
	case res.status == 409 && (res.word() == "already_decided" || res.word() == "not_awaiting_approval"):
	case res.status == 409 && res.word() == "ceiling_exceeded" && a.ActionType == "counted":
	default:
		l.wrong(ctx, res, outcome)
	}
}

// sure repeats a call until the server has answered it. Busy, or still working
// on the first of two calls, does not count as an answer.
func (l *load) sure(ctx context.Context, fn func() answer) answer {
	for {
		res := fn()
		switch {
		case res.err != nil:
			l.lost.Add(1)
		case res.status == http.StatusServiceUnavailable, res.word() == "in_progress":
			l.busy.Add(1)
		case res.status < 500:
			return res
		case l.full.Load():
			l.refused.Add(1)
		default:
			l.wrong(ctx, res, "a call")
		}
		if ctx.Err() != nil {
			return answer{err: ctx.Err()}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// wrong records an answer that nobody should get.
func (l *load) wrong(ctx context.Context, res answer, what string) {
	if res.err != nil && ctx.Err() != nil {
		return // the storm is over
	}
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	l.journal.wrong = append(l.journal.wrong, what+" was answered "+res.String())
}

// stands waits until nothing has been acknowledged for half a second.
func (l *load) stands(t *testing.T) {
	t.Helper()
	last, since := l.fresh.Load(), time.Now()
	until(t, "end of the space", func() bool {
		if n := l.fresh.Load(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}

// until waits until fn, which may ask the store, returns true. It asks often at first, because much of what it
// waits for takes milliseconds, and then less often, because the rest takes seconds.
func until(t testing.TB, what string, fn func() bool) {
	t.Helper()
	pause := time.Millisecond
	// A stopped server may hold the locks of a transaction until PostgreSQL ends its session, after a minute.
	for deadline := time.Now().Add(100 * time.Second); !fn(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("the load brings no %s", what)
		}
		pause = min(pause+pause/4, 20*time.Millisecond)
	}
}
