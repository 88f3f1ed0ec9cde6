package notify_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// prefer stores what a person wants on a channel.
func (w *world) prefer(name, channel string, quiet *gatehouse.QuietHours, muted ...gatehouse.MessageTopic) {
	w.t.Helper()
	err := w.Store.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
		now := tx.Now()
		return tx.PutPreference(&gatehouse.Preference{
			Tenant: "default", PrincipalID: w.person(name).ID, Channel: channel, Muted: muted, Quiet: quiet,
			ChangedAt: &now,
		})
	})
	must(w.t, err)
}

func (w *world) person(name string) (p *gatehouse.Principal) {
	w.t.Helper()
	p, err := w.Gate.FindPrincipal(w.Admin(), name)
	must(w.t, err)
	return p
}

// TestPreferences: what a person has muted gets the status muted. Questions are still sent, unless
// another working channel brings them.
func TestPreferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.mail()
	second.Name = "post"
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail(), second}})
	w.prefer("ana", "mail", nil, gatehouse.TopicQuestions, gatehouse.TopicReminders)
	w.prefer("bo", "mail", nil, gatehouse.TopicQuestions)
	w.prefer("bo", "post", nil, gatehouse.TopicQuestions)
	w.prefer("sam", "post", nil, gatehouse.TopicOutcomes)
	a := w.Propose("walnuts", "price_change", 12)
	w.spread(n)
	w.Decide(a, "bo", gatehouse.Reject)
	w.spread(n)
	muted := make(map[string]bool)
	for _, m := range w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationMuted}) {
		muted[m.RecipientName+" "+m.Channel+" "+string(m.Kind)] = true
		if !strings.HasPrefix(m.LastError, "the recipient has muted ") {
			t.Errorf("%s: %s", m.ID, m.LastError)
		}
	}
	if len(muted) != 2 || !muted["ana mail asked"] || !muted["sam post decided"] {
		t.Errorf("muted: %v", muted)
	}
}

// TestOwnQuietHours: a person's quiet hours apply in addition to the channel's. The clock starts at
// 12:00 UTC.
func TestOwnQuietHours(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mail := w.mail()
	var err error
	if mail.Quiet, err = (gatehouse.QuietHours{From: "11:00", To: "12:10"}).Read(); err != nil {
		t.Fatal(err)
	}
	n := w.notifier(notify.Config{Channels: []*notify.Configured{mail}})
	w.prefer("ana", "mail", &gatehouse.QuietHours{From: "12:00", To: "12:20"})
	w.Propose("walnuts", "price_change", 12)
	w.spread(n)
	list := w.list(gatehouse.NotificationFilter{})
	if len(list) != 2 {
		t.Errorf("%d messages", len(list))
	}
	for _, m := range list {
		want := 10 * time.Minute
		if m.RecipientName == "ana" {
			want = 20 * time.Minute
		}
		if got := m.DueAt.Sub(m.CreatedAt); got != want {
			t.Errorf("%s waits for %s, want %s", m.RecipientName, got, want)
		}
	}
}

// TestUnsubscribe: a digest has the headers of RFC 8058, and a question has none. The link ends
// digests on the channel and nothing else; a changed link ends nothing.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	master, err := ring.Parse(ring.NewMasterKey())
	must(t, err)
	signer := gate.New(w.Store, nil, w.hub, gate.Config{Master: master, LinkTTL: 7 * 24 * time.Hour},
		slog.New(slog.DiscardHandler))
	n := w.notifier(notify.Config{
		Channels: []*notify.Configured{w.mail()}, Reviews: signer, DigestAfter: 1, DigestEvery: time.Minute,
	})
	round := func(item string) (digests, others int) {
		t.Helper()
		seen := len(w.smtp.Mails())
		w.Propose(item+" one", "price_change", 12)
		w.Propose(item+" two", "price_change", 13)
		w.spread(n)
		w.Clock.Advance(2 * time.Minute)
		w.deliver(n, "mail")
		for _, m := range w.smtp.Mails()[seen:] {
			if m.To != "ana@shop.example" {
				continue
			}
			header := m.Header.Get("List-Unsubscribe")
			if strings.Contains(m.Subject(), "more messages") {
				digests++
				if !strings.HasPrefix(header, "<https://gate.example/unsubscribe?t=") ||
					m.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" {
					t.Errorf("a digest has the headers %v", m.Header)
				}
				continue
			}
			others++
			if header != "" {
				t.Errorf("a question can be unsubscribed: %s", header)
			}
		}
		return digests, others
	}
	if d, o := round("walnuts"); d != 1 || o != 1 {
		t.Fatalf("%d digests and %d questions before", d, o)
	}
	ctx := context.Background()
	token, err := signer.UnsubscribeToken(ctx, w.person("ana"), "mail")
	must(t, err)
	parts := strings.Split(token, ".")
	bo := w.person("bo").ID
	flipped := "A" // a character of the MAC
	if token[120] == 'A' {
		flipped = "B"
	}
	for _, bad := range []string{
		"", "x", parts[0], parts[0] + "." + bo + ".mail", parts[0] + "." + parts[1] + ".post",
		"B" + token[1:], token[:60] + "B" + token[61:], token[:120] + flipped + token[121:],
	} {
		if _, err := signer.Unsubscribe(ctx, bad); gatehouse.CodeOf(err) != gatehouse.CodeBadToken {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if u, err := signer.FindUnsubscription(ctx, token); err != nil || u.Off || u.Person != "ana" {
		t.Fatalf("before: %+v, %v", u, err)
	}
	for range 2 {
		if u, err := signer.Unsubscribe(ctx, token); err != nil || !u.Off {
			t.Fatalf("unsubscribed: %+v, %v", u, err)
		}
	}
	if d, o := round("pecans"); d != 0 || o != 1 {
		t.Errorf("%d digests and %d questions after", d, o)
	}
	if !slices.ContainsFunc(w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationMuted}),
		func(m *gatehouse.Notification) bool { return m.Kind == gatehouse.NotifyDigest }) {
		t.Error("the digest is not listed as muted")
	}
	w.Clock.Advance(gatehouse.MaxLinkTTL)
	if _, err := signer.Unsubscribe(ctx, token); gatehouse.CodeOf(err) != gatehouse.CodeLinkExpired {
		t.Errorf("an old link: %v", err)
	}
}
