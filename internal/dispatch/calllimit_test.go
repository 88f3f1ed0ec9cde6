package dispatch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// crowd is a target that blocks each call until release, and counts the running calls.
type crowd struct {
	*ledger
	entered, release chan struct{}

	mu            sync.Mutex
	running, most int
}

func newCrowd() *crowd {
	return &crowd{
		ledger: newLedger(connector.ClassA), entered: make(chan struct{}, 100), release: make(chan struct{}),
	}
}

// inside counts a call from its beginning to the end of fn.
func (c *crowd) inside(fn func()) {
	c.mu.Lock()
	c.running++
	c.most = max(c.most, c.running)
	c.mu.Unlock()
	fn()
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
}

func (c *crowd) Execute(ctx context.Context, call connector.Call) (res connector.Result, err error) {
	c.inside(func() {
		c.entered <- struct{}{}
		select {
		case <-c.release:
			res, err = c.ledger.Execute(ctx, call)
		case <-ctx.Done():
			err = ctx.Err()
		}
	})
	return res, err
}

// ReadState and Preview are reads outside of a push.
func (c *crowd) ReadsState(connector.Call) bool { return true }

func (c *crowd) ReadState(context.Context, connector.Call) (s connector.Snapshot, err error) {
	c.inside(func() { s.Version = "7" })
	return s, nil
}

func (c *crowd) Previews(connector.Call) bool { return true }

func (c *crowd) Preview(context.Context, connector.Call) (p gatehouse.Preview, err error) {
	c.inside(func() {})
	return p, nil
}

// crowded is a bench with the connectors shop, without a limit, and crm, with a limit of 2.
func crowded(t *testing.T) (b *bench, c *crowd, toCRM func(*gatehouse.Action, *gatehouse.Push)) {
	t.Helper()
	c = newCrowd()
	b = live(t, newLedger(connector.ClassA))
	shop, _ := b.targets.Lookup("default", "shop")
	var err error
	b.targets, err = NewRegistry(Target{Name: "shop", Connector: shop},
		Target{Name: "crm", Connector: c, Concurrency: 2})
	must(t, err)
	return b, c, func(a *gatehouse.Action, p *gatehouse.Push) {
		a.Connector, p.Connector, a.Fingerprint = "crm", "crm", c.Fingerprint()
	}
}

// TestConcurrency: of 50 changes of a slow target with a limit of 2, those that wait hold no worker, so
// another target is not delayed. No more than 2 calls run at a time, and each push needs one attempt.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	b, c, toCRM := crowded(t)
	const n, quick = 50, 20
	slow := make([]*gatehouse.Action, n)
	for i := range slow {
		slow[i] = b.approve(toCRM)
	}
	config := testConfig()
	config.Workers, config.Poll = 4, 10*time.Millisecond
	both := settled(n + quick)
	d := b.dispatcher(config, func(d *Dependencies) { d.Metrics = both })
	run(t, d)
	<-c.entered
	<-c.entered
	waitFor(t, func() bool { return d.targets.callLimits.queued("crm") == n-2 })
	if s := b.state(slow[n-1]).push; s.Status != gatehouse.PushQueued || s.Attempts != 0 ||
		s.ErrorCode != "concurrency_limit" {
		t.Errorf("a push in the queue: %+v", s)
	}

	others := make([]*gatehouse.Action, quick)
	for i := range others {
		others[i] = b.approve()
	}
	waitFor(t, func() bool {
		applied := 0
		for _, a := range others {
			if b.state(a).push.Status == gatehouse.PushApplied {
				applied++
			}
		}
		return applied == quick
	})

	began := time.Now()
	close(c.release)
	both.wait(t)
	if took := time.Since(began); took > requeueAfter/2 {
		t.Errorf("the queue took %v: pushes became due by time only", took)
	}
	if c.most != 2 {
		t.Errorf("%d calls were under way, want 2", c.most)
	}
	for _, a := range slow {
		if p := b.state(a).push; p.Status != gatehouse.PushApplied || p.Attempts != 1 || p.PutBack > 4 {
			t.Errorf("%s is %s after %d attempts, put back %d times", p.ID, p.Status, p.Attempts, p.PutBack)
		}
	}
}

// TestConcurrencyOfReads: reads outside of a push wait for a slot, and get it before the pushes.
func TestConcurrencyOfReads(t *testing.T) {
	t.Parallel()
	b, c, toCRM := crowded(t)
	actions := []*gatehouse.Action{b.approve(toCRM), b.approve(toCRM), b.approve(toCRM)}
	config := testConfig()
	m := settled(len(actions))
	d := b.dispatcher(config, func(d *Dependencies) { d.Metrics = m })
	run(t, d)
	<-c.entered
	<-c.entered
	waitFor(t, func() bool { return d.targets.callLimits.queued("crm") == 1 })

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := d.targets.ReadState(short, actions[2])
	var failure *connector.Error
	if !errors.As(err, &failure) || failure.Kind != connector.NotSent || failure.Code != "concurrency_limit" {
		t.Errorf("a read without a slot: %v", err)
	}
	read := make(chan error, 2)
	go func() { _, err := d.targets.ReadState(t.Context(), actions[2]); read <- err }()
	go func() { _, err := d.targets.Preview(t.Context(), actions[2]); read <- err }()
	waitFor(t, func() bool {
		d.targets.callLimits.mu.Lock()
		defer d.targets.callLimits.mu.Unlock()
		return len(d.targets.callLimits.of("crm").reads) == 2
	})
	c.release <- struct{}{} // one call ends, and both reads use its slot, one after the other
	for range 2 {
		if err := <-read; err != nil {
			t.Error(err)
		}
	}
	close(c.release)
	m.wait(t)
	if c.most != 2 {
		t.Errorf("%d calls were under way, want 2", c.most)
	}
}

// TestConcurrencyDrain: a drain sends all pushes that it can claim, at most two at a time.
func TestConcurrencyDrain(t *testing.T) {
	t.Parallel()
	b, c, toCRM := crowded(t)
	close(c.release)
	for range 10 {
		b.approve(toCRM)
	}
	items, err := b.dispatcher(testConfig()).Drain(t.Context(), "default", 1000)
	if err != nil || len(items) != 10 || c.most > 2 {
		t.Fatalf("%d items, %d at a time, %v", len(items), c.most, err)
	}
	for _, i := range items {
		if i.Outcome != "applied" {
			t.Errorf("%+v", i)
		}
	}
}

// TestConcurrencyIsChanged: a new limit applies to the next call.
func TestConcurrencyIsChanged(t *testing.T) {
	t.Parallel()
	b, c, toCRM := crowded(t)
	first := b.approve(toCRM)
	for range 5 {
		b.approve(toCRM)
	}
	m := settled(6)
	d := b.dispatcher(testConfig(), func(d *Dependencies) { d.Metrics = m })
	run(t, d)
	<-c.entered
	<-c.entered
	b.targets.Replace([]Target{{Name: "crm", Connector: c, Concurrency: 4}}, nil, nil)
	if got := b.targets.Concurrency("crm"); got != 4 {
		t.Errorf("the limit is %d", got)
	}
	waitFor(t, func() bool { return len(c.entered) == 2 })
	close(c.release)
	m.wait(t)
	if c.most != 4 || b.state(first).push.Status != gatehouse.PushApplied {
		t.Errorf("%d calls were under way", c.most)
	}
}

// waitFor waits until fn is true.
func waitFor(t *testing.T, fn func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !fn(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition is still false after a minute")
		}
	}
}
