package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// ability is what a test connector supports besides calls.
type ability string

const (
	mute    ability = "calls only"
	checks  ability = "checks"
	tells   ability = "checks and reads back"
	isVague ability = "checks, reads back without proof"
)

func (a ability) of(l *ledger) connector.Connector {
	switch a {
	case checks:
		return checking{l}
	case tells:
		return telling{checking{l}}
	case isVague:
		return unsure{checking{l}}
	}
	return l
}

// TestOutcomes is the matrix of faults, classes and abilities, each with the
// final state in the store and the number of calls and effects at the target.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const (
		applied, failed, unknown = gatehouse.PushApplied, gatehouse.PushFailed, gatehouse.PushUnknown
		all                      = "ABC"
	)
	anyAbility := []ability{mute, checks, tells, isVague}
	times := func(f fault, n int) []fault { return slices.Repeat([]fault{f}, n) }
	for _, c := range []struct {
		faults         []fault
		classes        string
		abilities      []ability
		want           gatehouse.PushStatus
		calls, effects int
	}{
		{nil, all, anyAbility, applied, 1, 1},
		{times(notSent, 1), all, anyAbility, applied, 2, 1},
		{times(notSent, 3), all, anyAbility, applied, 4, 1},
		{times(notSent, 4), all, anyAbility, failed, 4, 0},
		{times(transient, 1), "AB", anyAbility, applied, 2, 1},
		{times(transient, 4), "AB", anyAbility, failed, 4, 0},
		{times(transient, 1), "C", anyAbility, failed, 1, 0},
		{times(terminal, 1), all, anyAbility, failed, 1, 0},
		{[]fault{notSent, terminal}, all, anyAbility, failed, 2, 0},

		{times(answerLost, 1), "A", []ability{mute, checks, isVague}, applied, 2, 1},
		{times(answerLost, 1), "AB", []ability{tells}, applied, 1, 1},
		// The second call conflicts with the change of the first: refused,
		// nothing proven.
		{times(answerLost, 1), "B", []ability{mute, checks, isVague}, unknown, 2, 1},
		{times(answerLost, 1), "C", []ability{mute, checks, isVague}, unknown, 1, 1},
		{times(answerLost, 1), "C", []ability{tells}, applied, 1, 1},
		{times(answerLost, 4), "A", []ability{mute, checks, isVague}, unknown, 4, 1},

		{times(requestLost, 1), "AB", anyAbility, applied, 2, 1},
		{times(requestLost, 1), "C", anyAbility, unknown, 1, 0},
		{times(requestLost, 4), "AB", []ability{mute, checks, isVague}, unknown, 4, 0},
		{times(requestLost, 4), "AB", []ability{tells}, failed, 4, 0},
		{[]fault{requestLost, terminal}, "AB", []ability{mute, checks, isVague}, unknown, 2, 0},
		{[]fault{requestLost, terminal}, "AB", []ability{tells}, failed, 2, 0},
		{[]fault{requestLost, notSent, notSent, notSent}, "AB", []ability{mute, checks, isVague}, unknown, 4, 0},
		{[]fault{notSent, answerLost}, "C", []ability{mute, checks, isVague}, unknown, 2, 1},

		{times(panicsBefore, 1), "AB", anyAbility, applied, 2, 1},
		{times(panicsBefore, 1), "C", anyAbility, unknown, 1, 0},
		{times(panicsAfter, 1), "A", []ability{mute, checks, isVague}, applied, 2, 1},
		{times(panicsAfter, 1), "C", []ability{mute, checks, isVague}, unknown, 1, 1},
		{times(panicsAfter, 1), all, []ability{tells}, applied, 1, 1},
		{times(plainError, 1), "AB", anyAbility, applied, 2, 1},
		{times(plainError, 1), "C", anyAbility, unknown, 1, 0},
	} {
		for _, class := range c.classes {
			for _, able := range c.abilities {
				t.Run(fmt.Sprintf("%v/%c/%s", c.faults, class, able), func(t *testing.T) {
					t.Parallel()
					l := newLedger(connector.Class(class), c.faults...)
					b := newBench(t, able.of(l))
					a := b.approve()
					b.settle(b.dispatcher(testConfig()))
					s := b.state(a)
					calls, effects := l.count(a.IdempotencyKey)
					if s.push.Status != c.want || calls != c.calls || effects != c.effects {
						t.Errorf("%s with %d calls and %d effects, want %s with %d and %d (%s)",
							s.push.Status, calls, effects, c.want, c.calls, c.effects, s.push.LastError)
					}
					assertSettled(t, s)
					if s.push.Attempts != calls {
						t.Errorf("%d attempts for %d calls", s.push.Attempts, calls)
					}
					for _, call := range l.calls {
						if call.digest != a.Digest {
							t.Errorf("called with digest %s, approved was %s", call.digest, a.Digest)
						}
					}
				})
			}
		}
	}
}

// assertSettled checks what must agree at the end of every push.
func assertSettled(t testing.TB, s state) {
	t.Helper()
	if got, want := string(s.action.Status), string(s.push.Status); got != want {
		t.Errorf("the action is %s, its push %s", got, want)
	}
	if s.push.LeaseOwner != "" || s.push.LeaseUntil != nil || s.push.NextAttempt != nil {
		t.Errorf("a settled push is leased or scheduled: %+v", s.push)
	}
	if s.push.FinishedAt == nil || s.action.FinishedAt == nil {
		t.Error("finished without a time")
	}
	if want := s.push.Status != gatehouse.PushFailed; s.reserved != want {
		t.Errorf("%s: ceiling reserved %v, want %v", s.push.Status, s.reserved, want)
	}
	wantMirror := 0
	if s.push.Status == gatehouse.PushApplied {
		wantMirror = 1
		if s.push.AppliedAt == nil || s.push.LastError != "" {
			t.Errorf("applied at %v, last error %q", s.push.AppliedAt, s.push.LastError)
		}
	}
	if s.mirrored != wantMirror {
		t.Errorf("%d mirror rows, want %d", s.mirrored, wantMirror)
	}
	switch {
	case s.push.Status == gatehouse.PushFailed:
		if s.action.Failure == nil || s.action.Failure.Code == "" || s.push.ErrorCode != s.action.Failure.Code {
			t.Errorf("failed without its reason: %+v, push %s", s.action.Failure, s.push.ErrorCode)
		}
		if !gatehouse.WithoutEffect(s.receipts, s.push.Attempts) {
			t.Error("failed although an attempt may have had its effect")
		}
	case s.push.Status == gatehouse.PushUnknown && s.push.LastError == "":
		t.Error("unknown without a reason")
	case s.push.Status == gatehouse.PushApplied && !slices.ContainsFunc(s.receipts, func(r *gatehouse.Receipt) bool {
		return r.Outcome == gatehouse.ReceiptApplied && !r.Late
	}):
		t.Error("applied without a receipt that says so")
	}
}

func TestReceiptHoldsTheEvidence(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA, notSent)
	b := newBench(t, l)
	a := b.approve()
	b.settle(b.dispatcher(testConfig()))
	s := b.state(a)
	want := []*gatehouse.Receipt{
		{
			Tenant: "default", ActionID: a.ID, PushID: s.push.ID, IdempotencyKey: a.IdempotencyKey, Attempt: 1, Generation: 1,
			Outcome: gatehouse.ReceiptNotSent, ErrorCode: "unreachable", Error: "connection refused", Source: "call",
		},
		{
			Tenant: "default", ActionID: a.ID, PushID: s.push.ID, IdempotencyKey: a.IdempotencyKey, Attempt: 2, Generation: 2,
			Outcome: gatehouse.ReceiptApplied, ExternalID: "ext-" + a.IdempotencyKey, Source: "call",
			RequestMetadata: `{"method":"PATCH"}`, ResponseMetadata: `{"status":200}`, Reversible: true,
			Reversal: &gatehouse.Reversal{Operation: "update", Target: a.Target, ProposedChange: a.CurrentState},
		},
	}
	for _, r := range s.receipts {
		if r.ID == "" || r.At.IsZero() {
			t.Errorf("no id or time: %+v", r)
		}
		r.ID, r.At = "", time.Time{}
	}
	if diff := cmp.Diff(want, s.receipts); diff != "" {
		t.Error(diff)
	}
}

// TestLeaves checks the log of a push that was retried and applied.
func TestLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t, newLedger(connector.ClassA, notSent))
	a := b.approve()
	b.settle(b.dispatcher(testConfig(), owner("worker-7")))
	var got []string
	for _, l := range b.leaves(a) {
		if l.Actor != "worker-7" || l.Digest != a.Digest || l.Subject != a.ID {
			t.Errorf("%+v", l)
		}
		from, _ := l.Data.Get("push_from")
		to, _ := l.Data.Get("push_to")
		attempt, _ := l.Data.Get("attempt")
		got = append(got, fmt.Sprintf("%s %s->%s %s->%s %s", l.Type, l.From, l.To, from, to, attempt))
	}
	want := []string{
		`push.sent approved->pushing "picking"->"sent" 1`,
		`push.retry pushing->pushing "sent"->"queued" 1`,
		`push.sent pushing->pushing "picking"->"sent" 2`,
		`push.applied pushing->applied "sent"->"applied" 2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBackoffIsKept(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA, notSent, notSent, notSent, notSent)
	b := newBench(t, l)
	a := b.approve()
	d := b.dispatcher(testConfig())
	// Three retries: after 5 s, 30 s and 2 min, not a millisecond sooner.
	for i, wait := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute} {
		if got := b.drain(d); len(got) != 1 || got[0].Outcome != "queued" {
			t.Fatalf("attempt %d: %+v", i+1, got)
		}
		if next := b.state(a).push.NextAttempt; next == nil || !next.Equal(b.clock.now().Add(wait)) {
			t.Fatalf("after attempt %d the next is at %v, want in %v", i+1, next, wait)
		}
		b.clock.advance(wait - time.Millisecond)
		if got := b.drain(d); len(got) != 0 {
			t.Fatalf("attempt %d came early", i+2)
		}
		b.clock.advance(time.Millisecond)
	}
	if got := b.drain(d); len(got) != 1 || got[0].Outcome != "failed" {
		t.Fatalf("the last: %+v", got)
	}
	if s := b.state(a); s.push.Attempts != 4 || s.push.ErrorCode != "unreachable" {
		t.Errorf("a dead letter after %d attempts, %s; want 1 + 3", s.push.Attempts, s.push.ErrorCode)
	}
}

func TestTargetsWishToWaitIsHonoured(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA, transient)
	l.wish = 7 * time.Minute
	b := newBench(t, l)
	a := b.approve()
	b.drain(b.dispatcher(testConfig()))
	if next := b.state(a).push.NextAttempt; next == nil || !next.Equal(b.clock.now().Add(7*time.Minute)) {
		t.Errorf("next attempt at %v, want in 7 min", next)
	}
}

func TestReplayedDeadLetterHasItsRetriesAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC, slices.Repeat([]fault{notSent}, 7)...)
	b := newBench(t, l)
	a := b.approve()
	d := b.dispatcher(testConfig())
	b.settle(d)
	b.replay(a)
	b.settle(d)
	s := b.state(a)
	if calls, effects := l.count(a.IdempotencyKey); calls != 8 || effects != 1 || s.push.Attempts != 8 {
		t.Errorf("%d calls, %d effects, %d attempts; want 8, 1, 8", calls, effects, s.push.Attempts)
	}
	assertSettled(t, s)
}

func TestReversalMarksTheOriginal(t *testing.T) {
	t.Parallel()
	b := newBench(t, newLedger(connector.ClassA))
	d := b.dispatcher(testConfig())
	original := b.approve()
	b.settle(d)
	reversal := b.approve(func(a *gatehouse.Action, _ *gatehouse.Push) { a.Reverses = original.ID })
	b.settle(d)
	s, r := b.state(original), b.state(reversal)
	if s.action.Status != gatehouse.StatusReversed || s.action.ReversedBy != reversal.ID ||
		r.action.Status != gatehouse.StatusApplied {
		t.Errorf("original %s by %q, reversal %s", s.action.Status, s.action.ReversedBy, r.action.Status)
	}
	if !s.reserved {
		t.Error("a reversed action keeps what it took from its ceilings")
	}
	last := b.leaves(original)
	if l := last[len(last)-1]; l.Type != "action.reversed" || l.From != "applied" || l.To != "reversed" {
		t.Errorf("%+v", l)
	}
}

func TestFailedReversalLeavesTheOriginal(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l)
	d := b.dispatcher(testConfig())
	original := b.approve()
	b.settle(d)
	l.set(func() { l.faults = []fault{terminal} })
	reversal := b.approve(func(a *gatehouse.Action, _ *gatehouse.Push) { a.Reverses = original.ID })
	b.settle(d)
	if s, r := b.state(original), b.state(reversal); s.action.Status != gatehouse.StatusApplied ||
		r.action.Status != gatehouse.StatusFailed {
		t.Errorf("original %s, reversal %s", s.action.Status, r.action.Status)
	}
}
