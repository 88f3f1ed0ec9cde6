package dispatch

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// tamper changes the store's file behind its back, as an intruder would.
func (b *bench) tamper(statements ...string) {
	b.t.Helper()
	db, err := sql.Open("sqlite", b.path+"?_pragma=busy_timeout(5000)")
	must(b.t, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			b.t.Fatal(s, err)
		}
	}
}

var errRevoked = gatehouse.E(gatehouse.CodeAuthorityRevoked, "ana has voted, but no longer has the right to decide")

// obstacles are the things that can change between approval and call.
var obstacles = []struct {
	name, code string
	obstruct   func(b *bench, l *ledger, a *gatehouse.Action)
}{
	{"change altered in the store", "digest_mismatch", func(b *bench, _ *ledger, _ *gatehouse.Action) {
		b.tamper(`DROP TRIGGER proposal_frozen`, `UPDATE proposal SET proposed_change = '{"price":"99.00"}'`)
	}},
	{"target altered in the store", "digest_mismatch", func(b *bench, _ *ledger, _ *gatehouse.Action) {
		b.tamper(`DROP TRIGGER proposal_frozen`, `UPDATE proposal SET entity_ref = 'SKU-000666'`)
	}},
	{"change and its digest altered", "digest_mismatch", func(b *bench, _ *ledger, a *gatehouse.Action) {
		forged := *a
		forged.ProposedChange = `{"price":"99.00"}`
		b.tamper(`DROP TRIGGER proposal_frozen`,
			`UPDATE proposal SET proposed_change = '{"price":"99.00"}', digest = '`+string(forged.ComputeDigest())+`'`)
	}},
	{"push under another key", "digest_mismatch", func(b *bench, _ *ledger, _ *gatehouse.Action) {
		b.tamper(`UPDATE push SET idempotency_key = 'another'`)
	}},
	{"push to another connector", "digest_mismatch", func(b *bench, l *ledger, _ *gatehouse.Action) {
		r, err := NewRegistry(Target{Name: "shop", Connector: telling{checking{l}}},
			Target{Name: "other", Connector: telling{checking{l}}})
		must(b.t, err)
		b.targets = r
		b.tamper(`UPDATE push SET connector = 'other'`)
	}},
	{"connector's definition edited", "digest_mismatch", func(_ *bench, l *ledger, _ *gatehouse.Action) {
		l.set(func() { l.fingerprint = strings.Repeat("0b", 32) })
	}},
	{"connector gone", "connector_missing", func(b *bench, _ *ledger, _ *gatehouse.Action) {
		b.targets = &Registry{}
	}},
	{"tenant not served any more", "connector_missing", func(b *bench, l *ledger, _ *gatehouse.Action) {
		b.target(telling{checking{l}}, "acme")
	}},
	{"authority revoked", "authority_revoked", func(b *bench, _ *ledger, _ *gatehouse.Action) {
		b.authority.say(errRevoked)
	}},
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	for _, o := range append(slices.Clone(obstacles), struct {
		name, code string
		obstruct   func(b *bench, l *ledger, a *gatehouse.Action)
	}{"target drifted", "target_changed", func(_ *bench, l *ledger, a *gatehouse.Action) {
		l.set(func() { l.drifted[a.Target.EntityRef] = true })
	}}) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(connector.ClassA)
			b := newBench(t, telling{checking{l}})
			a := b.approve()
			o.obstruct(b, l, a)
			b.settle(b.dispatcher(testConfig()))
			s := b.state(a)
			if calls, effects := l.count(a.IdempotencyKey); calls != 0 || effects != 0 || len(l.calls) != 0 {
				t.Errorf("%d calls, %d effects, want none: %v", calls, effects, l.calls)
			}
			if o.code != "authority_revoked" && o.code != "target_changed" && l.looks != 0 {
				t.Error("the target was read, although it may be another one")
			}
			if s.push.Status != gatehouse.PushFailed || s.push.ErrorCode != o.code || s.push.Attempts != 0 {
				t.Errorf("%s, %s, %d attempts; want failed, %s, 0", s.push.Status, s.push.ErrorCode, s.push.Attempts, o.code)
			}
			assertSettled(t, s)
		})
	}
}

// TestQuarantineAtTheLastMoment: the obstacle appears after the first check, just before the
// intent. The read in the intent's transaction counts.
func TestQuarantineAtTheLastMoment(t *testing.T) {
	t.Parallel()
	for _, o := range obstacles {
		if o.code == "connector_missing" || o.name == "push to another connector" {
			continue // a running dispatcher's configuration never changes
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(connector.ClassA)
			b := newBench(t, checking{l})
			a := b.approve()
			b.drain(b.dispatcher(testConfig(), failpoint(func(p Point) {
				if p == PointIntent {
					o.obstruct(b, l, a)
				}
			})))
			s := b.state(a)
			if len(l.calls) != 0 || s.push.Status != gatehouse.PushFailed || s.push.ErrorCode != o.code {
				t.Errorf("%d calls, %s (%s), want none, failed, %s", len(l.calls), s.push.Status, s.push.ErrorCode, o.code)
			}
			assertSettled(t, s)
		})
	}
}

func TestHoldIsKeptAtTheLastMoment(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l)
	a := b.approve()
	later := b.clock.now().Add(time.Hour)
	d := b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointIntent && b.clock.now().Before(later) {
			b.tamper(fmt.Sprintf(`UPDATE push SET not_before = %d`, later.UnixMicro()))
		}
	}))
	b.drain(d)
	if s := b.state(a); len(l.calls) != 0 || s.push.Status != gatehouse.PushQueued || s.push.Attempts != 0 {
		t.Fatalf("%d calls, %s", len(l.calls), s.push.Status)
	}
	b.settle(d)
	if s := b.state(a); len(l.calls) != 1 || s.push.Status != gatehouse.PushApplied {
		t.Errorf("%d calls, %s", len(l.calls), s.push.Status)
	}
}

// TestQuarantineAfterAnAmbiguousCall: the same obstacles after an earlier call
// that may have had its effect. Such a push never becomes failed.
func TestQuarantineAfterAnAmbiguousCall(t *testing.T) {
	t.Parallel()
	for _, o := range obstacles {
		for _, f := range []fault{answerLost, requestLost} {
			t.Run(o.name+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				l := newLedger(connector.ClassA, f)
				b := newBench(t, unsure{checking{l}})
				a := b.approve()
				b.drain(b.dispatcher(testConfig()))
				if s := b.state(a); s.push.Status != gatehouse.PushQueued || s.push.Attempts != 1 {
					t.Fatalf("%s after %d attempts", s.push.Status, s.push.Attempts)
				}
				o.obstruct(b, l, a)
				b.clock.advance(time.Hour)
				b.settle(b.dispatcher(testConfig()))
				s := b.state(a)
				if len(l.calls) != 1 {
					t.Errorf("called again: %v", l.calls)
				}
				if s.push.Status != gatehouse.PushUnknown || s.push.ErrorCode != o.code || !s.reserved {
					t.Errorf("%s, %s, ceiling kept %v; want unknown, %s, kept", s.push.Status, s.push.ErrorCode, s.reserved, o.code)
				}
				if s.action.Status != gatehouse.StatusUnknown {
					t.Errorf("the action is %s", s.action.Status)
				}
			})
		}
	}
}

// TestReadBackComesFirst: a read-back proof stands, whatever else has changed:
// revoking an approval does not undo an effect.
func TestReadBackComesFirst(t *testing.T) {
	t.Parallel()
	for f, want := range map[fault]gatehouse.PushStatus{answerLost: gatehouse.PushApplied,
		requestLost: gatehouse.PushFailed} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			l := newLedger(connector.ClassB, f)
			b := newBench(t, telling{checking{l}})
			a := b.approve()
			b.drain(b.dispatcher(testConfig()))
			b.authority.say(errRevoked)
			b.clock.advance(time.Hour)
			b.settle(b.dispatcher(testConfig()))
			s := b.state(a)
			if s.push.Status != want || len(l.calls) != 1 {
				t.Errorf("%s after %d calls, want %s after 1", s.push.Status, len(l.calls), want)
			}
			assertSettled(t, s)
		})
	}
}

func TestCanceledActionIsNotSent(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l)
	a := b.approve()
	b.update(func(tx gatehouse.Tx) error {
		return tx.MoveAction(gatehouse.ActionMove{ID: a.ID, From: "approved", To: "canceled", Finished: true})
	})
	b.settle(b.dispatcher(testConfig()))
	s := b.state(a)
	if len(l.calls) != 0 || s.push.Status != gatehouse.PushFailed || s.push.ErrorCode != "not_approved" ||
		s.action.Status != gatehouse.StatusCanceled {
		t.Errorf("%d calls, push %s (%s), action %s", len(l.calls), s.push.Status, s.push.ErrorCode, s.action.Status)
	}
}

// TestStoreTroubleAtTheIntent: an error that is not a verdict of the authority
// puts the push back without an attempt.
func TestStoreTroubleAtTheIntent(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("disk on fire"), gatehouse.E(gatehouse.CodeBusy, "busy"), gatehouse.ErrBusy} {
		l := newLedger(connector.ClassC)
		b := newBench(t, l)
		a := b.approve()
		d := b.dispatcher(testConfig())
		b.authority.say(err)
		b.drain(d)
		if s := b.state(a); s.push.Status != gatehouse.PushQueued || s.push.Attempts != 0 ||
			s.action.Status != gatehouse.StatusApproved || len(l.calls) != 0 {
			t.Fatalf("%v: push %s, %d attempts, action %s, %d calls", err, s.push.Status, s.push.Attempts, s.action.Status,
				len(l.calls))
		}
		b.authority.say(nil)
		b.clock.advance(time.Minute)
		b.settle(d)
		if s := b.state(a); s.push.Status != gatehouse.PushApplied || len(l.calls) != 1 {
			t.Errorf("%v: afterwards %s with %d calls", err, s.push.Status, len(l.calls))
		}
	}
}

func TestSuccessReceiptSettlesWithoutACall(t *testing.T) {
	t.Parallel()
	for _, class := range []connector.Class{connector.ClassA, connector.ClassB, connector.ClassC} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			l := newLedger(class)
			b := newBench(t, l)
			a := b.approve()
			b.update(func(tx gatehouse.Tx) error {
				return tx.InsertReceipt(&gatehouse.Receipt{
					ID: "rcp_old", Tenant: a.Tenant, ActionID: a.ID, PushID: b.pushID(a), IdempotencyKey: a.IdempotencyKey,
					Attempt: 1, Generation: 1, Outcome: gatehouse.ReceiptApplied, Source: "call", Late: true, ExternalID: "ext-7",
					At: tx.Now(),
				})
			})
			b.settle(b.dispatcher(testConfig()))
			s := b.state(a)
			if len(l.calls) != 0 || s.push.Status != gatehouse.PushApplied {
				t.Errorf("%s with %d calls", s.push.Status, len(l.calls))
			}
			if r := s.action.Receipt; r == nil || r.Source != "receipt" || r.ExternalID != "ext-7" {
				t.Errorf("%+v", r)
			}
			assertSettled(t, s)
		})
	}
}

func (b *bench) pushID(a *gatehouse.Action) string { return strings.Replace(a.ID, "act", "psh", 1) }

func TestTargetDownAtTheCheck(t *testing.T) {
	t.Parallel()
	for _, class := range []connector.Class{connector.ClassA, connector.ClassB, connector.ClassC} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			l := newLedger(class)
			l.down = true
			b := newBench(t, telling{checking{l}})
			a := b.approve()
			d := b.dispatcher(testConfig())
			b.drain(d)
			s := b.state(a)
			if s.push.Status != gatehouse.PushQueued || s.push.Attempts != 1 || s.action.Status != gatehouse.StatusApproved ||
				len(l.calls) != 0 {
				t.Fatalf("push %s, %d attempts, action %s, %d calls", s.push.Status, s.push.Attempts, s.action.Status, len(l.calls))
			}
			l.set(func() { l.down = false })
			b.clock.advance(time.Hour)
			b.settle(d)
			if s := b.state(a); s.push.Status != gatehouse.PushApplied || len(l.calls) != 1 {
				t.Errorf("afterwards %s with %d calls", s.push.Status, len(l.calls))
			}

			l.set(func() { l.down = true })
			dead := b.approve()
			b.settle(d)
			s = b.state(dead)
			if s.push.Status != gatehouse.PushFailed || s.push.Attempts != 4 || s.push.ErrorCode != "unreachable" ||
				len(l.calls) != 1 {
				t.Errorf("a target that stays down: %s, %s after %d attempts", s.push.Status, s.push.ErrorCode, s.push.Attempts)
			}
			assertSettled(t, s)
		})
	}
}

// TestPoison: a payload that kills its worker before its call is not carried
// forever.
func TestPoison(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassC)
	b := newBench(t, l)
	a := b.approve()
	config := testConfig()
	config.MaxClaims = 3
	deaths := 0
	d := b.dispatcher(config, failpoint(func(p Point) {
		if p == PointIntent {
			deaths++
			die()
		}
	}))
	b.settle(d)
	s := b.state(a)
	if s.push.Status != gatehouse.PushFailed || s.push.ErrorCode != "poison" || deaths != 3 || len(l.calls) != 0 {
		t.Errorf("%s (%s) after %d deaths and %d calls", s.push.Status, s.push.ErrorCode, deaths, len(l.calls))
	}
	assertSettled(t, s)
	b.replay(a)
	b.settle(b.dispatcher(config))
	if s := b.state(a); s.push.Status != gatehouse.PushApplied {
		t.Errorf("once cured and replayed: %s (%s)", s.push.Status, s.push.ErrorCode)
	}
}

func TestHoldIsKept(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l)
	b.approve(func(_ *gatehouse.Action, p *gatehouse.Push) {
		p.NotBefore = p.NotBefore.Add(10 * time.Second)
		p.NextAttempt = &p.NotBefore
	})
	d := b.dispatcher(testConfig())
	b.clock.advance(10*time.Second - time.Microsecond)
	if got := b.drain(d); len(got) != 0 {
		t.Fatalf("sent within the hold: %+v", got)
	}
	b.clock.advance(time.Microsecond)
	if got := b.drain(d); len(got) != 1 || got[0].Outcome != "applied" {
		t.Fatalf("after the hold: %+v", got)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l, "default", "acme")
	other := b.approve(func(a *gatehouse.Action, _ *gatehouse.Push) { a.Tenant = "acme" })
	var mine []*gatehouse.Action
	for range 7 {
		mine = append(mine, b.approve())
	}
	d := b.dispatcher(testConfig())
	items, err := d.Drain(t.Context(), "default", 5)
	if err != nil || len(items) != 5 {
		t.Fatalf("%d items, %v; want 5", len(items), err)
	}
	for _, item := range items {
		if item.Outcome != "applied" || item.Receipt == nil || item.Class != "A" || item.Digest == "" || item.Change == "" {
			t.Errorf("%+v", item)
		}
	}
	if items, err := d.Drain(t.Context(), "default", 5); err != nil || len(items) != 2 {
		t.Errorf("%d items, %v; want the other 2", len(items), err)
	}
	for _, a := range mine {
		if s := b.state(a); s.push.Status != gatehouse.PushApplied {
			t.Errorf("%s is %s", a.ID, s.push.Status)
		}
	}
	if s := b.state(other); s.push.Status != gatehouse.PushQueued {
		t.Errorf("another tenant's push is %s", s.push.Status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	items, err = d.Drain(ctx, "acme", 5)
	if s := b.state(other); len(items) > 0 || s.push.Generation != 0 {
		t.Errorf("a canceled drain claims generation %d and returns %d items, %v", s.push.Generation, len(items), err)
	}
}
