package dispatch

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// troubled is a store whose next updates fail.
type troubled struct {
	gatehouse.Store
	failing atomic.Int64
}

func (s *troubled) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if s.failing.Add(-1) >= 0 {
		return gatehouse.ErrBusy
	}
	return s.Store.Update(ctx, tenant, fn)
}

func (s *troubled) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	if s.failing.Add(-1) >= 0 {
		return gatehouse.ErrBusy
	}
	return s.Store.UpdateQueues(ctx, fn)
}

func withStore(s gatehouse.Store) func(*Dependencies) { return func(d *Dependencies) { d.Store = s } }

// TestOutcomeIsRecordedAfterTrouble: the store is busy after a call. The
// outcome is not dropped, and the call is not repeated.
func TestOutcomeIsRecordedAfterTrouble(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	store := &troubled{Store: b.store}
	b.drain(b.dispatcher(testConfig(), withStore(store), failpoint(func(p Point) {
		if p == PointCalled {
			store.failing.Store(3)
		}
	})))
	s := b.state(a)
	if s.push.Status != gatehouse.PushApplied || len(l.calls) != 1 {
		t.Errorf("%s after %d calls", s.push.Status, len(l.calls))
	}
	assertSettled(t, s)
}

// TestPutBackForLonger: the store rejects the intent repeatedly. Each time the
// push waits longer, as after an attempt; then it proceeds. So does a replayed push.
func TestPutBackForLonger(t *testing.T) {
	t.Parallel()
	testPutBackForLonger(t, 0, 0)
	testPutBackForLonger(t, 1, 0)
	testPutBackForLonger(t, 1, 11) // after it was quarantined as poison, with the default of MaxClaims
}

// testPutBackForLonger is for a push that was replayed, and claimed without an attempt before.
func testPutBackForLonger(t *testing.T, replays, claimed int) {
	t.Helper()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve(func(_ *gatehouse.Action, p *gatehouse.Push) { p.Replays, p.Generation = replays, claimed })
	store := &troubled{Store: b.store}
	steps := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	claims := 0
	d := b.dispatcher(testConfig(), withStore(store), failpoint(func(p Point) {
		if p == PointIntent && claims < len(steps) {
			claims++
			store.failing.Store(intentTries)
		}
	}))
	for n, wait := range steps {
		b.drain(d)
		s := b.state(a)
		if s.push.ErrorCode != "store_error" || s.push.NextAttempt == nil ||
			!s.push.NextAttempt.Equal(b.clock.now().Add(wait)) {
			t.Fatalf("put back %d times it is due at %v (%s), want in %v", n+1, s.push.NextAttempt, s.push.ErrorCode, wait)
		}
		b.clock.advance(wait)
	}
	b.drain(d)
	if s := b.state(a); s.push.Status != gatehouse.PushApplied || s.push.Attempts != 1 {
		t.Errorf("it is %s after %d attempts", s.push.Status, s.push.Attempts)
	}
}

// TestOutcomeThatCannotBeRecorded: the store stays away. The worker gives up in
// the end, and when the lease ends the outcome is unknown.
func TestOutcomeThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	store := &troubled{Store: b.store}
	d := b.dispatcher(testConfig(), withStore(store), failpoint(func(p Point) {
		if p == PointCalled {
			store.failing.Store(1 << 40)
		}
	}))
	// The worker gives up two leases after the claim; let that be soon.
	d.now = func() time.Time { return time.Now().Add(8*time.Second - 2*testConfig().Lease) }
	b.drain(d)
	if s := b.state(a); s.push.Status != gatehouse.PushSent || len(l.calls) != 1 {
		t.Fatalf("%s after %d calls", s.push.Status, len(l.calls))
	}
	b.clock.advance(time.Minute)
	b.settle(b.dispatcher(testConfig()))
	s := b.state(a)
	if s.push.Status != gatehouse.PushUnknown || len(l.calls) != 1 {
		t.Errorf("%s after %d calls", s.push.Status, len(l.calls))
	}
	assertSettled(t, s)
}

// TestIntentIsTriedAgainAtOnce: a concurrent change during the transaction
// costs no backoff.
func TestIntentIsTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, newLedger(connector.ClassC))
	a := b.approve()
	store := &troubled{Store: b.store}
	b.drain(b.dispatcher(testConfig(), withStore(store), failpoint(func(p Point) {
		if p == PointIntent {
			store.failing.Store(1)
		}
	})))
	if s := b.state(a); s.push.Status != gatehouse.PushApplied || s.push.Generation != 1 {
		t.Errorf("%s under generation %d", s.push.Status, s.push.Generation)
	}
}

// TestStoreGoneAtTheStart: when the action cannot even be read, the push is put
// back without an attempt.
func TestStoreGoneAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, checking{newLedger(connector.ClassC)})
	a := b.approve()
	store := &blind{Store: b.store}
	d := b.dispatcher(testConfig(), withStore(store), failpoint(func(p Point) {
		store.blind.Store(p == PointClaimed)
	}))
	if _, err := d.Drain(t.Context(), "", 10); err == nil {
		t.Error("a drain that cannot read its results should say so")
	}
	if s := b.state(a); s.push.Status != gatehouse.PushQueued || s.push.Attempts != 0 ||
		s.push.ErrorCode != "store_error" {
		t.Errorf("%s, %d attempts, %s", s.push.Status, s.push.Attempts, s.push.ErrorCode)
	}
}

// blind is a store that cannot be read for a while.
type blind struct {
	gatehouse.Store
	blind atomic.Bool
}

func (s *blind) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	if s.blind.Load() {
		return gatehouse.ErrBusy
	}
	return s.Store.View(ctx, tenant, fn)
}

func (s *blind) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	if s.blind.Load() {
		return gatehouse.ErrBusy
	}
	return s.Store.ViewQueues(ctx, fn)
}

// silent is a target that answers calls but no read-only calls.
type silent struct{ *ledger }

func (silent) Check(ctx context.Context, _ connector.Call) (connector.State, error) {
	<-ctx.Done()
	return connector.State{}, ctx.Err()
}

func (silent) ReadBack(ctx context.Context, _ connector.Call) (connector.Finding, connector.Result, error) {
	<-ctx.Done()
	return connector.Inconclusive, connector.Result{}, ctx.Err()
}

// TestSilentTarget: a target does not answer read-only calls, and the lease leaves
// less time for them than their timeout. A failed check costs an attempt. A failed
// read-back costs none: the call is made. Neither puts the push back without an
// attempt.
func TestSilentTarget(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.Lease = 12 * time.Second // a third of it is for reads of the target
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		l := newLedger(connector.ClassA)
		b := newBench(t, silent{l})
		a := b.approve()
		b.drain(b.dispatcher(config))
		if s := b.state(a); s.push.Status != gatehouse.PushQueued || s.push.Attempts != 1 || s.push.ErrorCode != "timeout" {
			t.Errorf("it is %s after %d attempts: %s", s.push.Status, s.push.Attempts, s.push.ErrorCode)
		}
	})
	t.Run("read-back", func(t *testing.T) {
		t.Parallel()
		l := newLedger(connector.ClassA, answerLost)
		b := newBench(t, l)
		a := b.approve()
		b.drain(b.dispatcher(config))
		b.target(silent{l})
		b.clock.advance(config.Backoff[0])
		b.drain(b.dispatcher(config))
		s := b.state(a)
		if calls, effects := l.count(a.IdempotencyKey); s.push.Status != gatehouse.PushApplied || calls != 2 || effects != 1 {
			t.Errorf("it is %s (%s) after %d calls with %d effects", s.push.Status, s.push.ErrorCode, calls, effects)
		}
	})
}
