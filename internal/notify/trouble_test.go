package notify_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestFailing: after three consecutive failures, a channel counts as failing. The log records it,
// the next channel is told and also gets new messages; the first success ends the state and sends
// the waiting messages.
func TestFailing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		e := newEndpoint(t)
		w.smtp.AfterData(func() error {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "out of order"}
		})
		n := w.notifier(notify.Config{
			Channels: []*notify.Configured{w.mail(), w.hook(e)},
			Routes:   []notify.Route{{Channels: []string{"mail"}, Fallback: []string{"hook"}}},
		})
		w.Propose("walnuts", "price_change", 12) // two mails
		w.send(n, "mail")
		if got := w.logged("channel.failing"); got != 0 {
			t.Fatalf("failing after two failures: %d", got)
		}
		w.Propose("pecans", "price_change", 12)
		w.send(n, "mail")
		if got := w.logged("channel.failing"); got != 1 {
			t.Fatalf("%d entries channel.failing", got)
		}
		w.deliver(n, "hook")
		bodies, _ := e.got()
		if len(bodies) != 1 || bodies[0].Type != "channel.failing" ||
			!strings.Contains(bodies[0].Data.Summary, "The channel mail fails") {
			t.Fatalf("the next channel got %+v", bodies)
		}
		w.Propose("almonds", "price_change", 12)
		w.send(n, "hook")
		if bodies, _ = e.got(); len(bodies) != 2 || bodies[1].Type != "approval.asked" {
			t.Fatalf("the next channel got %+v", bodies)
		}
		states, err := w.Gate.ListChannels(w.Admin())
		if err != nil || len(states) != 0 { // the gate of this world has no channels configured
			t.Fatalf("channels: %v, %v", states, err)
		}

		w.smtp.AfterData(nil)
		w.deliver(n, "mail") // the two of almonds were not tried yet
		w.deliver(n, "mail") // the others are due at once
		if got := w.statuses(); got[gatehouse.NotificationAccepted] != 6 || got[gatehouse.NotificationQueued] != 0 {
			t.Errorf("statuses: %v", got)
		}
		if got := w.logged("channel.recovered"); got != 1 {
			t.Errorf("%d entries channel.recovered", got)
		}
	})
}

// TestFailingOfThePolicy: when a channel fails that only a policy's stage names, and no route does, the alert
// goes to the channels of the routes.
func TestFailingOfThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, p := newEndpoint(t), newPager(t)
	p.answers(500)
	n := w.notifier(notify.Config{
		Channels: []*notify.Configured{w.hook(e), w.pager(p)}, Probe: -1,
		Routes: []notify.Route{{Channels: []string{"hook"}}},
	})
	w.askOncall()
	w.Propose("walnuts", "refund", 12)
	w.Clock.Advance(time.Hour)
	_, err := w.Gate.Sweep(t.Context())
	must(t, err)
	w.spread(n)
	for range 3 {
		w.deliver(n, "oncall")
		w.Clock.Advance(time.Hour)
	}
	w.deliver(n, "hook")
	bodies, _ := e.got()
	if got := w.logged("channel.failing"); got != 1 || !slices.ContainsFunc(bodies, func(b webhook.Body) bool {
		return b.Type == "channel.failing" && strings.Contains(b.Data.Summary, "The channel oncall fails")
	}) {
		t.Errorf("%d entries channel.failing; told %+v", got, bodies)
	}
}

// TestStorm: a thousand proposals give each person ten mails and one digest, whose count is all the others.
func TestStorm(t *testing.T) {
	t.Parallel()
	const proposals = 1000
	w := newWorld(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	for i := range proposals {
		w.Propose("walnuts", []string{"price_change", "spend"}[i%2], 0)
	}
	w.send(n, "mail")
	w.Clock.Advance(16 * time.Minute)
	w.deliver(n, "mail")
	mails := w.smtp.Mails()
	if len(mails) != 2*(10+1) {
		t.Errorf("%d mails for %d proposals", len(mails), proposals)
	}
	rest := proposals - 10
	digests := 0
	for _, m := range mails {
		if !strings.Contains(m.Subject(), "more messages") {
			continue
		}
		digests++
		for _, want := range []string{strconv.Itoa(rest) + " more messages since",
			strconv.Itoa(rest) + " approvals requested", strconv.Itoa(rest/2) + " price_change", "L3"} {
			if !strings.Contains(m.Text, want) {
				t.Errorf("the digest lacks %q:\n%s", want, m.Text)
			}
		}
	}
	if digests != 2 {
		t.Errorf("%d digests", digests)
	}
	if got := w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationQueued}); len(got) != 0 {
		t.Errorf("still queued: %v", got)
	}
}

// TestDeadLetters: operators are told of every push that needs a person, and of none that was
// settled meanwhile.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	clock := gatetest.NewClock()
	store := migratedfile.Open(t, migratedfile.New(t), clock.Now)
	w := &world{World: gatetest.New(t, store, clock), t: t, hub: wake.Spread(&wake.Hub{}), smtp: mailtest.Start(t)}
	w.Fill()
	w.create(
		gatehouse.NewPrincipal{
			Name: "olga", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleOperator},
		},
	)
	dead, err := w.Gate.ListDeadLetters(w.Admin(), gatehouse.DeadLetterFilter{Limit: 100})
	if err != nil || len(dead.Items) < 2 {
		t.Fatalf("%d dead letters, %v", len(dead.Items), err)
	}
	want := map[string]gatehouse.PushStatus{}
	for _, d := range dead.Items {
		want[d.ActionID] = d.Status
	}
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}, DigestAfter: 1000})
	w.send(n, "mail")
	told := map[string]gatehouse.NotificationKind{}
	for _, m := range w.list(gatehouse.NotificationFilter{}) {
		if m.RecipientName == "olga" && m.Status == gatehouse.NotificationAccepted {
			told[m.ActionID] = m.Kind
		}
	}
	for id, status := range want {
		kind := gatehouse.NotifyDeadLetter
		if status == gatehouse.PushUnknown {
			kind = gatehouse.NotifyUnknown
		}
		if told[id] != kind {
			t.Errorf("%s is %s, and olga was told %q", id, status, told[id])
		}
		delete(told, id)
	}
	for id, kind := range told {
		t.Errorf("olga was told %s of %s, which is not a dead letter", kind, id)
	}
}
