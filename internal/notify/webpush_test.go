package notify_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webpush"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webpushtest"
)

// phones is a channel of kind webpush with its push service.
type phones struct {
	w       *world
	service *webpushtest.Service
	key     *ecdsa.PrivateKey
	channel *notify.Configured
}

func (w *world) phones(change ...func(*webpush.Config)) *phones {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(w.t, err)
	p := &phones{w: w, service: webpushtest.Start(w.t), key: key}
	c := webpush.Config{
		Contact: "mailto:ops@gate.example", CA: p.service.CA(), AllowPrivate: true,
		Key: func(context.Context, string) (*ecdsa.PrivateKey, error) { return p.key, nil },
	}
	for _, f := range change {
		f(&c)
	}
	ch, err := webpush.New(c)
	must(w.t, err)
	p.channel = &notify.Configured{Name: "phones", Tenants: []string{"default"}, Channel: ch}
	return p
}

// of subscribes a browser of a person.
func (p *phones) of(name, device string) *webpushtest.Browser {
	p.w.t.Helper()
	public, err := p.key.PublicKey.Bytes()
	must(p.w.t, err)
	b := p.service.Subscribe(p.w.t, public)
	person, err := p.w.Gate.FindPrincipal(p.w.Admin(), name)
	must(p.w.t, err)
	err = p.w.Store.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
		return tx.PutDevice(&gatehouse.Device{
			ID: device, Tenant: "default", PrincipalID: person.ID, Label: "Firefox on Android", CreatedAt: tx.Now(),
			Subscription: gatehouse.Subscription{Endpoint: b.Endpoint, P256DH: b.P256DH, Auth: b.Auth},
		})
	})
	must(p.w.t, err)
	return b
}

// devices are a person's devices, newest first.
func (p *phones) devices(name string) (list []*gatehouse.Device) {
	p.w.t.Helper()
	person, err := p.w.Gate.FindPrincipal(p.w.Admin(), name)
	must(p.w.t, err)
	err = p.w.Store.View(context.Background(), "default", func(tx gatehouse.ReadTx) (err error) {
		list, err = tx.ListDevices(person.ID)
		return err
	})
	must(p.w.t, err)
	return list
}

// TestWebPush: a question reaches every device of each person who may answer, and nobody else; the
// browser can decrypt it, and the push service accepts the sender.
func TestWebPush(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		p := w.phones()
		n := w.notifier(notify.Config{Channels: []*notify.Configured{p.channel}})
		phone, laptop := p.of("ana", "dev_1"), p.of("ana", "dev_2")
		olga := p.of("olga", "dev_3") // an operator answers nothing
		a := w.Propose("walnuts", "price_change", 12)
		w.send(n, "phones")
		for _, b := range []*webpushtest.Browser{phone, laptop} {
			got := b.Got()
			if len(got) != 1 {
				t.Fatalf("%d messages, refused: %q", len(got), b.Refused())
			}
			m := got[0]
			if m.Title != "An approval waits for you" || !strings.Contains(m.Body, "walnuts") ||
				!strings.Contains(m.Body, "\nRisk: L3") || m.Navigate != "https://gate.example/actions/"+a.ID ||
				m.Urgency != "high" || m.Topic == "" || m.Tag != m.Topic {
				t.Errorf("the message: %+v", m)
			}
			if left := a.Approval.ExpiresAt.Sub(w.Clock.Now()); m.TTL != int(left/time.Second) {
				t.Errorf("a TTL of %d s, the question ends in %s", m.TTL, left)
			}
		}
		if len(olga.Got()) != 0 {
			t.Errorf("somebody who may not answer got %+v", olga.Got())
		}
		rows := w.list(gatehouse.NotificationFilter{Channel: "phones"})
		if len(rows) != 1 || rows[0].RecipientName != "ana" || rows[0].Status != gatehouse.NotificationAccepted {
			t.Errorf("rows: %+v", rows)
		}
		if d := p.devices("ana")[0]; d.LastSentAt == nil || d.LastMessage != rows[0].ID || d.LastError != "" {
			t.Errorf("the device: %+v", d)
		}

		// The outcome has the same topic as the question.
		sam := p.of("sam", "dev_4")
		w.Decide(a, "bo", gatehouse.Reject)
		w.send(n, "phones")
		if got := sam.Got(); len(got) != 1 || got[0].Topic != phone.Got()[0].Topic || got[0].Urgency != "normal" {
			t.Errorf("the sponsor got %+v", got)
		}
	})
}

// TestWebPushGone: a device that its push service no longer knows is removed, and the log records this.
func TestWebPushGone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		p := w.phones()
		n := w.notifier(notify.Config{Channels: []*notify.Configured{p.channel}})
		old, current := p.of("ana", "dev_1"), p.of("ana", "dev_2")
		only := p.of("bo", "dev_3")
		old.Answer(http.StatusGone, "")
		only.Answer(http.StatusNotFound, "")
		w.Propose("walnuts", "price_change", 12)
		w.send(n, "phones")
		if list := p.devices("ana"); len(list) != 1 || list[0].ID != "dev_2" || len(current.Got()) != 1 {
			t.Errorf("ana's devices: %+v", list)
		}
		if list := p.devices("bo"); len(list) != 0 {
			t.Errorf("bo's devices: %+v", list)
		}
		got := w.statuses()
		if got[gatehouse.NotificationAccepted] != 1 || got[gatehouse.NotificationFailed] != 1 {
			t.Errorf("statuses: %v", got)
		}
		w.Number()
		var gone []string
		err := w.Store.View(context.Background(), "default", func(tx gatehouse.ReadTx) error {
			entries, err := tx.ListEntries(0, 1000)
			for _, e := range entries {
				if body := string(e.Body); strings.Contains(body, `"type":"device.gone"`) {
					gone = append(gone, body)
				}
			}
			return err
		})
		if err != nil || len(gone) != 2 {
			t.Errorf("log: %v, %v", gone, err)
		}
		w.Propose("pears", "price_change", 12)
		w.spread(n)
		rows := w.list(gatehouse.NotificationFilter{Channel: "phones", Status: gatehouse.NotificationQueued})
		if len(rows) != 1 {
			t.Errorf("after that, %d people are told", len(rows))
		}
	})
}

// TestWebPushRetries: a push service that is down or asks to wait gets the message later, a device
// that has it does not get it again, and a person's device never makes the channel fail.
func TestWebPushRetries(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		p := w.phones()
		n := w.notifier(notify.Config{Channels: []*notify.Configured{p.channel}})
		slow, works := p.of("ana", "dev_1"), p.of("ana", "dev_2")
		broken := p.of("bo", "dev_3")
		slow.Answer(http.StatusTooManyRequests, "3600")
		broken.Answer(http.StatusServiceUnavailable, "")
		w.Propose("walnuts", "price_change", 12)
		w.send(n, "phones")
		rows := w.list(gatehouse.NotificationFilter{Channel: "phones"})
		for _, m := range rows {
			wait := m.DueAt.Sub(w.Clock.Now())
			patient := m.RecipientName == "ana"
			if m.Status != gatehouse.NotificationQueued || patient != (wait >= time.Hour) {
				t.Errorf("%s: %s, again in %s", m.RecipientName, m.Status, wait)
			}
		}
		if i := slices.IndexFunc(p.devices("ana"), func(d *gatehouse.Device) bool { return d.ID == "dev_1" }); i < 0 ||
			p.devices("ana")[i].LastError != "the push service answered 429" {
			t.Errorf("ana's devices: %+v", p.devices("ana"))
		}
		slow.Answer(http.StatusCreated, "")
		w.Clock.Advance(time.Hour + time.Minute)
		w.deliver(n, "phones")
		if len(slow.Got()) != 1 || len(works.Got()) != 1 {
			t.Errorf("%d and %d messages", len(slow.Got()), len(works.Got()))
		}
		for range 5 {
			w.Clock.Advance(3 * time.Hour)
			w.deliver(n, "phones")
		}
		states, err := w.channels()
		if err != nil || len(states) != 1 || states[0].FailingSince != nil {
			t.Errorf("states: %+v, %v", states, err)
		}
	})
}

// TestWebPushRefused: a message that the push service refuses permanently is not sent again.
func TestWebPushRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.phones()
	n := w.notifier(notify.Config{Channels: []*notify.Configured{p.channel}})
	b := p.of("ana", "dev_1")
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	p.key = other // the subscription is for another key
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "phones")
	rows := w.list(gatehouse.NotificationFilter{Channel: "phones"})
	if len(b.Got()) != 0 || len(rows) != 1 || rows[0].Status != gatehouse.NotificationFailed ||
		rows[0].LastError != "the push service answered 403" || len(p.devices("ana")) != 1 {
		t.Errorf("%+v, refused: %q", rows, b.Refused())
	}
}

// TestWebPushHostile: the longest and strangest texts fit into one record, without invisible characters.
func TestWebPushHostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.phones()
	n := w.notifier(notify.Config{
		Channels: []*notify.Configured{p.channel}, DigestAfter: 100,
		PublicURL: "https://gate.example/" + strings.Repeat("long/", 40),
	})
	b := p.of("ana", "dev_1")
	texts := append(slices.Clone(hostileTexts), strings.Repeat("<", 900), strings.Repeat("\U0001F6A8", 200))
	for _, text := range texts {
		w.hostile(text)
	}
	w.send(n, "phones")
	got := b.Got()
	if len(got) != len(texts) || len(b.Refused()) != 0 {
		t.Fatalf("%d of %d messages, refused: %q", len(got), len(texts), b.Refused())
	}
	for _, m := range got {
		if strings.ContainsAny(m.Title+m.Body, "\u202E\u200B\x1b\r") {
			t.Errorf("invisible characters: %q", m.Body)
		}
	}
}

// TestWebPushStaysOutside: without allow_private, no request goes to an address inside the network,
// whatever the name resolves to; the error does not reveal the address.
func TestWebPushStaysOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.phones(func(c *webpush.Config) { c.AllowPrivate = false })
	n := w.notifier(notify.Config{Channels: []*notify.Configured{p.channel}})
	b := p.of("ana", "dev_1") // at 127.0.0.1
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "phones")
	rows := w.list(gatehouse.NotificationFilter{Channel: "phones"})
	if len(b.Got()) != 0 || len(b.Refused()) != 0 || len(rows) != 1 ||
		rows[0].LastError != "the push service "+strings.TrimPrefix(p.service.URL, "https://")+" cannot be reached" {
		t.Errorf("%+v", rows)
	}
}
