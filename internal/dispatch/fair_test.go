package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/lease"
)

// queues are tenants with due pushes and pushes in flight.
type queues map[string]*gatehouse.DueTenant

func queuesOf(due map[string]int) queues {
	q := queues{}
	for name, n := range due {
		q[name] = &gatehouse.DueTenant{Tenant: name, Due: n}
	}
	return q
}

// claim lets f claim n pushes, which settle at once unless keep is set.
func (q queues) claim(f *fair, n int, keep bool) (got []string, full []string) {
	var due []gatehouse.DueTenant
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if q[name].Due > 0 {
			due = append(due, *q[name])
		}
	}
	shares, full := f.share(due, n)
	var pushes []*gatehouse.Push
	for _, s := range shares {
		for range s.Limit {
			got = append(got, s.Tenant)
			pushes = append(pushes, &gatehouse.Push{Tenant: s.Tenant})
		}
		q[s.Tenant].Due -= s.Limit
		if keep {
			q[s.Tenant].InFlight += s.Limit
		}
	}
	f.claimed(pushes)
	f.recordConsidered(due)
	return got, full
}

func TestShareByWeight(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 4, 16} {
		f := newFair(&Config{Tenants: map[string]Tenant{"acme": {Weight: 3}}})
		q := queuesOf(map[string]int{"acme": 1000, "beta": 1000, "zeta": 1000})
		count := map[string]int{}
		for total := 0; total < 500; {
			got, _ := q.claim(f, n, false)
			for _, name := range got {
				count[name]++
			}
			total += len(got)
			// At no time is a tenant ahead by more than one claim times its
			// weight.
			if d := count["beta"] - count["zeta"]; d < -1 || d > 1 {
				t.Fatalf("claims of %d: %v", n, count)
			}
			if d := count["acme"] - 3*count["beta"]; d < -3 || d > 3 {
				t.Fatalf("claims of %d: %v", n, count)
			}
		}
		// A tenant that had nothing due gets no credit for it.
		q["zeta"].Due = 0
		for range 30 {
			q.claim(f, 1, false)
		}
		q["zeta"].Due = 1000
		count = map[string]int{}
		for range 20 {
			got, _ := q.claim(f, 1, false)
			count[got[0]]++
		}
		if d := count["beta"] - count["zeta"]; d < -1 || d > 1 {
			t.Errorf("claims of %d: after a pause of zeta: %v", n, count)
		}
	}
}

func TestShareBounds(t *testing.T) {
	t.Parallel()
	f := newFair(
		&Config{Default: Tenant{MaxConcurrency: 2},
			Tenants: map[string]Tenant{"acme": {Weight: 2, MaxConcurrency: 5}, "free": {}}})
	q := queuesOf(map[string]int{"acme": 50, "beta": 50, "free": 6})
	got, full := q.claim(f, 20, true)
	want := slices.Concat(slices.Repeat([]string{"acme"}, 5), slices.Repeat([]string{"beta"}, 2),
		slices.Repeat([]string{"free"}, 6))
	if d := cmp.Diff(want, got); d != "" || full != nil {
		t.Fatalf("full %v, claimed (-want +got):\n%s", full, d)
	}
	q["beta"].InFlight--
	got, full = q.claim(f, 20, true)
	if d := cmp.Diff([]string{"beta"}, got); d != "" || !slices.Equal(full, []string{"acme"}) {
		t.Fatalf("full %v, claimed (-want +got):\n%s", full, d)
	}
}

// TestShareQuiet: after any history, the single push of a tenant that had nothing
// due goes with the next claim that has a place for each tenant.
func TestShareQuiet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config := Config{Tenants: map[string]Tenant{}}
		due := map[string]int{}
		for i := range rapid.IntRange(1, 6).Draw(t, "noisy") {
			name := fmt.Sprint("noisy-", i)
			config.Tenants[name] = Tenant{Weight: rapid.IntRange(0, lease.MaxWeight).Draw(t, "weight")}
			due[name] = 100_000
		}
		f := newFair(&config)
		q := queuesOf(due)
		for i := range rapid.IntRange(1, 6).Draw(t, "quiet") {
			for range rapid.IntRange(0, 40).Draw(t, "claims") {
				q.claim(f, rapid.IntRange(1, 32).Draw(t, "n"), false)
			}
			name := rapid.SampledFrom([]string{"a", "z"}).Draw(t, "name") + fmt.Sprint(" quiet ", i)
			q[name] = &gatehouse.DueTenant{Tenant: name, Due: 1}
			waited := 0
			for ; q[name].Due > 0; waited++ {
				q.claim(f, len(due)+1, false)
			}
			if waited > 1 {
				t.Fatalf("a single push waited for %d claims of %d", waited, len(due)+1)
			}
		}
	})
}

// TestShareWalk: with more tenants than one claim looks at, the next claim looks
// at those behind, and after the last tenant at the first ones again.
func TestShareWalk(t *testing.T) {
	t.Parallel()
	f := newFair(&Config{})
	due := make([]gatehouse.DueTenant, lease.MaxScan)
	for i := range due {
		due[i] = gatehouse.DueTenant{Tenant: fmt.Sprintf("t-%03d", i), Due: 1}
	}
	f.recordConsidered(due)
	if got := f.looks.After(); got != due[lease.MaxScan-1].Tenant {
		t.Errorf("the next look is after %q", got)
	}
	f.recordConsidered(due[:lease.MaxScan-1])
	if got := f.looks.After(); got != "" {
		t.Errorf("after all were seen, the next look is after %q", got)
	}
}

// TestLooksPastFullTenants: more full tenants than one look covers do not delay
// the tenant behind them, and a drain of one tenant does not move the position
// of the looks.
func TestLooksPastFullTenants(t *testing.T) {
	t.Parallel()
	names := []string{"default", "zz"}
	for i := range 2*lease.MaxScan + 10 {
		names = append(names, fmt.Sprintf("full-%03d", i))
	}
	b := newBench(t, newLedger(connector.ClassA), names...)
	for _, name := range names[2:] {
		b.approve(of(name))
	}
	b.updateQueues(func(q gatehouse.Queues) error {
		for _, name := range names[2:] {
			if _, err := q.ClaimPushes("another", time.Minute, gatehouse.PushShare{Tenant: name, Limit: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range names[2:] {
		b.approve(of(name))
	}
	a := b.approve(of("zz"))
	c := testConfig()
	c.Tenants = map[string]Tenant{}
	for _, name := range names[2:] {
		c.Tenants[name] = Tenant{MaxConcurrency: 1}
	}
	d := b.dispatcher(c)
	if items := b.drain(d); len(items) != 1 || items[0].ActionID != a.ID {
		t.Errorf("carried out %v, want the one push that may be", items)
	}
	d.slots <- struct{}{}
	got, err := d.start(t.Context(), "", 1, nil)
	if err != nil || got.claimed != 0 || len(got.full) != len(names)-2 {
		t.Errorf("%d claimed, %d tenants are full, want %d, %v", got.claimed, len(got.full), len(names)-2, err)
	}
	b.approve(of("zz"))
	before := d.fair.looks.After()
	if items, err := d.Drain(t.Context(), "zz", 10); err != nil || len(items) != 1 {
		t.Fatalf("carried out %v, %v", items, err)
	}
	if got := d.fair.looks.After(); before == "" || got != before {
		t.Errorf("the next look is after %q, and was to be after %q", got, before)
	}
}

func of(tenant string) func(*gatehouse.Action, *gatehouse.Push) {
	return func(a *gatehouse.Action, _ *gatehouse.Push) { a.Tenant = tenant }
}

// TestQuietTenantIsNotDelayed: the single push of a tenant goes with the next
// claim, however long another tenant's queue is.
func TestQuietTenantIsNotDelayed(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l, "default", "noisy", "quiet")
	const noisy = 60
	for range noisy {
		b.approve(of("noisy"))
	}
	l.gate, l.entered = make(chan struct{}), make(chan struct{}, noisy+1)
	done := settled(noisy + 1)
	d := b.dispatcher(testConfig(), func(d *Dependencies) { d.Metrics = done })
	run(t, d)
	for range d.config.Workers { // all workers are busy for the noisy tenant
		<-l.entered
	}
	a := b.approve(of("quiet"))
	close(l.gate)
	done.wait(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.calls, func(c call) bool { return c.key == a.IdempotencyKey })
	if at < 0 || at > 2*d.config.Workers {
		t.Errorf("the quiet tenant's call was number %d, with %d workers", at, d.config.Workers)
	}
}

// TestBoundWaitsForItsOwn: a tenant at its bound continues as soon as one of
// its pushes has settled, and other tenants do not wait for it.
func TestBoundWaitsForItsOwn(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l, "default", "acme", "beta")
	for range 6 {
		b.approve(of("acme"))
	}
	l.gate, l.entered = make(chan struct{}), make(chan struct{}, 8)
	done := settled(7)
	c := testConfig()
	c.Poll = time.Hour // polling finds nothing
	c.Tenants = map[string]Tenant{"acme": {MaxConcurrency: 2}}
	wake := make(chan struct{}, 1)
	run(t, b.dispatcher(c, func(d *Dependencies) { d.Metrics, d.Wake = done, wake }))
	<-l.entered
	<-l.entered
	b.approve(of("beta"))
	wake <- struct{}{}
	<-l.entered // beta's: two of four workers were free
	if n, _ := b.inFlight("acme"); n != 2 {
		t.Errorf("%d pushes of acme are in flight, want 2", n)
	}
	close(l.gate)
	done.wait(t)
}

func (b *bench) inFlight(tenant string) (n, due int) {
	b.t.Helper()
	b.viewQueues(func(q gatehouse.ReadQueues) error {
		list, err := q.DueTenants("", 100, 100)
		for _, d := range list {
			if d.Tenant == tenant {
				n, due = d.InFlight, d.Due
			}
		}
		return err
	})
	return n, due
}
