package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"time"
)

// patience is how long Slack waits for an acknowledgement.
const patience = 3 * time.Second

// User is a Slack user. Home is the user's own workspace or enterprise, Team by default; Enterprise
// is the enterprise of the workspace, "" for none.
type User struct{ ID, Home, Enterprise string }

// Button finds a button of a message by the first part of its text; nil for none.
func (m *Message) Button(text string) map[string]any {
	for _, b := range m.Blocks {
		elements, _ := b["elements"].([]any)
		for _, e := range elements {
			o, _ := e.(map[string]any)
			label, _ := o["text"].(map[string]any)
			if s, _ := label["text"].(string); o["type"] == "button" && len(s) >= len(text) && s[:len(text)] == text {
				return o
			}
		}
	}
	return nil
}

// Press is the payload of a click. Its trigger works once, for 3 seconds.
func (w *Workspace) Press(u User, m *Message, button map[string]any) []byte {
	return w.payload(u, map[string]any{
		"type":      "block_actions",
		"container": map[string]any{"type": "message", "channel_id": m.Channel, "message_ts": m.TS},
		"channel":   map[string]any{"id": m.Channel},
		"actions": []any{map[string]any{
			"type": "button", "action_id": button["action_id"], "value": button["value"], "action_ts": "1.1",
		}},
	})
}

// Submit is the payload of a form that was submitted with a reason.
func (w *Workspace) Submit(u User, v View, reason string) []byte {
	return w.payload(u, map[string]any{
		"type": "view_submission",
		"view": map[string]any{
			"callback_id": v["callback_id"], "private_metadata": v["private_metadata"],
			"state": map[string]any{"values": map[string]any{
				"reason": map[string]any{"reason": map[string]any{"type": "plain_text_input", "value": reason}},
			}},
		},
	})
}

func (w *Workspace) payload(u User, with map[string]any) []byte {
	home := u.Home
	if home == "" {
		home = Team
	}
	with["user"] = map[string]any{"id": u.ID, "team_id": home, "name": "<!channel>"}
	with["team"] = map[string]any{"id": Team, "domain": "shop"}
	with["enterprise"] = nil
	if u.Enterprise != "" {
		with["enterprise"] = map[string]any{"id": u.Enterprise}
	}
	w.set(func() {
		w.serial++
		id := fmt.Sprintf("%d.trigger", w.serial)
		w.triggers[id] = &trigger{made: time.Now()}
		with["trigger_id"] = id
	})
	b, err := json.Marshal(with)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// Request is a signed request with an interaction.
func (w *Workspace) Request(payload []byte) *http.Request {
	return w.Sign(url.Values{"payload": {string(payload)}}.Encode())
}

// Command is a signed request with a slash command.
func (w *Workspace) Command(u User, text string) *http.Request {
	return w.Sign(url.Values{
		"command": {"/gatehouse"}, "text": {text}, "user_id": {u.ID}, "team_id": {Team},
		"enterprise_id": {u.Enterprise}, "channel_id": {Channel},
	}.Encode())
}

// Sign makes a signed request with a body.
func (w *Workspace) Sign(body string) *http.Request {
	var now time.Time
	w.set(func() { now = w.now() })
	stamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(SigningSecret))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	r := httptest.NewRequestWithContext(
		context.Background(),
		http.MethodPost,
		"/slack/interactions",
		bytes.NewBufferString(body),
	)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

// Again copies a request, as a replay does.
func Again(r *http.Request) *http.Request {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	copied := r.Clone(context.Background())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	return copied
}

// Deliver sends a request. An answer after 3 seconds fails the test: Slack shows the user an error.
func (w *Workspace) Deliver(to http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	rec := httptest.NewRecorder()
	began := time.Now()
	to.ServeHTTP(rec, r.WithContext(ctx))
	if time.Since(began) > patience {
		w.t.Errorf("slacktest: the acknowledgement came after %s", time.Since(began))
	}
	return rec
}
