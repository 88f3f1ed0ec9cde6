package notify_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
)

const (
	slackToken   = "xoxb-of-the-bot"
	slackChannel = "C0123456789"
)

// fakeSlack is a fake of chat.postMessage, chat.update and conversations.history. It
// refuses what Slack documents that it refuses: other tokens, unknown blocks and those
// beyond their limits, a sum of texts over 11,000 characters, messages of others, and
// more than one message a second and channel.
type fakeSlack struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	messages []*slackMessage
	updates  int
	last     time.Time
	// lose drops the next answer, once the message is posted.
	lose bool
	// fail is the error that every call is answered with, "" for none.
	fail string
}

type slackMessage struct {
	Channel  string           `json:"channel"`
	TS       string           `json:"ts"`
	Text     string           `json:"text"`
	Thread   string           `json:"thread_ts"`
	Blocks   []map[string]any `json:"blocks"`
	Metadata json.RawMessage  `json:"metadata,omitempty"`
	Unfurl   *bool            `json:"unfurl_links"`
}

func newSlack(t *testing.T) *fakeSlack {
	f := &fakeSlack{t: t}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeSlack) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	say := func(v map[string]any) { _ = json.NewEncoder(rw).Encode(v) }
	refuse := func(code string) { say(map[string]any{"ok": false, "error": code}) }
	if r.Header.Get("Authorization") != "Bearer "+slackToken {
		refuse("invalid_auth")
		return
	}
	if f.fail != "" {
		refuse(f.fail)
		return
	}
	if r.URL.Path == "/api/conversations.history" {
		say(map[string]any{"ok": true, "messages": f.messages})
		return
	}
	m := new(slackMessage)
	if err := json.NewDecoder(r.Body).Decode(m); err != nil {
		refuse("invalid_json")
		return
	}
	if code := checkBlocks(m.Blocks); code != "" {
		f.t.Errorf("%s: %s", r.URL.Path, code)
		refuse(code)
		return
	}
	if m.Channel != slackChannel {
		refuse("channel_not_found")
		return
	}
	switch r.URL.Path {
	case "/api/chat.postMessage":
		if now := time.Now(); now.Sub(f.last) < time.Second {
			rw.Header().Set("Retry-After", "1")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		f.last = time.Now()
		if m.Unfurl == nil || *m.Unfurl {
			f.t.Error("links are unfurled")
		}
		m.TS = fmt.Sprintf("1700000000.%06d", len(f.messages)+1)
		f.messages = append(f.messages, m)
		if f.lose {
			f.lose = false
			panic(http.ErrAbortHandler)
		}
	case "/api/chat.update":
		if utf8.RuneCountInString(m.Text) > 4000 {
			refuse("msg_too_long")
			return
		}
		old := f.at(m.TS)
		if old == nil {
			refuse("message_not_found")
			return
		}
		f.updates++
		old.Text, old.Blocks = m.Text, m.Blocks
	default:
		refuse("unknown_method")
		return
	}
	say(map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS})
}

func (f *fakeSlack) at(ts string) *slackMessage {
	for _, m := range f.messages {
		if m.TS == ts {
			return m
		}
	}
	return nil
}

func (f *fakeSlack) posted() (list []slackMessage, updates int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages {
		list = append(list, *m)
	}
	return list, f.updates
}

func (f *fakeSlack) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// checkBlocks returns the error of the first limit that blocks pass, "" for none.
func checkBlocks(blocks []map[string]any) string {
	sum := 0
	text := func(v any, limit int) bool {
		o, _ := v.(map[string]any)
		s, _ := o["text"].(string)
		n := utf8.RuneCountInString(s)
		sum += n
		kind := o["type"]
		return n >= 1 && n <= limit && (kind == "plain_text" || kind == "mrkdwn" || kind == "text")
	}
	if len(blocks) == 0 || len(blocks) > 50 {
		return "invalid_blocks: their number"
	}
	for _, b := range blocks {
		switch b["type"] {
		case "header":
			if o, _ := b["text"].(map[string]any); o["type"] != "plain_text" || !text(b["text"], 150) {
				return "invalid_blocks: header"
			}
		case "section":
			fields, _ := b["fields"].([]any)
			if b["text"] == nil && len(fields) == 0 || len(fields) > 10 || b["text"] != nil && !text(b["text"], 3000) {
				return "invalid_blocks: section"
			}
			for _, f := range fields {
				if !text(f, 2000) {
					return "invalid_blocks: field"
				}
			}
		case "rich_text":
			for _, e := range b["elements"].([]any) {
				for _, part := range e.(map[string]any)["elements"].([]any) {
					if !text(part, 3000) {
						return "invalid_blocks: rich_text"
					}
				}
			}
		default:
			return fmt.Sprint("invalid_blocks: ", b["type"])
		}
	}
	if sum > 11_000 {
		return "msg_blocks_too_long"
	}
	return ""
}

func (w *world) slack(f *fakeSlack) *notify.Configured {
	w.t.Helper()
	c, err := slack.New(
		slack.Config{Token: slackToken, Channel: slackChannel, BaseURL: f.URL + "/api", AllowPrivate: true},
	)
	if err != nil {
		w.t.Fatal(err)
	}
	return &notify.Configured{Name: "slack", Tenants: []string{"default"}, Channel: c}
}

// all is everything of a message.
func (m *slackMessage) all() string { return string(gatehouse.MustJSON(m.Blocks)) }

// TestSlack posts a card that asks, and updates it once it is decided: the card never
// says that something waits which does not.
func TestSlack(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := newSlack(t)
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slack(f)}})
		a := w.Propose("walnuts", "price_change", 12)
		w.spread(n)
		w.deliver(n, "slack")
		list, _ := f.posted()
		if len(list) != 1 {
			t.Fatalf("%d messages", len(list))
		}
		for _, want := range []string{
			"An approval waits", "L3, medium write", "Why people are asked", "/amount: 0 → 12", "Time left",
			`<https://gate.example/actions/` + a.ID + `|Open in Gatehouse>`,
		} {
			if !strings.Contains(list[0].all(), want) {
				t.Errorf("the card lacks %q: %s", want, list[0].all())
			}
		}
		if got := string(list[0].Metadata); strings.Contains(got, "walnuts") || !strings.Contains(got, "ntf_") {
			t.Errorf("metadata: %s", got)
		}
		w.Decide(a, "ana", gatehouse.Reject)
		w.spread(n)
		w.deliver(n, "slack")
		list, updates := f.posted()
		if len(list) != 1 || updates != 1 {
			t.Fatalf("%d messages, %d updates", len(list), updates)
		}
		if got := list[0].all(); !strings.Contains(got, "Rejected by ana") || strings.Contains(got, "Time left") {
			t.Errorf("the card: %s", got)
		}
		if got := w.statuses(); got[gatehouse.NotificationDelivered] != 2 {
			t.Errorf("statuses: %v", got)
		}
	})
}

// TestSlackLostAnswer: a post whose answer was lost is found again by its metadata,
// and not posted twice.
func TestSlackLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newSlack(t)
	f.set(func() { f.lose = true })
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slack(f)}})
	a := w.Propose("walnuts", "price_change", 12)
	w.spread(n)
	w.deliver(n, "slack")
	if got := w.statuses(); got[gatehouse.NotificationQueued] != 1 {
		t.Fatalf("statuses: %v", got)
	}
	w.Clock.Advance(time.Minute)
	w.deliver(n, "slack")
	w.Decide(a, "ana", gatehouse.Approve)
	w.spread(n)
	w.deliver(n, "slack")
	list, updates := f.posted()
	if len(list) != 1 || updates != 1 || !strings.Contains(list[0].all(), "Approved by ana") {
		t.Errorf("%d messages, %d updates", len(list), updates)
	}
}

// TestSlackDecidedMeanwhile: what became of a question waits for the card that asks,
// and a card that somebody deleted is posted anew.
func TestSlackDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newSlack(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slack(f)}})
	gone := w.Propose("walnuts", "price_change", 12)
	w.spread(n)
	w.deliver(n, "slack")
	f.set(func() { f.messages = nil })
	w.Decide(gone, "ana", gatehouse.Reject)
	w.spread(n)
	w.deliver(n, "slack")
	if list, _ := f.posted(); len(list) != 1 || !strings.Contains(list[0].all(), "Rejected by ana") {
		t.Errorf("after the card was deleted: %d messages", len(list))
	}
	f.set(func() { f.fail = "not_in_channel" })
	w.Propose("pecans", "price_change", 12)
	for range 3 {
		w.spread(n)
		w.deliver(n, "slack")
		w.Clock.Advance(time.Hour)
	}
	if got := w.logged("channel.failing"); got != 1 {
		t.Errorf("%d entries channel.failing", got)
	}
}

// TestHostileSlack: what agents write stands in plain text, never in what Slack marks
// up, and mentions nobody.
func TestHostileSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newSlack(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slack(f)}})
	for _, text := range append(hostileTexts, strings.Repeat("&<x>", 250)) {
		w.hostile(text)
	}
	w.spread(n)
	for range 4 {
		w.deliver(n, "slack")
		w.Clock.Advance(time.Hour)
	}
	list, _ := f.posted()
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
		if strings.ContainsAny(m.all(), "\u202E\u200B") {
			t.Errorf("hidden characters: %s", m.all())
		}
	}
}
