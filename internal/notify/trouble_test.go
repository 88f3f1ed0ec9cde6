package notify_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestFailing: three failures in a row make a channel failing: the log says so, the
// next channel is told and takes new messages besides, and the first success ends it
// and sends what waits.
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
		w.spread(n)
		w.deliver(n, "mail")
		if got := w.logged("channel.failing"); got != 0 {
			t.Fatalf("failing after two failures: %d", got)
		}
		w.Propose("pecans", "price_change", 12)
		w.spread(n)
		w.deliver(n, "mail")
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
		w.spread(n)
		w.deliver(n, "hook")
		if bodies, _ = e.got(); len(bodies) != 2 || bodies[1].Type != "approval.asked" {
			t.Fatalf("the next channel got %+v", bodies)
		}
		states, err := w.Gate.ListChannels(w.Admin())
		if err != nil || len(states) != 0 { // the gate of this world has none configured
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

// TestOutage: with everything dead for a day nothing is lost, and all of it arrives.
func TestOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t)
	e.answers(func(int) (int, http.Header) { return 503, nil })
	w.smtp.Recipients(func(string) error {
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "down"}
	})
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail(), w.hook(e)}})
	for range 3 {
		w.Propose("walnuts", "price_change", 12)
	}
	for range 24 {
		w.spread(n)
		w.deliver(n, "mail")
		w.deliver(n, "hook")
		w.Clock.Advance(59 * time.Minute)
	}
	if got := w.statuses(); got[gatehouse.NotificationQueued] != len(w.list(gatehouse.NotificationFilter{})) {
		t.Fatalf("after a day: %v", got)
	}
	before := len(w.smtp.Mails())
	e.answers(func(int) (int, http.Header) { return 200, nil })
	w.smtp.Recipients(nil)
	// The next try may be hours away for some; the first that succeeds hurries all.
	for range 15 {
		w.Clock.Advance(time.Minute)
		w.deliver(n, "mail")
		w.deliver(n, "hook")
		if w.statuses()[gatehouse.NotificationQueued] == 0 {
			break
		}
		w.Clock.Advance(time.Hour)
		if _, err := w.Gate.SweepExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.spread(n)
	w.deliver(n, "mail")
	w.deliver(n, "hook")
	if got := w.statuses(); got[gatehouse.NotificationQueued] != 0 || got[gatehouse.NotificationFailed] != 0 {
		t.Errorf("after the outage: %v", got)
	}
	if len(w.smtp.Mails()) == before {
		t.Error("no mail arrived")
	}
}

// TestStorm: ten thousand proposals end in a few mails and digests whose figures add
// up to all of them; a webhook gets each.
func TestStorm(t *testing.T) {
	t.Parallel()
	proposals := 10_000
	if testing.Short() {
		proposals = 1000
	}
	w := newWorld(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	for i := range proposals {
		w.Propose("walnuts", []string{"price_change", "spend"}[i%2], 0)
		if i%1000 == 999 {
			w.spread(n)
			w.deliver(n, "mail")
		}
	}
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
			strconv.Itoa(rest) + " approvals asked", strconv.Itoa(rest/2) + " price_change", "L3"} {
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
