package dispatch

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// gathered is a store that records the batches.
type gathered struct {
	gatehouse.Store
	mu      sync.Mutex
	batches []int
}

func (g *gathered) Announce(n int) func(context.Context) context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 {
		g.batches = append(g.batches, n)
	}
	return func(ctx context.Context) context.Context { return ctx }
}

// batching is a dispatcher of eight workers over an announcer store, whose pushes wait for each
// other without a time limit.
func (b *bench) batching(more ...func(*Dependencies)) (*Dispatcher, *gathered) {
	g := &gathered{Store: b.store}
	c := testConfig()
	c.Workers = 8
	d := b.dispatcher(c, append([]func(*Dependencies){func(d *Dependencies) { d.Store = g }}, more...)...)
	d.linger = time.Hour
	return d, g
}

// TestClaimGoesInBatches: the pushes of a claim write their intents together, and
// their outcomes. Nobody waits for pushes with another outcome.
func TestClaimGoesInBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []fault
		foreign, dies,
		intents, outcomes int
	}{
		"all":                     {intents: 8, outcomes: 8},
		"some fail":               {faults: []fault{terminal, fine, notSent, fine, requestLost}, intents: 8, outcomes: 8},
		"some come to no call":    {foreign: 3, intents: 8, outcomes: 5},
		"one dies on its way":     {dies: 1, intents: 7, outcomes: 7},
		"one alone does not wait": {foreign: 7, intents: 8, outcomes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, newLedger(connector.ClassA, c.faults...))
			for i := range 8 {
				b.approve(func(a *gatehouse.Action, _ *gatehouse.Push) {
					if i < c.foreign {
						a.Fingerprint = "another"
					}
				})
			}
			var claimed atomic.Int64
			d, g := b.batching(failpoint(func(p Point) {
				if p == PointClaimed && claimed.Add(1) <= int64(c.dies) {
					runtime.Goexit()
				}
			}))
			if items := b.drain(d); len(items) != 8 {
				t.Errorf("%d pushes were claimed, want 8", len(items))
			}
			if want := []int{c.intents, c.outcomes}; !slices.Equal(g.batches, want) {
				t.Errorf("batches of %v, want %v", g.batches, want)
			}
			if len(d.slots) != 0 || len(d.recording) != 0 {
				t.Errorf("%d slots and %d places are still in use", len(d.slots), len(d.recording))
			}
		})
	}
}

// patient is a target on which one call waits until the others have settled.
type patient struct {
	*ledger
	key    string
	others chan struct{}
}

func (p *patient) Execute(ctx context.Context, c connector.Call) (connector.Result, error) {
	if c.IdempotencyKey == p.key {
		<-p.others
	}
	return p.ledger.Execute(ctx, c)
}

// TestBatchDoesNotWaitForSlowCalls: the other outcomes are stored meanwhile.
func TestBatchDoesNotWaitForSlowCalls(t *testing.T) {
	t.Parallel()
	p := &patient{ledger: newLedger(connector.ClassA), others: make(chan struct{})}
	b := newBench(t, p)
	for range 8 {
		p.key = b.approve().IdempotencyKey
	}
	var committed atomic.Int64
	d, _ := b.batching(func(d *Dependencies) {
		d.Committed = func(string) {
			if committed.Add(1) == 7 {
				close(p.others)
			}
		}
	})
	d.linger = linger
	for _, item := range b.drain(d) {
		if item.Outcome != string(gatehouse.PushApplied) {
			t.Errorf("%s is %s", item.PushID, item.Outcome)
		}
	}
	if committed.Load() != 8 {
		t.Errorf("%d have settled, want 8", committed.Load())
	}
}

// TestOutcomesUnderWay: over an announcer store, workers call while at most as many outcomes as
// there are workers are on their way.
func TestOutcomesUnderWay(t *testing.T) {
	t.Parallel()
	for name, gathers := range map[string]bool{"gathers": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, newLedger(connector.ClassA))
			const n, workers = 12, 2
			for range n {
				b.approve()
			}
			var called atomic.Int64
			stored := make(chan struct{})
			m := settled(n)
			c := testConfig()
			c.Workers = workers
			d := b.dispatcher(c, failpoint(func(p Point) {
				if p == PointOutcome {
					called.Add(1)
					<-stored
				}
			}), func(d *Dependencies) {
				d.Metrics = m
				if gathers {
					d.Store = &gathered{Store: b.store}
				}
			})
			want := int64(workers)
			if gathers {
				want = 2 * workers
			}
			run(t, d)
			for end := time.Now().Add(20 * time.Second); called.Load() < want && time.Now().Before(end); {
				time.Sleep(100 * time.Microsecond)
			}
			// All places are taken, so nothing more is claimed.
			if len(d.slots) != workers || int64(len(d.recording)) != want-workers || called.Load() != want {
				t.Errorf("%d slots and %d places are taken, %d calls were made, want %d", len(d.slots), len(d.recording),
					called.Load(), want)
			}
			if inFlight, _ := b.inFlight("default"); int64(inFlight) != want {
				t.Errorf("%d are in flight, want %d", inFlight, want)
			}
			close(stored)
			m.wait(t)
		})
	}
}

// TestPlacesAreBounded: jobs that find no place for their outcome keep their
// slot, and each job releases what it holds.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, newLedger(connector.ClassA))
	d, _ := b.batching()
	workers := d.config.Workers
	var jobs []*job
	for range 2 * workers {
		d.slots <- struct{}{}
		j := &job{Dispatcher: d}
		j.freeSlot()
		j.freeSlot() // as after an outcome that could not be stored at once
		jobs = append(jobs, j)
	}
	if len(d.slots) != workers || len(d.recording) != workers {
		t.Errorf("%d slots and %d places are taken, want %d each", len(d.slots), len(d.recording), workers)
	}
	for _, j := range jobs {
		d.done(j)
	}
	if len(d.slots) != 0 || len(d.recording) != 0 {
		t.Errorf("%d slots and %d places are still in use", len(d.slots), len(d.recording))
	}
}
