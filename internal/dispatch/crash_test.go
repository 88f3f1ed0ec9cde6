package dispatch

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// die ends the worker's goroutine on the spot. Unlike after a crash, deferred
// functions still run.
func die() { runtime.Goexit() }

// TestCrashBetweenSteps kills the worker once at each point, for each class and
// ability, and lets another worker finish.
func TestCrashBetweenSteps(t *testing.T) {
	t.Parallel()
	const (
		applied, unknown = gatehouse.PushApplied, gatehouse.PushUnknown
	)
	for _, point := range []Point{PointClaimed, PointIntent, PointSent, PointCalled, PointOutcome, PointSettled} {
		for _, class := range []connector.Class{connector.ClassA, connector.ClassB, connector.ClassC} {
			for _, able := range []ability{mute, tells} {
				t.Run(string(point)+"/"+string(class)+"/"+string(able), func(t *testing.T) {
					t.Parallel()
					l := newLedger(class)
					b := newBench(t, able.of(l))
					a := b.approve()
					died := 0
					b.drain(b.dispatcher(testConfig(), owner("dies"), failpoint(func(p Point) {
						if p == point {
							died++
							die()
						}
					})))
					if died != 1 {
						t.Fatalf("passed %s %d times", point, died)
					}
					second := b.dispatcher(testConfig(), owner("second"))
					if got := b.drain(second); len(got) != 0 {
						t.Fatalf("taken over before the lease's end: %+v", got)
					}
					if n, err := second.Rescue(context.Background()); n != 0 || err != nil {
						t.Fatalf("%d rescued before the lease's end, %v", n, err)
					}
					b.clock.advance(time.Minute)
					b.settle(second)
					s := b.state(a)
					calls, effects := l.count(a.IdempotencyKey)

					want, wantCalls, wantEffects := applied, 1, 1
					switch point {
					case PointSent: // intent written, no call made
						if class == connector.ClassC {
							want, wantCalls, wantEffects = unknown, 0, 0
						}
					case PointCalled, PointOutcome: // called, nothing recorded
						switch {
						case class == connector.ClassC:
							want = unknown
						case class == connector.ClassA && able == mute:
							wantCalls = 2
						case class == connector.ClassB && able == mute:
							want, wantCalls = unknown, 2 // refused because of its own change
						}
					}
					if s.push.Status != want || calls != wantCalls || effects != wantEffects {
						t.Errorf("%s, %d calls, %d effects; want %s, %d, %d", s.push.Status, calls, effects, want, wantCalls, wantEffects)
					}
					assertSettled(t, s)
					if s.push.Attempts < calls {
						t.Errorf("%d calls, only %d recorded intents", calls, s.push.Attempts)
					}
				})
			}
		}
	}
}

// TestZombie stops a worker during its call until its lease is over and another worker has taken
// over. Then the stopped worker returns with its result. It may only store evidence.
func TestZombie(t *testing.T) {
	t.Parallel()
	for _, late := range []fault{fine, notSent, terminal, requestLost} {
		for _, class := range []connector.Class{connector.ClassA, connector.ClassB, connector.ClassC} {
			t.Run(string(late)+"/"+string(class), func(t *testing.T) {
				t.Parallel()
				l := newLedger(class, late)
				l.entered, l.gate = make(chan struct{}, 1), make(chan struct{})
				b := newBench(t, telling{checking{l}})
				a := b.approve()
				zombie := b.dispatcher(testConfig(), owner("zombie"))
				back := make(chan struct{})
				go func() { defer close(back); b.drain(zombie) }()
				<-l.entered
				resume := l.gate
				l.set(func() { l.entered, l.gate = nil, nil })

				b.clock.advance(time.Minute)
				b.settle(b.dispatcher(testConfig(), owner("second")))
				before := b.state(a)
				assertSettled(t, before)
				close(resume)
				<-back
				after := b.state(a)

				if got, want := after.push, before.push; got.Status != want.Status || got.Attempts != want.Attempts ||
					got.Generation != want.Generation || got.LastError != want.LastError {
					t.Errorf("the late result changed the push:\n%+v\n%+v", want, got)
				}
				if after.action.Status != before.action.Status || after.mirrored != before.mirrored {
					t.Errorf("the late result changed the action: %s, %s", before.action.Status, after.action.Status)
				}
				if n := len(after.receipts) - len(before.receipts); n != 1 || !after.receipts[len(after.receipts)-1].Late {
					t.Errorf("%d receipts came late, want one, marked so", n)
				}
				if r := after.action.Receipt; r != nil && r.Late {
					t.Error("the action shows a late receipt as its own")
				}
				calls, effects := l.count(a.IdempotencyKey)
				if class == connector.ClassC && calls != 1 {
					t.Errorf("class C was called %d times", calls)
				}
				if effects > 1 {
					t.Errorf("%d effects", effects)
				}
			})
		}
	}
}

// TestGenerationFences: a stopped worker returns while the push has the same
// status but another worker's generation. Only the generation fences it off.
func TestGenerationFences(t *testing.T) {
	t.Parallel()
	for _, class := range []connector.Class{connector.ClassA, connector.ClassC} {
		for _, point := range []Point{PointIntent, PointCalled} {
			if class == connector.ClassC && point == PointCalled {
				continue // no other worker takes over
			}
			t.Run(string(class)+"/"+string(point), func(t *testing.T) {
				t.Parallel()
				l := newLedger(class)
				b := newBench(t, l)
				a := b.approve()
				first := b.stoppable("first", point)
				b.clock.advance(time.Minute)
				if n, err := b.dispatcher(testConfig()).Rescue(t.Context()); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				second := b.stoppable("second", point)
				before := b.state(a)
				if !first.parked || !second.parked || before.push.Generation != 2 {
					t.Fatalf("both workers should be at %s: %+v", point, before.push)
				}
				first.end(true)
				after := b.state(a)
				if diff := cmp.Diff(before.push, after.push); diff != "" {
					t.Errorf("the first worker changed the second's push: %s", diff)
				}
				second.end(true)
				s := b.state(a)
				assertSettled(t, s)
				if r := s.receipts[len(s.receipts)-1]; s.push.Status != gatehouse.PushApplied || r.Generation != 2 || r.Late {
					t.Errorf("%s by generation %d", s.push.Status, r.Generation)
				}
				if calls, effects := l.count(a.IdempotencyKey); effects != 1 || class == connector.ClassC && calls != 1 {
					t.Errorf("%d calls, %d effects", calls, effects)
				}
			})
		}
	}
}

// TestClassCIsNotCalledAgain: if the operation becomes class C after an ambiguous
// attempt, the queued push is not called again.
func TestClassCIsNotCalledAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA, requestLost)
	b := newBench(t, unsure{checking{l}})
	a := b.approve()
	d := b.dispatcher(testConfig())
	b.drain(d)
	l.set(func() { l.class = connector.ClassC })
	b.clock.advance(time.Minute)
	b.drain(d)
	if s := b.state(a); s.push.Status != gatehouse.PushUnknown || len(l.calls) != 1 {
		t.Errorf("%s after %d calls", s.push.Status, len(l.calls))
	}
}

// TestLateSuccessSparesACall: the worker that takes over sees the late success
// of the stopped one before it calls.
func TestLateSuccessSparesACall(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	l.entered, l.gate = make(chan struct{}, 1), make(chan struct{})
	b := newBench(t, l)
	a := b.approve()
	back := make(chan struct{})
	go func() { defer close(back); b.drain(b.dispatcher(testConfig(), owner("zombie"))) }()
	<-l.entered
	resume := l.gate
	l.set(func() { l.entered, l.gate = nil, nil })
	b.clock.advance(time.Minute)
	// The stopped worker returns when the second has read the receipts and is
	// about to write its intent.
	second := b.dispatcher(testConfig(), owner("second"), failpoint(func(p Point) {
		if p == PointIntent {
			close(resume)
			<-back
		}
	}))
	if n, err := second.Rescue(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	b.drain(second)
	s := b.state(a)
	if calls, effects := l.count(a.IdempotencyKey); s.push.Status != gatehouse.PushApplied || calls != 1 || effects != 1 {
		t.Errorf("%s with %d calls and %d effects", s.push.Status, calls, effects)
	}
	assertSettled(t, s)
}

// TestStoppedBeforeItsCall: a worker stopped between intent and call until its
// lease is over makes no call when it returns.
func TestStoppedBeforeItsCall(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	var stopped atomic.Int64
	d := b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointSent {
			stopped.Store(int64(testConfig().Lease))
		}
	}))
	d.now = func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
	b.drain(d)
	s := b.state(a)
	if calls, _ := l.count(a.IdempotencyKey); calls != 0 {
		t.Fatalf("%d calls after the lease's end", calls)
	}
	if s.push.Status != gatehouse.PushQueued || s.push.ErrorCode != "lease_short" ||
		len(s.receipts) != 1 || s.receipts[0].Outcome != gatehouse.ReceiptNotSent {
		t.Errorf("%s, %s: proven not sent, so to be tried again", s.push.Status, s.push.ErrorCode)
	}
}

// TestShortLeaseIsNotBegun: if too little of the lease is left for a call, the push is put back without an
// attempt.
func TestShortLeaseIsNotBegun(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	var stopped atomic.Int64
	d := b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointClaimed {
			stopped.Store(int64(testConfig().Lease * 2 / 3))
		}
	}))
	d.now = func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
	b.drain(d)
	if s := b.state(a); s.push.Status != gatehouse.PushQueued || s.push.Attempts != 0 ||
		s.push.ErrorCode != "lease_short" || len(l.calls) != 0 {
		t.Errorf("%s (%s), %d attempts, %d calls", s.push.Status, s.push.ErrorCode, s.push.Attempts, len(l.calls))
	}
}

// TestStoppedBeforeItsIntent: the worker is stopped before its intent; another
// takes over.
func TestStoppedBeforeItsIntent(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	second := b.dispatcher(testConfig(), owner("second"))
	first := b.dispatcher(testConfig(), owner("first"), failpoint(func(p Point) {
		if p == PointIntent {
			b.clock.advance(time.Minute)
			b.settle(second)
		}
	}))
	b.drain(first)
	s := b.state(a)
	if calls, effects := l.count(a.IdempotencyKey); calls != 1 || effects != 1 || s.push.Generation != 2 {
		t.Errorf("%d calls, %d effects, generation %d; want 1, 1, 2", calls, effects, s.push.Generation)
	}
	assertSettled(t, s)
}

// TestLeaseOverButNotRescued: no worker has taken over the push, but the lease
// is over: no intent is written.
func TestLeaseOverButNotRescued(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	d := b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointIntent {
			b.clock.advance(time.Minute)
		}
	}))
	b.drain(d)
	if s := b.state(a); s.push.Status != gatehouse.PushPicking || s.push.Attempts != 0 || len(l.calls) != 0 {
		t.Errorf("%s, %d attempts, %d calls", s.push.Status, s.push.Attempts, len(l.calls))
	}
}

// TestDeathAtEveryAttempt: a payload that kills its worker in every call runs
// out of attempts, because intents are counted. Its effect stays unknown.
func TestDeathAtEveryAttempt(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l)
	a := b.approve()
	b.settle(b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointCalled {
			die()
		}
	})))
	s := b.state(a)
	if calls, effects := l.count(a.IdempotencyKey); s.push.Status != gatehouse.PushUnknown || s.push.Attempts != 4 ||
		calls != 4 || effects != 1 {
		t.Errorf("%s after %d attempts, %d calls, %d effects", s.push.Status, s.push.Attempts, calls, effects)
	}
	assertSettled(t, s)
}

func TestRescueGoesByTheClass(t *testing.T) {
	t.Parallel()
	for class, want := range map[connector.Class]gatehouse.PushStatus{
		connector.ClassA: gatehouse.PushQueued, connector.ClassB: gatehouse.PushQueued,
		connector.ClassC: gatehouse.PushUnknown,
	} {
		for _, gone := range []bool{false, true} {
			l := newLedger(class)
			b := newBench(t, l)
			a := b.approve()
			b.drain(b.dispatcher(testConfig(), failpoint(func(p Point) {
				if p == PointSent {
					die()
				}
			})))
			if gone { // nothing is known about a missing connector
				b.targets, want = &Registry{}, gatehouse.PushUnknown
			}
			b.clock.advance(time.Minute)
			if n, err := b.dispatcher(testConfig()).Rescue(t.Context()); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			s := b.state(a)
			if s.push.Status != want || s.push.LeaseUntil != nil || s.push.ErrorCode != "lease_expired" {
				t.Errorf("class %s, connector gone %v: %s, want %s", class, gone, s.push.Status, want)
			}
			if want == gatehouse.PushUnknown && (!s.reserved || s.action.Status != gatehouse.StatusUnknown) {
				t.Errorf("unknown keeps its ceilings; action %s", s.action.Status)
			}
		}
	}
}

// TestRescueLeavesTheLiving: between the listing of expired leases and the
// rescue, the push got a new lease, settled, or got more time.
func TestRescueLeavesTheLiving(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA, notSent)
	b := newBench(t, l)
	a := b.approve()
	b.drain(b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointIntent {
			die()
		}
	})))
	stale := b.state(a).push
	d := b.dispatcher(testConfig())
	refused := func(when string) {
		t.Helper()
		before := b.state(a).push
		if err := d.rescue(t.Context(), stale); !errors.Is(err, errLost) {
			t.Errorf("%s: %v", when, err)
		}
		if after := b.state(a).push; after.Status != before.Status || after.Generation != before.Generation {
			t.Errorf("%s: moved from %s to %s", when, before.Status, after.Status)
		}
	}
	refused("before the lease's end")
	b.clock.advance(time.Minute)
	must(t, d.rescue(t.Context(), stale))
	refused("in the queue again")
	b.drain(b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointIntent {
			die()
		}
	})))
	b.clock.advance(time.Minute) // the new lease is over as well
	refused("under another generation")
	stale = b.state(a).push
	b.drain(d) // nothing is due
	b.settle(d)
	refused("at its end")
}
