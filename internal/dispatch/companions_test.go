package dispatch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// companionStore is a store that records the number of companions of each Update.
type companionStore struct {
	gatehouse.Store
	mu   sync.Mutex
	seen []int
}

func (s *companionStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	s.mu.Lock()
	s.seen = append(s.seen, gatehouse.Companions(ctx))
	s.mu.Unlock()
	return s.Store.Update(ctx, tenant, fn)
}

// TestPushesOfAClaimAreCompanions: the store is told how many pushes of a claim store their intents, and their
// outcomes, at about the same time.
func TestPushesOfAClaimAreCompanions(t *testing.T) {
	t.Parallel()
	b := newBench(t, newLedger(connector.ClassA, fine, terminal, fine))
	for range 3 {
		b.approve()
	}
	c := testConfig()
	c.Workers = 8
	s := &companionStore{Store: b.store}
	b.drain(b.dispatcher(c, func(d *Dependencies) { d.Store = s }))
	if want := []int{3, 3, 3, 3, 3, 3}; !slices.Equal(s.seen, want) {
		t.Errorf("companions of the Updates: %v, want %v", s.seen, want)
	}
}

// TestOutcomesUnderWay: workers go on calling while outcomes are being stored, at most one outcome per worker.
func TestOutcomesUnderWay(t *testing.T) {
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
	}), func(d *Dependencies) { d.Metrics = m })
	run(t, d)
	for end := time.Now().Add(20 * time.Second); called.Load() < 2*workers && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
	}
	// All places are taken, so nothing more is claimed.
	if len(d.slots) != workers || len(d.recording) != workers || called.Load() != 2*workers {
		t.Errorf("%d slots and %d places are taken, %d calls were made, want %d", len(d.slots), len(d.recording),
			called.Load(), 2*workers)
	}
	if inFlight, _ := b.inFlight("default"); inFlight != 2*workers {
		t.Errorf("%d are in flight, want %d", inFlight, 2*workers)
	}
	close(stored)
	m.wait(t)
}

// TestPlacesAreBounded: jobs that find no place for their outcome keep their slot, and each job releases what it
// holds.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, newLedger(connector.ClassA))
	d := b.dispatcher(testConfig())
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
