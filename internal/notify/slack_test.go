package notify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
)

// slackChannel is a channel on which nobody can decide, unless more adds the secrets.
func (w *world) slackChannel(f *slacktest.Workspace, more ...func(*slack.Config)) *notify.Configured {
	w.t.Helper()
	config := slack.Config{
		Token: slacktest.Token, Channel: slacktest.Channel, BaseURL: f.API(), AllowPrivate: true,
	}
	for _, m := range more {
		m(&config)
	}
	c, err := slack.New(config)
	must(w.t, err)
	return &notify.Configured{Name: "slack", Tenants: []string{"default"}, Channel: c}
}

// updates counts the updates of a workspace's messages.
func updates(list []slacktest.Message) (n int) {
	for _, m := range list {
		n += m.Updates
	}
	return n
}

// TestSlack posts a card with a question, and updates it after the decision: a decided action is
// never shown as waiting.
func TestSlack(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := slacktest.New(t)
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
		a := w.Propose("walnuts", "price_change", 12)
		w.send(n, "slack")
		list := f.Messages()
		if len(list) != 1 {
			t.Fatalf("%d messages", len(list))
		}
		for _, want := range []string{
			"An approval waits", "L3, medium write", "Why people are asked", "/amount: 0 → 12", "Time left",
			`<https://gate.example/actions/` + a.ID + `|Open in Gatehouse>`,
		} {
			if !strings.Contains(list[0].All(), want) {
				t.Errorf("the card lacks %q: %s", want, list[0].All())
			}
		}
		if got := string(list[0].Metadata); strings.Contains(got, "walnuts") || !strings.Contains(got, "ntf_") {
			t.Errorf("metadata: %s", got)
		}
		w.Decide(a, "ana", gatehouse.Reject)
		w.send(n, "slack")
		list = f.Messages()
		if len(list) != 1 || updates(list) != 1 {
			t.Fatalf("%d messages, %d updates", len(list), updates(list))
		}
		if got := list[0].All(); !strings.Contains(got, "Rejected by ana") || strings.Contains(got, "Time left") {
			t.Errorf("the card: %s", got)
		}
		if got := w.statuses(); got[gatehouse.NotificationDelivered] != 2 {
			t.Errorf("statuses: %v", got)
		}
	})
}

// TestSlackLostAnswer: a post whose answer was lost is found again by its metadata, and not posted
// twice.
func TestSlackLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	f.Lose("chat.postMessage", 1)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
	a := w.Propose("walnuts", "price_change", 12)
	w.send(n, "slack")
	if got := w.statuses(); got[gatehouse.NotificationQueued] != 1 {
		t.Fatalf("statuses: %v", got)
	}
	w.Clock.Advance(time.Minute)
	w.deliver(n, "slack")
	w.Decide(a, "ana", gatehouse.Approve)
	w.send(n, "slack")
	list := f.Messages()
	if len(list) != 1 || updates(list) != 1 || !strings.Contains(list[0].All(), "Approved by ana") {
		t.Errorf("%d messages, %d updates", len(list), updates(list))
	}
}

// TestSlackLostReply: a reply to a card whose answer was lost is found again, too, and not posted twice.
func TestSlackLostReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	f.Hurry()
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
	w.Answer("walnuts", connector.Terminal)
	a := w.Propose("walnuts", "price_change", 12)
	w.send(n, "slack")
	w.Decide(a, "ana", gatehouse.Approve)
	w.Clock.Advance(20 * time.Second)
	w.Drain(gatehouse.DefaultTenant)
	f.Lose("chat.postMessage", 1)
	for range 2 {
		w.send(n, "slack")
		w.Clock.Advance(time.Minute)
	}
	list := f.Messages()
	if len(list) != 2 || list[1].Thread != list[0].TS || f.Calls("chat.postMessage") != 2 {
		t.Errorf("%d messages after %d posts", len(list), f.Calls("chat.postMessage"))
	}
	if got := w.statuses(); got[gatehouse.NotificationDelivered] != len(w.list(gatehouse.NotificationFilter{})) {
		t.Errorf("statuses: %v", got)
	}
}

// TestSlackDecidedMeanwhile: an outcome waits for the card of its question, and a deleted card is
// posted again.
func TestSlackDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
	gone := w.Propose("walnuts", "price_change", 12)
	w.send(n, "slack")
	f.Forget()
	w.Decide(gone, "ana", gatehouse.Reject)
	w.send(n, "slack")
	if list := f.Messages(); len(list) != 1 || !strings.Contains(list[0].All(), "Rejected by ana") {
		t.Errorf("after the card was deleted: %d messages", len(list))
	}
	f.Fail("chat.postMessage", "not_in_channel")
	w.Propose("pecans", "price_change", 12)
	for range 3 {
		w.send(n, "slack")
		w.Clock.Advance(time.Hour)
	}
	if got := w.logged("channel.failing"); got != 1 {
		t.Errorf("%d entries channel.failing", got)
	}
}

// TestHostileSlack: text from agents occurs in plain text only, never where Slack interprets
// markup, and mentions nobody.
func TestHostileSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
	for _, text := range append(hostileTexts, strings.Repeat("&<x>", 250)) {
		w.hostile(text)
	}
	w.spread(n)
	for range 4 {
		w.deliver(n, "slack")
		w.Clock.Advance(time.Hour)
	}
	list := f.Messages()
	if len(list) != len(hostileTexts)+1 {
		t.Fatalf("%d messages: %v", len(list), w.statuses())
	}
	for _, m := range list {
		if strings.Contains(m.Text, "<!") || strings.Contains(m.Text, "<http") {
			t.Errorf("the text is marked up: %s", m.Text)
		}
		for _, b := range m.Blocks {
			o, _ := b["text"].(map[string]any)
			if s, _ := o["text"].(string); o["type"] == "mrkdwn" &&
				!strings.HasPrefix(s, "<https://gate.example/actions/act_") {
				t.Errorf("marked up: %s", s)
			}
		}
		if strings.ContainsAny(m.All(), "\u202E\u200B") {
			t.Errorf("hidden characters: %s", m.All())
		}
	}
}
