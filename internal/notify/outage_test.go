package notify_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/api"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

const policyForDays = `version: 1
slack: {decide_up_to: 3}
risk: {price_change: 3}
approvals:
  3: {required: 1, roles: [approver], expiry: 72h}
`

// outage is an office whose mail server, Slack and webhook can all be down. A pager replaces them,
// and works.
type outage struct {
	*office
	hook  *endpoint
	pager *pager
	// dead counts the calls of the webhook until it came back.
	dead int
	// due holds when each waiting message is tried next.
	due map[string]time.Time
}

var outageChannels = []string{"mail", "slack", "hook", "oncall"}

func newOutage(t *testing.T, w *world) *outage {
	o := &outage{
		office: newOffice(t, w),
		hook:   newEndpoint(t),
		pager:  newPager(t),
	}
	o.due = make(map[string]time.Time)
	o.apply(policyForDays)
	o.notifier = w.notifier(notify.Config{
		Channels: []*notify.Configured{w.mail(), o.channel, w.hook(o.hook), w.pager(o.pager)},
		Routes: []notify.Route{{
			Channels: []string{"mail", "slack", "hook"}, Fallback: []string{"oncall"},
		}},
		DecideUpTo: w.Gate.SlackUpTo, DigestAfter: 1000,
	})
	return o
}

// die takes all three down, or brings them back.
func (o *outage) die(dead bool) {
	o.slack.SetDown(dead)
	if !dead {
		o.smtp.Recipients(nil)
		o.hook.answers(func(int) (int, http.Header) { return http.StatusNoContent, nil })
		_, ids := o.hook.got()
		o.dead = len(ids)
		return
	}
	o.smtp.Recipients(func(string) error {
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "down"}
	})
	o.hook.answers(func(int) (int, http.Header) { return http.StatusServiceUnavailable, nil })
}

// turn processes everything that is due now.
func (o *outage) turn() {
	o.t.Helper()
	if _, err := o.Gate.Sweep(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	for range 2 {
		o.spread(o.notifier)
		for _, channel := range outageChannels {
			o.deliver(o.notifier, channel)
		}
		if _, err := o.notifier.WriteCards(o.t.Context(), "slack"); err != nil {
			o.t.Fatal(err)
		}
	}
}

// scheduled checks that each message that was tried in this turn waits as long as the schedule says,
// and how often the messages of the first hours have been tried.
func (o *outage) scheduled(began time.Time) {
	o.t.Helper()
	now := o.Clock.Now()
	for _, n := range o.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationQueued}) {
		if n.Attempts == 0 || n.DueAt == nil || n.DueAt.Equal(o.due[n.ID]) {
			continue
		}
		o.due[n.ID] = *n.DueAt
		want := notify.Schedule[n.Attempts-1]
		if wait := n.DueAt.Sub(now); wait < want || wait > want+want/10+time.Second {
			o.t.Fatalf("after %d attempts %s on %s waits %s, want %s", n.Attempts, n.Kind, n.Channel, wait, want)
		}
		if now.Sub(began) >= 20*time.Hour && n.CreatedAt.Sub(began) < 2*time.Hour && (n.Attempts < 5 || n.Attempts > 8) {
			o.t.Errorf("%s on %s of %s was tried %d times", n.Kind, n.Channel, n.CreatedAt, n.Attempts)
		}
	}
}

// outside is an approver who works over HTTP, as the CLI does.
func (o *outage) outside() *client.Client {
	o.t.Helper()
	creds, err := o.Gate.CreatePrincipal(o.Admin(), gatehouse.NewPrincipal{
		Name: "dan", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	must(o.t, err)
	served, err := api.New(api.Config{
		Actions: o.Gate, Dispatch: o.Gate, Admin: o.Gate, Policies: o.Gate, Audit: o.Gate, Sessions: o.Gate, Auth: o.Gate,
		Lookup: o.Gate, Logger: slog.New(slog.DiscardHandler),
	})
	must(o.t, err)
	mux := http.NewServeMux()
	served.Mount(mux)
	server := httptest.NewServer(mux)
	o.t.Cleanup(server.Close)
	c, err := client.New(server.URL, creds.Key, client.WithEditToken(creds.EditToken))
	must(o.t, err)
	return c
}

// rows counts messages by channel and status.
func (o *outage) rows() map[string]int {
	o.t.Helper()
	counts := map[string]int{}
	for cursor := ""; ; {
		page, err := o.Gate.ListNotifications(o.Admin(), gatehouse.NotificationFilter{Limit: 100, Cursor: cursor})
		must(o.t, err)
		for _, n := range page.Items {
			counts[n.Channel+" "+string(n.Status)]++
		}
		if cursor = page.NextCursor; cursor == "" {
			return counts
		}
	}
}

func (o *outage) want(when string, want map[string]int) {
	o.t.Helper()
	if got := o.rows(); !maps.Equal(got, want) {
		o.t.Fatalf("%s: %v, want %v", when, got, want)
	}
}

// TestDayWithoutChannels: mail, Slack and webhooks are down for 24 hours while people continue to
// work. Messages wait in the queue. Each channel is reported as failing once. The route's fallback
// gets an alert about each, and the questions. Every message that is still relevant arrives after the
// channels return.
func TestDayWithoutChannels(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		o := newOutage(t, w)
		early := o.Propose("early", "price_change", 12)
		o.turn()
		o.want("before", map[string]int{"mail accepted": 2, "slack delivered": 1, "hook delivered": 1})
		if m := o.card(early); m.Button("Approve") == nil {
			t.Fatalf("the first card: %s", m.All())
		}
		mails := len(o.smtp.Mails())
		dan := o.outside()

		o.die(true)
		began := o.Clock.Now()
		const step = time.Hour
		var open []*gatehouse.Action
		short, _, err := o.Gate.Propose(o.As("bot"), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update", ExpiresIn: gatehouse.Span(6 * time.Hour),
			Target: gatehouse.Target{
				EntityType: "item", EntityRef: "short", Version: "7",
			}, ProposedChange: `{"amount":"1"}`,
		})
		must(t, err)
		for at := time.Duration(0); at < 24*time.Hour; at += step {
			open = append(open, o.Propose("walnuts", "price_change", 12))
			if at == 5*time.Hour {
				// The inbox and decisions work as ever.
				page, err := dan.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusPending, Limit: 100})
				if err != nil || len(page.Items) != len(open)+2 {
					t.Fatalf("over HTTP, %d wait, %v", len(page.Items), err)
				}
				answer, err := dan.Decide(t.Context(), early.ID,
					gatehouse.Decision{Decision: gatehouse.Approve, Digest: early.Digest})
				if err != nil || answer.Code != gatehouse.Decided {
					t.Fatalf("over HTTP: %+v, %v", answer, err)
				}
			}
			o.turn()
			o.scheduled(began)
			o.Clock.Advance(step)
		}
		o.turn()
		// Two people are asked each time; the proposer's sponsor is told of the decision and the
		// expiry. A question that has expired is no longer relevant. The pager has the three
		// alerts, the questions since then (all except the first and the short one), and the two
		// outcomes.
		o.want("after a day", map[string]int{
			"mail accepted": 2, "slack delivered": 1, "hook delivered": 1,
			"mail queued": 2*24 + 2, "slack queued": 24 + 2, "hook queued": 24 + 2,
			"mail muted": 2, "slack muted": 1, "hook muted": 1,
			"oncall accepted": 3 + 23 + 2,
		})
		for kind, want := range map[string]int{"channel.failing": 3, "channel.recovered": 0} {
			if got := o.logged(kind); got != want {
				t.Errorf("%d entries %s, want %d", got, kind, want)
			}
		}
		alerts := map[string]int{}
		for _, e := range o.pager.got() {
			for _, channel := range []string{"mail", "slack", "hook"} {
				if e.Payload != nil && strings.Contains(e.Payload.Summary, "The channel "+channel+" fails") {
					alerts[channel]++
				}
			}
		}
		if want := map[string]int{"mail": 1, "slack": 1, "hook": 1}; !maps.Equal(alerts, want) {
			t.Errorf("alerts: %v", alerts)
		}
		if len(o.smtp.Mails()) != mails || len(o.slack.Messages()) != 1 {
			t.Errorf("%d mails and %d cards got through", len(o.smtp.Mails())-mails, len(o.slack.Messages()))
		}
		page, err := o.Gate.ListActions(o.Admin(), gatehouse.ActionFilter{Status: gatehouse.StatusPending, Limit: 100})
		if err != nil || len(page.Items) != len(open) {
			t.Errorf("%d wait in the queue, %v", len(page.Items), err)
		}

		o.die(false)
		last := o.Propose("walnuts", "price_change", 12) // the first success makes the other messages due
		open = append(open, last)
		o.turn()
		o.arrived(early, short, open, mails)
	})
}

// arrived checks the messages after the end of the outage.
func (o *outage) arrived(early, short *gatehouse.Action, open []*gatehouse.Action, mails int) {
	o.t.Helper()
	got := o.rows()
	for key, n := range got {
		if strings.HasSuffix(key, "queued") || strings.HasSuffix(key, "failed") || strings.HasSuffix(key, "sent") {
			o.t.Errorf("%d %s", n, key)
		}
	}
	if n := o.logged("channel.recovered"); n != 3 {
		o.t.Errorf("%d entries channel.recovered", n)
	}
	if n := o.logged("channel.failing"); n != 3 {
		o.t.Errorf("%d entries channel.failing at the end", n)
	}
	// Mail: each question once to each of two people, the outcomes once to the sponsor.
	to := map[string]int{}
	for _, m := range o.smtp.Mails()[mails:] {
		for _, a := range append([]*gatehouse.Action{early, short}, open...) {
			if strings.Contains(m.Text, a.ID) {
				to[m.To+" "+a.ID]++
			}
		}
	}
	want := map[string]int{"sam@shop.example " + early.ID: 1, "sam@shop.example " + short.ID: 1}
	for _, a := range open {
		want["ana@shop.example "+a.ID], want["bo@shop.example "+a.ID] = 1, 1
	}
	// cy and dan may also answer, but have no address.
	if !maps.Equal(to, want) {
		o.t.Errorf("mails %v, want %v", to, want)
	}
	// Webhooks: each message once.
	bodies, ids := o.hook.got()
	hooks := map[string]int{}
	for _, b := range bodies[o.dead:] {
		hooks[b.Type+" "+b.Data.ActionID]++
	}
	want = map[string]int{"approval.decided " + early.ID: 1, "approval.expired " + short.ID: 1}
	for _, a := range open {
		want["approval.asked "+a.ID] = 1
	}
	if !maps.Equal(hooks, want) {
		o.t.Errorf("webhooks %v, want %v", hooks, want)
	}
	if again := slices.Clone(ids[o.dead:]); len(slices.Compact(slices.Sorted(slices.Values(again)))) != len(again) {
		o.t.Error("a webhook came twice")
	}
	// Slack: one up-to-date card for each action.
	for _, a := range open {
		if m := o.card(a); m.Button("Approve") == nil {
			o.t.Errorf("the card of %s: %s", a.ID, m.All())
		}
	}
	if m := o.card(early); m.Button("Approve") != nil || !strings.Contains(m.All(), "Approved by dan") {
		o.t.Errorf("the first card: %s", m.All())
	}
	if m := o.card(short); m.Button("Approve") != nil {
		o.t.Errorf("the card of the expired action: %s", m.All())
	}
}

// TestDigestsOfADayWithoutMail: bursts of proposals while the mail server is down for a day arrive
// afterwards as single mails and digests, whose counts add up to all of them.
func TestDigestsOfADayWithoutMail(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		const bursts, each, single = 4, 10, 3
		if _, err := w.Gate.ApplyPolicy(w.Admin(), policyForDays); err != nil {
			t.Fatal(err)
		}
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}, DigestAfter: single})
		w.smtp.Recipients(func(string) error {
			return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "down"}
		})
		for range bursts {
			for range each {
				w.Propose("walnuts", "price_change", 12)
			}
			for range 6 {
				w.send(n, "mail")
				w.Clock.Advance(time.Hour)
			}
		}
		if got := w.statuses(); got[gatehouse.NotificationQueued] != 2*bursts*(single+1) || len(got) != 1 {
			t.Fatalf("after a day: %v", got)
		}
		w.smtp.Recipients(nil)
		w.Clock.Advance(5 * time.Minute) // the next probe
		w.deliver(n, "mail")
		w.deliver(n, "mail")
		if got := w.statuses(); got[gatehouse.NotificationAccepted] != 2*bursts*(single+1) || len(got) != 1 {
			t.Errorf("at the end: %v", got)
		}
		told, digests := map[string]int{}, map[string]int{}
		for _, m := range w.smtp.Mails() {
			if !strings.Contains(m.Subject(), "more messages") {
				told[m.To]++
				continue
			}
			digests[m.To]++
			told[m.To] += each - single
			if want := strconv.Itoa(each-single) + " more messages since"; !strings.Contains(m.Text, want) {
				t.Errorf("the digest lacks %q:\n%s", want, m.Text)
			}
		}
		for _, to := range []string{"ana@shop.example", "bo@shop.example"} {
			if told[to] != bursts*each || digests[to] != bursts {
				t.Errorf("%s was notified of %d proposals, also in %d digests", to, told[to], digests[to])
			}
		}
	})
}
