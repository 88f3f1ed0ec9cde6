package notify_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/teams"
)

// TestTeams posts cards to a fake workflow, which follows the documentation of Teams and answers
// 202 before anything is posted: cards are accepted, never delivered, name the time that they
// describe, and link to the console.
func TestTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var cards []string
	workflow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || len(content) > 28<<10 {
			t.Errorf("%d bytes, %v", len(content), err)
		}
		var e struct {
			Type        string
			Attachments []struct {
				ContentType string
				Content     struct {
					Type, Version string
					Body          []struct {
						Type    string
						Inlines []struct{ Type, Text string }
					}
					Actions []struct{ Type, URL string }
				}
			}
		}
		if err := json.Unmarshal(content, &e); err != nil || e.Type != "message" || len(e.Attachments) != 1 {
			t.Errorf("the envelope: %s, %v", content, err)
			return
		}
		card := e.Attachments[0].Content
		if e.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" || card.Type != "AdaptiveCard" ||
			card.Version != "1.4" {
			t.Errorf("the card: %s", content)
		}
		for _, block := range card.Body {
			// Other elements interpret markup in their texts.
			if block.Type != "RichTextBlock" || len(block.Inlines) == 0 {
				t.Errorf("a block of type %s", block.Type)
			}
		}
		for _, a := range card.Actions {
			if a.Type != "Action.OpenUrl" || !strings.HasPrefix(a.URL, "https://gate.example/") {
				t.Errorf("an action: %+v", a)
			}
		}
		mu.Lock()
		cards = append(cards, string(content))
		mu.Unlock()
		rw.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(workflow.Close)
	c, err := teams.New(teams.Config{URL: workflow.URL + "/workflows/x?sig=hidden", AllowPrivate: true})
	must(t, err)
	n := w.notifier(
		notify.Config{Channels: []*notify.Configured{{Name: "teams", Tenants: []string{"default"}, Channel: c}}},
	)
	a := w.Propose("walnuts", "price_change", 12)
	for _, text := range append(hostileTexts, strings.Repeat("[x](https://evil.example) ", 36)) {
		w.hostile(text)
	}
	w.send(n, "teams")
	w.Decide(a, "ana", gatehouse.Reject)
	w.send(n, "teams")
	if got := w.statuses(); got[gatehouse.NotificationAccepted] != len(hostileTexts)+3 || len(got) != 1 {
		t.Errorf("statuses: %v", got)
	}
	all := strings.Join(cards, "\n")
	for _, want := range []string{"State as of 2026-11-20 12:00 UTC", "An approval waits", "Rejected by ana",
		"actions/" + a.ID} {
		if !strings.Contains(all, want) {
			t.Errorf("no card has %q", want)
		}
	}
	workflow.Close()
	w.Propose("pecans", "price_change", 12)
	w.send(n, "teams")
	queued := w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationQueued})
	if len(queued) != 1 {
		t.Errorf("%d messages wait", len(queued))
	}
	for _, m := range queued {
		if m.LastError == "" || strings.Contains(m.LastError, "hidden") {
			t.Errorf("the error: %q", m.LastError)
		}
	}
}
