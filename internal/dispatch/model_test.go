package dispatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// stoppable is a worker that carries one push and stops at one point until it gets the signal to
// continue or to die.
type stoppable struct {
	goOn   chan bool // true: continue, false: die
	parked bool
	done   chan struct{}
}

func (b *bench) stoppable(name string, at Point) *stoppable {
	w := &stoppable{goOn: make(chan bool), done: make(chan struct{})}
	parked := make(chan struct{})
	passed := false // a failed fast record passes some points again
	d := b.dispatcher(testConfig(), owner(name), failpoint(func(p Point) {
		if p != at || passed {
			return
		}
		passed = true
		close(parked)
		if !<-w.goOn {
			die()
		}
	}))
	go func() {
		defer close(w.done)
		_, _ = d.Drain(context.Background(), "", 1)
	}()
	select {
	case <-parked:
		w.parked = true
	case <-w.done:
	}
	return w
}

func (w *stoppable) end(goOn bool) {
	if w.parked {
		w.goOn <- goOn
	}
	<-w.done
}

// TestAnySequence plays random sequences of faults, crashes, stopped workers
// that return, expired leases, and temporary obstacles against the real store,
// and compares the store's state with the target's own ledger.
func TestAnySequence(t *testing.T) {
	t.Parallel()
	faults := []fault{fine, fine, notSent, transient, terminal, answerLost, requestLost, panicsBefore, panicsAfter,
		plainError}
	points := []Point{PointClaimed, PointIntent, PointSent, PointCalled, PointOutcome, PointSettled}
	rapid.Check(t, func(rt *rapid.T) {
		class := connector.Class(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "class"))
		able := rapid.SampledFrom([]ability{mute, checks, tells, isVague}).Draw(rt, "ability")
		l := newLedger(class, rapid.SliceOfN(rapid.SampledFrom(faults), 0, 12).Draw(rt, "faults")...)
		b := newBench(t, able.of(l))
		defer b.store.Close()
		healthy := b.dispatcher(testConfig(), owner("healthy"))
		var actions []*gatehouse.Action
		var stopped []*stoppable
		n := 0
		take := func(rt *rapid.T) *stoppable {
			if len(stopped) == 0 {
				rt.Skip()
			}
			i := rapid.IntRange(0, len(stopped)-1).Draw(rt, "worker")
			w := stopped[i]
			stopped = append(stopped[:i], stopped[i+1:]...)
			return w
		}
		actions = append(actions, b.approve())
		rt.Repeat(map[string]func(*rapid.T){
			"approve": func(rt *rapid.T) {
				if len(actions) > 3 {
					rt.Skip()
				}
				actions = append(actions, b.approve())
			},
			"stop": func(rt *rapid.T) {
				if len(stopped) > 3 {
					rt.Skip()
				}
				n++
				w := b.stoppable(fmt.Sprint("worker-", n), rapid.SampledFrom(points).Draw(rt, "point"))
				if w.parked {
					stopped = append(stopped, w)
				}
			},
			"continue": func(rt *rapid.T) { take(rt).end(true) },
			"die":      func(rt *rapid.T) { take(rt).end(false) },
			"wait": func(rt *rapid.T) {
				b.clock.advance(
					rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, time.Minute, time.Hour}).Draw(rt, "for"))
			},
			"rescue": func(rt *rapid.T) {
				if _, err := healthy.Rescue(context.Background()); err != nil {
					rt.Fatal(err)
				}
			},
			"drain": func(*rapid.T) { b.drain(healthy) },
			"revoke": func(rt *rapid.T) {
				b.authority.say(map[bool]error{true: errRevoked}[rapid.Bool().Draw(rt, "revoked")])
			},
			"down": func(rt *rapid.T) { l.set(func() { l.down = rapid.Bool().Draw(rt, "down") }) },
			"drift": func(rt *rapid.T) {
				a := rapid.SampledFrom(actions).Draw(rt, "action")
				l.set(func() { l.drifted[a.Target.EntityRef] = true })
			},
			"": func(rt *rapid.T) {
				for _, a := range actions {
					b.assertInvariants(rt, l, a)
				}
			},
		})
		for i, w := range stopped {
			w.end(i%2 == 0)
		}
		b.authority.say(nil)
		l.set(func() { l.down = false })
		b.settle(healthy)
		for _, a := range actions {
			b.assertInvariants(rt, l, a)
			s := b.state(a)
			if !s.action.Status.Finished() {
				rt.Errorf("%s is %s in the end", a.ID, s.action.Status)
			}
		}
	})
}

// assertInvariants checks what must hold for one action at any moment.
func (b *bench) assertInvariants(t *rapid.T, l *ledger, a *gatehouse.Action) {
	s := b.state(a)
	calls, effects := l.count(a.IdempotencyKey)
	if effects > 1 {
		t.Errorf("%s: %d effects under one key", a.ID, effects)
	}
	if calls > s.push.Attempts {
		t.Errorf("%s: %d calls, %d recorded intents", a.ID, calls, s.push.Attempts)
	}
	l.set(func() {
		sent := 0
		for _, c := range l.calls {
			if c.key == a.IdempotencyKey && c.fault != notSent {
				sent++
			}
		}
		if l.class == connector.ClassC && sent > 1 {
			t.Errorf("%s: %d automatic calls of class C", a.ID, sent)
		}
	})
	switch s.push.Status {
	case gatehouse.PushFailed:
		if effects != 0 || s.reserved {
			t.Errorf("%s: failed (%s) with %d effects, ceiling reserved %v", a.ID, s.push.ErrorCode, effects, s.reserved)
		}
	case gatehouse.PushApplied:
		if effects != 1 {
			t.Errorf("%s: applied with %d effects", a.ID, effects)
		}
		fallthrough
	default:
		if !s.reserved {
			t.Errorf("%s: %s gave its ceiling back", a.ID, s.push.Status)
		}
	}
	spoken := map[int]bool{}
	for _, r := range s.receipts {
		if r.Late || r.Source != "call" {
			continue
		}
		if spoken[r.Attempt] {
			t.Errorf("%s: two results of attempt %d changed state", a.ID, r.Attempt)
		}
		spoken[r.Attempt] = true
	}
	b.assertMoves(t, a, s)
}

// assertMoves replays the log: every move is in the transition tables, and the
// last one leads to the current state of action and push.
func (b *bench) assertMoves(t *rapid.T, a *gatehouse.Action, s state) {
	action, push := gatehouse.StatusApproved, gatehouse.PushQueued
	for _, leaf := range b.leaves(a) {
		from, to := gatehouse.Status(leaf.From), gatehouse.Status(leaf.To)
		if from != action || to != from && !from.CanMove(to) {
			t.Errorf("%s: %s moves the action from %s to %s, it was %s", a.ID, leaf.Type, from, to, action)
		}
		action = to
		pushFrom, pushTo := pushStatus(leaf, "push_from"), pushStatus(leaf, "push_to")
		if push == gatehouse.PushQueued && pushFrom == gatehouse.PushPicking {
			push = gatehouse.PushPicking // a claim leaves no leaf
		}
		if pushFrom != push || pushTo != pushFrom && !pushFrom.CanMove(pushTo) {
			t.Errorf("%s: %s moves the push from %s to %s, it was %s", a.ID, leaf.Type, pushFrom, pushTo, push)
		}
		push = pushTo
	}
	if s.push.Status == gatehouse.PushPicking && push == gatehouse.PushQueued {
		push = gatehouse.PushPicking
	}
	if action != s.action.Status || push != s.push.Status {
		t.Errorf("%s: the log leads to %s and %s, the tables say %s and %s", a.ID, action, push, s.action.Status,
			s.push.Status)
	}
}

func pushStatus(l gatehouse.Leaf, member string) gatehouse.PushStatus {
	v, _ := l.Data.Get(member)
	text, _ := v.Text()
	return gatehouse.PushStatus(text)
}
