package notify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
)

// slackChannel is a channel on which nobody can decide, unless more adds the secrets. Neither it nor the
// workspace limits rates, unless more sets another Pace.
func (w *world) slackChannel(f *slacktest.Workspace, more ...func(*slack.Config)) *notify.Configured {
	w.t.Helper()
	config := slack.Config{
		Token: slacktest.Token, Channel: slacktest.Channel, BaseURL: f.API(), AllowPrivate: true,
		Pace: time.Microsecond,
	}
	for _, m := range more {
		m(&config)
	}
	if config.Pace == time.Microsecond {
		f.DisableRateLimits()
	}
	c, err := slack.New(config)
	must(w.t, err)
	return &notify.Configured{Name: "slack", Tenants: []string{"default"}, Channel: c}
}

// markup lists all texts of a card that Slack interprets.
func markup(blocks []map[string]any) (texts []string) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if v["type"] == "mrkdwn" {
				texts = append(texts, fmt.Sprint(v["text"]))
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, b := range blocks {
		walk(b)
	}
	return texts
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

// TestSlackPace: two messages at once stay below Slack's rate limit.
func TestSlackPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	c := w.slackChannel(f, func(c *slack.Config) { c.Pace = 0 })
	n := w.notifier(notify.Config{Channels: []*notify.Configured{c}})
	w.Propose("walnuts", "price_change", 12)
	w.Propose("pecans", "price_change", 12)
	w.send(n, "slack")
	if got := w.statuses(); got[gatehouse.NotificationDelivered] != 2 || f.Calls("chat.postMessage") != 2 {
		t.Errorf("%d posts, statuses: %v", f.Calls("chat.postMessage"), got)
	}
}

// TestSlackLostAnswer: a post whose answer was lost is found again by its metadata, and not posted
// twice.
func TestSlackLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	f.DropAnswers("chat.postMessage", 1)
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

// TestSlackLostReply: a reply in the card's thread is also found again if Slack's answer to the post was
// lost, and is not posted twice.
func TestSlackLostReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := slacktest.New(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
	w.Answer("walnuts", connector.Terminal)
	a := w.Propose("walnuts", "price_change", 12)
	w.send(n, "slack")
	w.Decide(a, "ana", gatehouse.Approve)
	w.Clock.Advance(20 * time.Second)
	w.Drain(gatehouse.DefaultTenant)
	f.DropAnswers("chat.postMessage", 1)
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

// TestSlackCardDeleted: an outcome whose card was deleted is posted as a new card. A channel that
// cannot post is reported as failing, once.
func TestSlackCardDeleted(t *testing.T) {
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
		links := 0
		for _, s := range markup(m.Blocks) {
			if strings.HasPrefix(s, "<https://gate.example/actions/act_") {
				links++
			} else {
				t.Errorf("marked up: %s", s)
			}
		}
		if links != 1 {
			t.Errorf("%d links: %s", links, m.All())
		}
		if strings.ContainsAny(m.All(), "\u202E\u200B") {
			t.Errorf("hidden characters: %s", m.All())
		}
	}
}
