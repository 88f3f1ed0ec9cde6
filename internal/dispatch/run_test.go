package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// live is a bench whose store uses the real clock.
func live(t testing.TB, c connector.Connector) *bench {
	t.Helper()
	b := newBench(t, c)
	must(t, b.store.Close())
	b.open(nil)
	return b
}

// settledOf counts outcomes and reports when n pushes have settled.
type settledOf struct {
	mu       sync.Mutex
	n        int
	outcomes map[string]int
	waited   []time.Duration
	all      chan struct{}
}

func settled(n int) *settledOf {
	return &settledOf{n: n, outcomes: map[string]int{}, all: make(chan struct{})}
}

func (s *settledOf) PushSent(_ string, waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited = append(s.waited, waited)
}

func (s *settledOf) PushSettled(_, outcome string, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[outcome]++
	if outcome == "applied" || outcome == "failed" || outcome == "unknown" || outcome == "quarantined" {
		if s.n--; s.n == 0 {
			close(s.all)
		}
	}
}

func (s *settledOf) wait(t testing.TB) {
	t.Helper()
	select {
	case <-s.all:
	case <-time.After(time.Minute):
		t.Fatal("the pushes do not settle")
	}
}

// run starts a dispatcher; stop stops it and waits for its end.
func run(t testing.TB, d *Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func TestRunIsWokenByAHint(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := live(t, telling{checking{l}})
	var hub wake.Hub
	hints, end := hub.Subscribe("push")
	defer end()
	const n = 50
	m := settled(n)
	committed := make(chan string, 4*n)
	config := testConfig()
	config.Poll = time.Hour // only the hint can wake it
	run(t, b.dispatcher(config, func(d *Dependencies) {
		d.Wake, d.Metrics = hints, m
		d.Committed = func(id string) { committed <- id }
	}))
	for range n {
		a := b.approve()
		hub.Notify("push")
		select {
		case id := <-committed:
			if id != a.ID {
				t.Fatalf("%s was carried, want %s", id, a.ID)
			}
		case <-time.After(time.Minute):
			t.Fatal("a hint did not wake the dispatcher")
		}
	}
	m.wait(t)
	slices.Sort(m.waited)
	t.Logf("approved to called: p50 %v, p90 %v, max %v", m.waited[n/2], m.waited[n*9/10], m.waited[n-1])
}

// TestRunKeepsTimes: without hints, held pushes and retries run when they fall
// due, not at the next poll.
func TestRunKeepsTimes(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA, notSent)
	b := live(t, l)
	a := b.approve(func(_ *gatehouse.Action, p *gatehouse.Push) {
		p.NotBefore = p.NotBefore.Add(50 * time.Millisecond)
		p.NextAttempt = &p.NotBefore
	})
	m := settled(1)
	config := testConfig()
	config.Poll = time.Hour
	config.Backoff = []time.Duration{50 * time.Millisecond}
	run(t, b.dispatcher(config, func(d *Dependencies) { d.Metrics = m }))
	m.wait(t)
	s := b.state(a)
	if s.push.Attempts != 2 || s.push.SentAt.Before(s.push.NotBefore.Add(50*time.Millisecond)) {
		t.Errorf("%d attempts, the last at %v, not before %v", s.push.Attempts, s.push.SentAt, s.push.NotBefore)
	}
}

// TestRunStandsAside: a process that cannot load the stored connectors puts a push back, and does not
// claim the push as soon as it is due again.
func TestRunStandsAside(t *testing.T) {
	t.Parallel()
	b := live(t, newLedger(connector.ClassA))
	b.targets.Replace(nil, []string{"shop"}, nil)
	b.targets.SetRefresh(func(context.Context) error { return errors.New("cannot be loaded") })
	a := b.approve()
	config := testConfig()
	config.Poll = time.Hour
	d := b.dispatcher(config)
	d.outdatedWait = 200 * time.Millisecond
	stop := run(t, d)
	waitFor(t, func() bool { return b.state(a).push.PutBack > 0 })
	time.Sleep(d.outdatedWait * 3 / 2)
	stop()
	if n := b.state(a).push.PutBack; n != 1 {
		t.Errorf("the push was put back %d times", n)
	}
}

// TestRunRescues: the lease of a dead worker is freed when it ends.
func TestRunRescues(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := live(t, l)
	a := b.approve()
	config := testConfig()
	config.Lease = 1500 * time.Millisecond
	config.Poll = time.Hour
	config.Backoff = []time.Duration{time.Millisecond}
	b.drain(b.dispatcher(config, owner("dies"), failpoint(func(p Point) {
		if p == PointCalled {
			die()
		}
	})))
	m := settled(1)
	run(t, b.dispatcher(config, func(d *Dependencies) { d.Metrics = m }))
	m.wait(t)
	if s := b.state(a); s.push.Status != gatehouse.PushApplied || m.outcomes["rescued"] != 1 {
		t.Errorf("%s, %v", s.push.Status, m.outcomes)
	}
	if calls, effects := l.count(a.IdempotencyKey); calls != 2 || effects != 1 {
		t.Errorf("%d calls, %d effects", calls, effects)
	}
}

// TestRunStopsInGoodOrder: when stopped, Run claims no more and returns only
// after pushes in progress have settled.
func TestRunStopsInGoodOrder(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	l.entered, l.gate = make(chan struct{}, 1), make(chan struct{})
	b := live(t, l)
	first, second := b.approve(), b.approve()
	config := testConfig()
	config.Workers = 1
	d := b.dispatcher(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	<-l.entered
	cancel()
	select {
	case <-done:
		t.Fatal("returned with a call under way")
	case <-time.After(20 * time.Millisecond):
	}
	close(l.gate)
	<-done
	if s := b.state(first); s.push.Status != gatehouse.PushApplied {
		t.Errorf("the push in progress is %s", s.push.Status)
	}
	if s := b.state(second); s.push.Status != gatehouse.PushQueued || s.push.Generation != 0 {
		t.Errorf("another was claimed after the stop: %s", s.push.Status)
	}
}

// TestDispatchersShareTheWork: several dispatchers on one store claim at once,
// with stray hints; every push is called exactly once.
func TestDispatchersShareTheWork(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := live(t, checking{l})
	const n = 120
	m := settled(n)
	var hub wake.Hub
	var stops []func()
	for i := range 3 {
		hints, end := hub.Subscribe("push")
		defer end()
		stops = append(stops, run(t, b.dispatcher(testConfig(), owner(fmt.Sprint("worker-", i)), func(d *Dependencies) {
			d.Wake, d.Metrics = hints, m
		})))
	}
	var actions []*gatehouse.Action
	for range n {
		actions = append(actions, b.approve())
		hub.Notify("push")
	}
	m.wait(t)
	for _, stop := range stops {
		stop()
	}
	for _, a := range actions {
		if calls, effects := l.count(a.IdempotencyKey); calls != 1 || effects != 1 {
			t.Errorf("%s: %d calls, %d effects", a.ID, calls, effects)
		}
		s := b.state(a)
		assertSettled(t, s)
		if s.push.Generation != 1 || s.push.Attempts != 1 {
			t.Errorf("%s: generation %d, %d attempts", a.ID, s.push.Generation, s.push.Attempts)
		}
	}
}

// TestRunDoesNotSpin: something due that cannot be moved does not make the loop
// spin.
func TestRunDoesNotSpin(t *testing.T) {
	t.Parallel()
	look := pace{poll: time.Second, rest: minSleep}
	b := newBench(t, newLedger(connector.ClassA))
	b.approve()
	b.drain(b.dispatcher(testConfig(), failpoint(func(Point) { die() })))
	b.clock.advance(time.Hour) // an expired lease that nobody rescues here
	d := b.dispatcher(testConfig())
	var total time.Duration
	for range 8 {
		start := time.Now()
		d.sleep(t.Context(), &look, nil, false)
		total += time.Since(start)
	}
	if look.rest < 100*time.Millisecond || total < 200*time.Millisecond {
		t.Errorf("eight fruitless looks took %v; rest is %v", total, look.rest)
	}
	look.due = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.sleep(ctx, &look, nil, true)
	if look.rest != minSleep {
		t.Errorf("after something moved, rest is %v", look.rest)
	}
}
