package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// faulty is a channel of any kind, whose messages fail while fails is set.
type faulty struct {
	kind     string
	callback bool
	fails    bool
}

func (f *faulty) Kind() string                    { return f.kind }
func (f *faulty) Trait() notify.Trait             { return notify.Trait{Every: true, Callback: f.callback} }
func (*faulty) Reaches(*gatehouse.Principal) bool { return true }
func (f *faulty) configured(name string) *notify.Configured {
	return &notify.Configured{Name: name, Tenants: []string{"default"}, Channel: f}
}

func (f *faulty) Send(context.Context, *notify.Message) (notify.Sent, error) {
	if f.fails {
		return notify.Sent{}, errors.New("out of order")
	}
	return notify.Sent{Delivered: true}, nil
}

// post sends one message. The notifiers take turns.
func (w *world) post(f *faulty, fails bool, notifiers ...*notify.Notifier) {
	w.t.Helper()
	f.fails = fails
	w.notes++
	id := fmt.Sprintf("ntf_%06d", w.notes)
	err := w.Store.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
		now := tx.Now()
		return tx.InsertNotifications([]*gatehouse.Notification{{
			ID: id, Tenant: "default", CreatedAt: now, Kind: gatehouse.NotifyTest, Entry: -1, Channel: "hook",
			Status: gatehouse.NotificationQueued, DueAt: &now,
		}})
	})
	must(w.t, err)
	w.deliver(notifiers[w.notes%len(notifiers)], "hook")
}

// state is the state of the only channel that was used.
func (w *world) state() *gatehouse.ChannelState {
	w.t.Helper()
	list, err := w.channels()
	if err != nil || len(list) == 0 {
		w.t.Fatalf("channels %v, %v", list, err)
	}
	return list[0]
}

// every is a rate of failures: the last of each n messages fails.
func every(n int) func(int) bool { return func(i int) bool { return i%n == n-1 } }

// TestFlaky: a channel fails when more than a tenth of its messages of 15 minutes have failed. It
// recovers when at most a twentieth have, and between the two nothing changes.
func TestFlaky(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &faulty{kind: "sns"}
	config := notify.Config{Channels: []*notify.Configured{f.configured("hook")}, Probe: -1}
	one, two := w.notifier(config), w.notifier(config)
	// run sends a message every 10 seconds.
	run := func(messages int, fails func(int) bool) {
		t.Helper()
		for i := range messages {
			w.Clock.Advance(10 * time.Second)
			w.post(f, fails(i), one, two)
		}
	}
	expect := func(when, word string, failing, recovered int) {
		t.Helper()
		s := w.state()
		if s.Word() != word || s.Flaky != (word == "failing") {
			t.Errorf("%s: %+v", when, s)
		}
		if a, b := w.logged("channel.failing"), w.logged("channel.recovered"); a != failing || b != recovered {
			t.Errorf("%s: %d entries channel.failing and %d channel.recovered", when, a, b)
		}
	}
	run(9, every(3))
	expect("3 of 9", "works", 0, 0)
	w.Clock.Advance(16 * time.Minute)
	run(100, func(i int) bool { return i%11 == 10 })
	expect("9 %", "works", 0, 0)
	w.Clock.Advance(16 * time.Minute)
	run(100, every(9))
	expect("11 %", "failing", 1, 0)
	run(100, every(13))
	expect("8 %", "failing", 1, 0)
	run(200, every(30))
	expect("3 %", "works", 1, 1)
	run(200, every(13))
	expect("8 % again", "works", 1, 1)

	run(3, func(int) bool { return true })
	if s := w.state(); s.Word() != "failing" {
		t.Errorf("three in a row: %+v", s)
	}
}

// TestFlakyOutage: the messages of an outage do not make a channel flaky. The first success ends the
// outage, and the next failure is one failure only.
func TestFlakyOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &faulty{kind: "sns"}
	n := w.notifier(notify.Config{Channels: []*notify.Configured{f.configured("hook")}, Probe: -1})
	for i := range 140 {
		w.post(f, i >= 100, n)
	}
	w.post(f, false, n)
	if s := w.state(); s.Word() != "works" {
		t.Errorf("after the outage: %+v", s)
	}
	w.post(f, true, n)
	if s := w.state(); s.Word() != "works" {
		t.Errorf("after one more failure: %+v", s)
	}
}

// TestFlakyRetries: a message counts once, however often it is tried.
func TestFlakyRetries(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := &faulty{kind: "sns"}
		n := w.notifier(notify.Config{Channels: []*notify.Configured{f.configured("hook")}, Probe: -1})
		f.fails = true
		w.Propose("walnuts", "price_change", 12)
		w.Propose("almonds", "price_change", 12)
		w.send(n, "hook")
		w.post(f, false, n)
		w.Clock.Advance(6 * time.Second)
		f.fails = true
		w.deliver(n, "hook") // the second attempts
		for range 17 {
			w.post(f, false, n)
		}
		w.post(f, true, n) // the third of 21 messages
		if s := w.state(); s.Word() != "failing" || len(s.Minutes) != 1 || s.Minutes[0].Failed != 3 ||
			s.Minutes[0].Tried != 21 {
			t.Errorf("state: %+v", s)
		}
	})
}

// TestWebhookOff: a webhook that has failed for 5 days is switched off, administrators are
// notified, and a successful test switches it on. Other channels and callbacks continue.
func TestWebhookOff(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f, spare := &faulty{kind: "webhook"}, &faulty{kind: "sns"}
		n := w.notifier(notify.Config{
			Channels: []*notify.Configured{f.configured("hook"), spare.configured("spare")},
			Routes:   []notify.Route{{Channels: []string{"hook"}, Fallback: []string{"spare"}}}, Probe: -1,
		})
		for range 3 {
			w.post(f, true, n)
		}
		w.Clock.Advance(5*24*time.Hour - time.Second)
		w.post(f, true, n)
		if s := w.state(); s.Word() != "failing" {
			t.Fatalf("before 5 days are over: %+v", s)
		}
		w.Clock.Advance(time.Second)
		w.post(f, true, n)
		w.post(f, true, n)
		if s := w.state(); s.Word() != "off" || w.logged("channel.off") != 1 {
			t.Fatalf("after 5 days: %+v, %d entries", s, w.logged("channel.off"))
		}
		alerts := w.list(gatehouse.NotificationFilter{Channel: "spare"})
		if len(alerts) != 2 || !strings.Contains(string(alerts[0].Data), "no success for 5 days") {
			t.Errorf("alerts: %+v", alerts)
		}
		before := len(w.list(gatehouse.NotificationFilter{Channel: "hook"}))
		w.Propose("walnuts", "price_change", 12)
		w.spread(n)
		if got := len(w.list(gatehouse.NotificationFilter{Channel: "hook"})); got != before {
			t.Errorf("%d messages were queued for it", got-before)
		}
		w.post(f, false, n)
		if s := w.state(); s.Word() != "works" || w.logged("channel.recovered") != 1 {
			t.Errorf("after a test: %+v", s)
		}
		// A success in between begins the 5 days again.
		for range 3 {
			w.post(f, true, n)
		}
		if s := w.state(); s.Word() != "failing" {
			t.Errorf("failing again: %+v", s)
		}
	})
	for _, f := range []*faulty{{kind: "sns"}, {kind: "webhook", callback: true}} {
		w := newWorld(t)
		n := w.notifier(notify.Config{Channels: []*notify.Configured{f.configured("hook")}, Probe: -1})
		for range 5 {
			w.post(f, true, n)
			w.Clock.Advance(3 * 24 * time.Hour)
		}
		if s := w.state(); s.Word() != "failing" {
			t.Errorf("%s: %+v", f.kind, s)
		}
	}
}
