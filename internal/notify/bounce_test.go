package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/email"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
)

// bounceWorld has sent a question to ana and bo.
type bounceWorld struct {
	*world
	bounces *email.Bounces
	failed  int
}

func newBounceWorld(t *testing.T, w *world) *bounceWorld {
	t.Helper()
	c := w.mail()
	b := &bounceWorld{world: w}
	b.bounces = &email.Bounces{
		Store: w.Store, Log: slog.New(slog.DiscardHandler), Failed: func(string) { b.failed++ },
		Channels: []email.NamedChannel{{Name: "mail", Tenants: c.Tenants, Channel: c.Channel.(*email.Channel)}},
	}
	n := w.notifier(notify.Config{Channels: []*notify.Configured{c}})
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "mail")
	return b
}

// sender is the envelope sender of the mail to an address.
func (b *bounceWorld) sender(to string) string {
	b.t.Helper()
	for _, m := range b.smtp.Mails() {
		if m.To == to {
			return m.From
		}
	}
	b.t.Fatalf("no mail to %s", to)
	return ""
}

// sent is the notification to a person.
func (b *bounceWorld) sent(name string) *gatehouse.Notification {
	b.t.Helper()
	for _, n := range b.list(gatehouse.NotificationFilter{}) {
		if n.RecipientName == name {
			return n
		}
	}
	b.t.Fatalf("no notification to %s", name)
	return nil
}

func (b *bounceWorld) receive(to, mail string) (gatehouse.BounceResult, error) {
	out, err := b.bounces.ReceiveBounce(context.Background(), to, []byte(mail))
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// wants receives a mail, and fails unless it has the result.
func (b *bounceWorld) wants(to, mail string, want gatehouse.BounceResult) {
	b.t.Helper()
	if got, err := b.receive(to, mail); got != want || err != nil {
		b.t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestBounce: each mail has an envelope sender of its own. A report to it fails this message and
// no other, once, and the message can be sent again.
func TestBounce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		b := newBounceWorld(t, w)
		toAna, toBo := b.sender("ana@shop.example"), b.sender("bo@shop.example")
		if toAna == toBo || !strings.HasPrefix(toAna, "bounce+") || !strings.HasSuffix(toAna, "@gate.example") {
			t.Fatalf("envelope senders %q and %q", toAna, toBo)
		}
		delayed := mailtest.Report(toAna, "delayed", "4.4.1", "connection timed out")
		b.wants("", delayed, gatehouse.BounceDelayed)
		if n := b.sent("ana"); n.Status != gatehouse.NotificationAccepted ||
			n.LastError != "delayed: 4.4.1 connection timed out" {
			t.Errorf("delayed: %s, %q", n.Status, n.LastError)
		}
		hostile := "no such user\x1b[2J \u202e" + strings.Repeat("x", 5000)
		failed := mailtest.Report(strings.ToUpper(toAna), "failed", "5.1.1", hostile)
		b.wants("", failed, gatehouse.BounceFailed)
		n := b.sent("ana")
		if n.Status != gatehouse.NotificationFailed || !strings.HasPrefix(n.LastError, "bounced: 5.1.1 no such user") ||
			len([]rune(n.LastError)) > 301 || strings.ContainsAny(n.LastError, "\x1b\u202e") || n.FinishedAt == nil {
			t.Errorf("failed: %s, %q", n.Status, n.LastError)
		}
		// A repeated report and a late one change nothing, and bo's message is as before.
		b.wants("", failed, gatehouse.BounceIgnored)
		b.wants(toAna, delayed, gatehouse.BounceIgnored)
		if again := b.sent("ana"); again.LastError != n.LastError || b.failed != 1 {
			t.Errorf("again: %q, counted %d times", again.LastError, b.failed)
		}
		if n := b.sent("bo"); n.Status != gatehouse.NotificationAccepted || n.LastError != "" {
			t.Errorf("bo: %s, %q", n.Status, n.LastError)
		}
		// A bounce mutes nobody: the message is sent again, and the next one is, too.
		if _, err := w.Gate.RetryNotification(w.As("olga"), n.ID); err != nil {
			t.Fatal(err)
		}
		mails := len(b.smtp.Mails())
		again := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
		w.deliver(again, "mail")
		w.Propose("pecans", "price_change", 12)
		w.send(again, "mail")
		if got := len(b.smtp.Mails()) - mails; got != 3 {
			t.Errorf("%d mails after the bounce, want 3", got)
		}
	})
}

// TestBounceRefused: a mail to an address without a valid MAC is refused, and one that is not a report
// of a failure or a delay changes nothing.
func TestBounceRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		b := newBounceWorld(t, w)
		toAna, toBo := b.sender("ana@shop.example"), b.sender("bo@shop.example")
		local, _, _ := strings.Cut(toAna, "@")
		_, proof, _ := strings.Cut(toBo, ".")
		id, own, _ := strings.Cut(toAna, ".")
		forged := "a" + own[1:]
		if own[0] == 'a' {
			forged = "b" + own[1:]
		}
		report := func(to string) string { return mailtest.Report(to, "failed", "5.1.1", "no such user") }
		for name, to := range map[string]string{
			"no address":           "",
			"the plain address":    "bounce@gate.example",
			"a forged MAC":         id + "." + forged,
			"the MAC of another":   id + "." + proof,
			"another's recipient":  id + "." + proof[:8] + own[8:],
			"no MAC":               id + "@gate.example",
			"another domain":       local + "@other.example",
			"a cut address":        local[:len(local)-4] + "@gate.example",
			"hidden in the name":   fmt.Sprintf("%q <x@gate.example>", toAna),
			"a very long address":  strings.Repeat("a", 10_000) + toAna,
			"of a stranger's gate": strings.Replace(toAna, "gate.example", "gate.example.org", 1),
		} {
			if _, err := b.receive("", report(to)); gatehouse.CodeOf(err) != gatehouse.CodeBadToken {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, mail := range map[string]string{"empty": "", "no mail": "\x00\xff", "no header": "\r\n\r\nhello"} {
			if _, err := b.receive("", mail); gatehouse.CodeOf(err) != gatehouse.CodeBadToken {
				t.Errorf("%s: %v", name, err)
			}
			b.wants(toAna, mail, gatehouse.BounceIgnored)
		}
		whole := report(toAna)
		b.wants("", whole[:strings.Index(whole, "Status:")], gatehouse.BounceIgnored)
		b.wants("", "To: "+toAna+"\r\nSubject: Out of office\r\n\r\nStatus: 5.1.1\r\n", gatehouse.BounceIgnored)
		b.wants("", mailtest.Report(toAna, "delivered", "2.0.0", "ok"), gatehouse.BounceIgnored)
		for _, name := range []string{"ana", "bo"} {
			if n := b.sent(name); n.Status != gatehouse.NotificationAccepted || n.LastError != "" {
				t.Errorf("%s: %s, %q", name, n.Status, n.LastError)
			}
		}
		if b.failed != 0 {
			t.Errorf("%d counted", b.failed)
		}
	})
}

// TestBounceOfAnotherState: a report changes nothing if the recipient has another address by now, or if
// the message is not in the state accepted.
func TestBounceOfAnotherState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := newBounceWorld(t, w)
	toAna := b.sender("ana@shop.example")
	report := mailtest.Report(toAna, "failed", "5.1.1", "no such user")
	moved, err := email.New(email.Config{
		SMTP: w.smtp.Addr, CA: w.smtp.CA, From: "gatehouse@gate.example", Domain: "new.example",
		Bounces: "bounce@gate.example", BounceKeys: [][]byte{[]byte(strings.Repeat("k", 32))},
	})
	must(t, err)
	present := b.bounces.Channels[0].Channel
	b.bounces.Channels[0].Channel = moved
	b.wants("", report, gatehouse.BounceIgnored)
	b.bounces.Channels[0].Channel = present

	id := b.sent("ana").ID
	set := func(status gatehouse.NotificationStatus) {
		t.Helper()
		err := w.Store.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
			n, err := tx.FindNotification(id)
			if err != nil {
				return err
			}
			from := n.Status
			n.Status = status
			return tx.UpdateNotification(n, from, n.Generation)
		})
		must(t, err)
	}
	set(gatehouse.NotificationDelivered)
	b.wants("", report, gatehouse.BounceIgnored)
	set(gatehouse.NotificationAccepted)
	b.wants("", report, gatehouse.BounceFailed)
}

// TestBounceWhileSending: a report that arrives before the answer of the mail server is recorded gets
// the error busy, and changes nothing.
func TestBounceWhileSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.smtp.Recipients(func(to string) error {
		if to != "ana@shop.example" {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
		}
		return nil
	})
	c := w.mail()
	b := &bounceWorld{world: w, bounces: &email.Bounces{
		Store: w.Store, Log: slog.New(slog.DiscardHandler),
		Channels: []email.NamedChannel{{Name: "mail", Tenants: c.Tenants, Channel: c.Channel.(*email.Channel)}},
	}}
	n := w.notifier(notify.Config{Channels: []*notify.Configured{c}})
	codes := make(chan gatehouse.Code, 10)
	w.smtp.AfterData(func() error {
		mails := w.smtp.Mails() // only ana's is accepted
		if len(mails) != 1 {
			codes <- gatehouse.Code(fmt.Sprintf("%d mails", len(mails)))
			return nil
		}
		_, err := b.receive("", mailtest.Report(mails[0].From, "failed", "5.1.1", "no such user"))
		codes <- gatehouse.CodeOf(err)
		return nil
	})
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "mail")
	if got := <-codes; got != gatehouse.CodeBusy || len(codes) != 0 {
		t.Errorf("%q, and %d more", got, len(codes))
	}
	if n := b.sent("ana"); n.Status != gatehouse.NotificationAccepted {
		t.Errorf("ana: %s", n.Status)
	}
}
