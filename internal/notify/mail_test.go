package notify_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
)

func recipients(mails []*mailtest.Mail) []string {
	var to []string
	for _, m := range mails {
		to = append(to, m.To)
	}
	slices.Sort(to)
	return to
}

// TestMail: the people who may answer are asked, and the sponsor is told the outcome in the same
// thread; the person who decided is not.
func TestMail(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
		a := w.Propose("walnuts", "price_change", 12)
		w.send(n, "mail")
		asked := w.smtp.Mails()
		if got := recipients(asked); !slices.Equal(got, []string{"ana@shop.example", "bo@shop.example"}) {
			t.Fatalf("asked: %v", got)
		}
		first := asked[0]
		root := "<" + a.ID + ".0@gate.example>"
		for name, want := range map[string]string{
			"Message-Id": root, "Auto-Submitted": "auto-generated", "From": `"Gatehouse" <gatehouse@gate.example>`,
		} {
			if got := first.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		for _, want := range []string{"An approval waits for you", "https://gate.example/actions/" + a.ID,
			"L3, medium write", "/amount: 0 → 12"} {
			if !strings.Contains(first.Text, want) {
				t.Errorf("the text lacks %q:\n%s", want, first.Text)
			}
		}
		if !strings.Contains(first.HTML, `<a href="https://gate.example/actions/`+a.ID+`">`) {
			t.Errorf("the HTML has no link:\n%s", first.HTML)
		}

		w.Decide(a, "ana", gatehouse.Reject)
		w.send(n, "mail")
		outcome := w.smtp.Mails()[2:]
		if got := recipients(outcome); !slices.Equal(got, []string{"sam@shop.example"}) {
			t.Fatalf("the outcome went to %v", got)
		}
		if got := outcome[0].Header.Get("References"); got != root {
			t.Errorf("References: %q", got)
		}
		if got, want := outcome[0].Subject(), "Re: "+first.Subject(); got != want {
			t.Errorf("subject %q, want %q", got, want)
		}
		if !strings.Contains(outcome[0].Text, "Rejected by ana") {
			t.Errorf("the outcome:\n%s", outcome[0].Text)
		}
		if got := w.statuses(); got[gatehouse.NotificationAccepted] != 3 || len(got) != 1 {
			t.Errorf("statuses: %v", got)
		}
		// No message is sent twice.
		w.send(n, "mail")
		if got := len(w.smtp.Mails()); got != 3 {
			t.Errorf("%d mails", got)
		}
	})
}

// TestMailRefused: an unknown recipient ends the message, but does not affect the channel; a
// temporary failure is retried.
func TestMailRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.smtp.Recipients(func(to string) error {
		if to == "ana@shop.example" {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
		}
		return &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 1}, Message: "later"}
	})
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "mail")
	byName := map[string]*gatehouse.Notification{}
	for _, m := range w.list(gatehouse.NotificationFilter{}) {
		byName[m.RecipientName] = m
	}
	if m := byName["ana"]; m.Status != gatehouse.NotificationFailed || !strings.Contains(m.LastError, "no such user") {
		t.Errorf("ana: %s, %s", m.Status, m.LastError)
	}
	if m := byName["bo"]; m.Status != gatehouse.NotificationQueued || m.Attempts != 1 {
		t.Errorf("bo: %s after %d attempts", m.Status, m.Attempts)
	}
	w.smtp.Recipients(nil)
	w.Clock.Advance(notify.Schedule[0] * 2)
	w.deliver(n, "mail")
	if got := recipients(w.smtp.Mails()); !slices.Equal(got, []string{"bo@shop.example"}) {
		t.Errorf("after the retry: %v", got)
	}
	// An operator retries the failed message.
	m, err := w.Gate.RetryNotification(w.As("olga"), byName["ana"].ID)
	if err != nil || m.Status != gatehouse.NotificationQueued {
		t.Fatalf("retry: %v, %v", m, err)
	}
	w.deliver(n, "mail")
	if got := len(w.smtp.Mails()); got != 2 {
		t.Errorf("%d mails after an operator's retry", got)
	}
	if _, err := w.Gate.RetryNotification(w.As("ana"), m.ID); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("an approver's retry: %v", err)
	}
	_, err = w.Gate.ListNotifications(w.As("ana"), gatehouse.NotificationFilter{})
	if gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("an approver's list: %v", err)
	}
}

// TestMailServerLeaves: a mail that the server has accepted is not sent again, although the server then closes
// the connection.
func TestMailServerLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.smtp.AfterData(func() error { return mailtest.ErrLeave })
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "mail")
	if got := w.statuses(); got[gatehouse.NotificationAccepted] != 2 || len(w.smtp.Mails()) != 2 {
		t.Errorf("%d mails, statuses: %v", len(w.smtp.Mails()), got)
	}
}

// TestMuted: a message that has become irrelevant is not sent.
func TestMuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	a := w.Propose("walnuts", "price_change", 12)
	w.Propose("pecans", "price_change", 13)
	w.spread(n)
	w.Decide(a, "bo", gatehouse.Reject)
	disabled := true
	if _, err := w.Gate.UpdatePrincipal(w.Admin(), "ana", gatehouse.PrincipalChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	w.spread(n) // the outcome of the first, to sam
	if _, err := w.Gate.UpdatePrincipal(w.Admin(), "sam", gatehouse.PrincipalChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	w.deliver(n, "mail")
	if got := recipients(w.smtp.Mails()); !slices.Equal(got, []string{"bo@shop.example"}) {
		t.Errorf("mails to %v", got)
	}
	if got := w.statuses(); got[gatehouse.NotificationMuted] != 4 {
		t.Errorf("statuses: %v", got)
	}
}

// TestOwnActs: a person is told what others did with their proposal, but not what they did
// themselves.
func TestOwnActs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(gatehouse.NewPrincipal{
		Name: "pat@shop.example", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleProposer,
			gatehouse.RoleApprover},
	})
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	propose := func() *gatehouse.Action {
		a, _, err := w.Gate.Propose(w.As("pat@shop.example"), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target: gatehouse.Target{EntityType: "item", EntityRef: "walnuts"}, ProposedChange: `{"amount":"12"}`,
		})
		must(t, err)
		return a
	}
	withdrawn := propose()
	if _, err := w.Gate.Cancel(w.As("pat@shop.example"), withdrawn.ID); err != nil {
		t.Fatal(err)
	}
	w.send(n, "mail")
	if mails := w.smtp.Mails(); len(mails) != 0 {
		t.Errorf("of what pat proposed and withdrew: %v", recipients(mails))
	}
	w.Decide(propose(), "ana", gatehouse.Reject)
	w.send(n, "mail")
	if got := recipients(w.smtp.Mails()); !slices.Equal(got, []string{"pat@shop.example"}) {
		t.Errorf("of ana's decision: %v", got)
	}
}

// TestQuorum: a person who voted before the message was sent is not asked.
func TestQuorum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
	a := w.Propose("walnuts", "pair", 12)
	w.spread(n)
	w.Decide(a, "ana", gatehouse.Approve)
	w.deliver(n, "mail")
	mails := w.smtp.Mails()
	if got := recipients(mails); !slices.Equal(got, []string{"bo@shop.example"}) {
		t.Fatalf("asked: %v", got)
	}
	if !strings.Contains(mails[0].Text, "Approvals: 1 of 2") {
		t.Errorf("the mail:\n%s", mails[0].Text)
	}
}

// lateFailure sends each message, and fails.
type lateFailure struct{ notify.Channel }

func (c lateFailure) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	_, err := c.Channel.Send(ctx, m)
	return notify.Sent{}, errors.Join(err, errors.New("late"))
}

// TestLateHolder: a notifier whose lease expired during its call does not change what the next
// holder recorded.
func TestLateHolder(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		routes := []notify.Route{{Channels: []string{"mail"}}}
		failing := w.mail()
		failing.Channel = lateFailure{failing.Channel}
		late := w.notifier(notify.Config{Channels: []*notify.Configured{failing}, Routes: routes})
		next := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}, Routes: routes})
		var once sync.Once
		late.Failpoint = func(point string) {
			if point == "called" {
				once.Do(func() {
					w.Clock.Advance(3 * time.Minute)
					w.deliver(next, "mail")
				})
			}
		}
		w.Propose("walnuts", "price_change", 12)
		w.send(late, "mail")
		list := w.list(gatehouse.NotificationFilter{})
		if len(list) != 2 {
			t.Errorf("%d messages", len(list))
		}
		for _, m := range list {
			if m.Status != gatehouse.NotificationAccepted || m.Attempts != 2 || m.LastError != "" {
				t.Errorf("%s: %s after %d attempts, %q", m.RecipientName, m.Status, m.Attempts, m.LastError)
			}
		}
	})
}

// TestRun: running notifiers deliver without a call of the test, and two replicas send nothing twice.
func TestRun(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{}, 2)
		for _, owner := range []string{"one", "two"} {
			n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}, Owner: owner, DigestAfter: 1000})
			go func() { n.Run(ctx); done <- struct{}{} }()
		}
		const proposals = 40
		for range proposals {
			w.Propose("walnuts", "price_change", 12)
			w.Number()
			w.hub.Notify("log:default")
		}
		mails := w.smtp.Await(t, 2*proposals)
		stop()
		<-done
		<-done
		seen := map[string]bool{}
		for _, m := range append(mails, w.smtp.Mails()[len(mails):]...) {
			key := m.To + m.Header.Get("Message-Id")
			if seen[key] {
				t.Errorf("twice: %s", key)
			}
			seen[key] = true
		}
		if len(seen) != 2*proposals {
			t.Errorf("%d mails, want %d", len(seen), 2*proposals)
		}
	})
}
