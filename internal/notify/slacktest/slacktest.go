// Package slacktest is a Slack workspace for tests: the Web API with its documented and
// undocumented limits, and clicks, forms and commands, signed over HTTP or delivered over Socket
// Mode.
package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// The credentials and ids of the workspace.
const (
	Token         = "xoxb-1-2-three"
	AppToken      = "xapp-1-A1-secret"
	SigningSecret = "8f742231b10e8888abcd99yyyzzz85a5"
	Team          = "T012AB3C4"
	Channel       = "C0123456789"
)

// Message is a message in a channel or a conversation.
type Message struct {
	Channel  string           `json:"channel"`
	TS       string           `json:"ts"`
	Text     string           `json:"text"`
	Thread   string           `json:"thread_ts"`
	Blocks   []map[string]any `json:"blocks"`
	Metadata json.RawMessage  `json:"metadata,omitempty"`
	Unfurl   *bool            `json:"unfurl_links"`
	// ClientID is accepted and ignored, as Slack does.
	ClientID string `json:"client_msg_id"`
	// Updates counts the updates of the message.
	Updates int `json:"-"`
}

// All is the text of the message, followed by its blocks as JSON.
func (m *Message) All() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(m.Blocks)
	return m.Text + b.String()
}

// Ephemeral is a message that only one person sees.
type Ephemeral struct {
	Channel string `json:"channel"`
	User    string `json:"user"`
	Text    string `json:"text"`
}

// View is an open form.
type View map[string]any

// Workspace is the fake. It is safe for concurrent use.
type Workspace struct {
	*httptest.Server
	t  testing.TB
	mu sync.Mutex
	// now is the clock of signatures; time.Now by default.
	now func() time.Time

	messages   []*Message
	ephemerals []Ephemeral
	views      []View
	triggers   map[string]*trigger
	outsiders  map[string]bool
	last       map[string]time.Time
	calls      map[string]int
	fail       map[string]string
	lose       map[string]int
	down       bool
	hurried    bool
	sockets    []*socket
	serial     int
}

type trigger struct {
	made time.Time
	used bool
}

// New starts a workspace.
func New(t testing.TB) *Workspace {
	w := &Workspace{
		t: t, now: time.Now, triggers: map[string]*trigger{}, outsiders: map[string]bool{},
		last: map[string]time.Time{}, calls: map[string]int{}, fail: map[string]string{}, lose: map[string]int{},
	}
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.Drop()
		w.Close()
	})
	return w
}

// API is the base of the Web API.
func (w *Workspace) API() string { return w.URL + "/api" }

// SetNow sets the clock of signatures.
func (w *Workspace) SetNow(now func() time.Time) { w.set(func() { w.now = now }) }

// SetDown makes every call fail, or work again.
func (w *Workspace) SetDown(down bool) { w.set(func() { w.down = down }) }

// DisableRateLimits disables the rate limits, for tests with many messages.
func (w *Workspace) DisableRateLimits() { w.set(func() { w.hurried = true }) }

// Fail makes a method answer with an error; "" ends that.
func (w *Workspace) Fail(method, code string) { w.set(func() { w.fail[method] = code }) }

// DropAnswers drops the connection after the effect of the next n calls of a method.
func (w *Workspace) DropAnswers(method string, n int) { w.set(func() { w.lose[method] = n }) }

// RemoveFromChannels removes a user from the channels.
func (w *Workspace) RemoveFromChannels(user string) { w.set(func() { w.outsiders[user] = true }) }

// Forget deletes all messages.
func (w *Workspace) Forget() { w.set(func() { w.messages = nil }) }

func (w *Workspace) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// Messages are the messages of all channels, oldest first.
func (w *Workspace) Messages() (list []Message) {
	w.set(func() {
		for _, m := range w.messages {
			list = append(list, *m)
		}
	})
	return list
}

// Ephemerals lists the messages that only this user sees, oldest first.
func (w *Workspace) Ephemerals(user string) (list []string) {
	w.set(func() {
		for _, e := range w.ephemerals {
			if e.User == user {
				list = append(list, e.Text)
			}
		}
	})
	return list
}

// Views are the forms that were opened.
func (w *Workspace) Views() (list []View) {
	w.set(func() { list = append(list, w.views...) })
	return list
}

// Calls counts the calls of a method.
func (w *Workspace) Calls(method string) (n int) {
	w.set(func() { n = w.calls[method] })
	return n
}

func (w *Workspace) stamp() string {
	w.serial++
	return fmt.Sprintf("1700000000.%06d", w.serial)
}

// ServeHTTP serves the Web API and Socket Mode.
func (w *Workspace) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/socket" {
		w.serveSocket(rw, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	method, _ := strings.CutPrefix(r.URL.Path, "/api/")
	w.calls[method]++
	if w.down {
		panic(http.ErrAbortHandler)
	}
	answer, status := w.method(method, r)
	if status == http.StatusTooManyRequests {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(status)
		return
	}
	if w.lose[method] > 0 {
		w.lose[method]--
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(rw).Encode(answer)
}

func refuse(code string) (map[string]any, int) {
	return map[string]any{"ok": false, "error": code}, http.StatusOK
}

func (w *Workspace) method(method string, r *http.Request) (map[string]any, int) {
	want := Token
	if method == "apps.connections.open" {
		want = AppToken
	}
	if r.Header.Get("Authorization") != "Bearer "+want {
		return refuse("invalid_auth")
	}
	if code := w.fail[method]; code != "" {
		return refuse(code)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return refuse("invalid_json")
	}
	switch method {
	case "apps.connections.open":
		return map[string]any{"ok": true, "url": "ws" + strings.TrimPrefix(w.URL, "http") + "/socket?ticket=1"}, 200
	case "conversations.history", "conversations.replies":
		return w.history(r, method == "conversations.replies")
	case "chat.postMessage":
		return w.post(body)
	case "chat.update":
		return w.update(body)
	case "chat.postEphemeral":
		return w.whisper(body)
	case "views.open":
		return w.open(body)
	}
	return refuse("unknown_method")
}

// history lists the messages of a channel without replies, or a message with its replies.
func (w *Workspace) history(r *http.Request, replies bool) (map[string]any, int) {
	oldest, _ := strconv.ParseFloat(r.URL.Query().Get("oldest"), 64)
	list := []any{}
	for i := len(w.messages) - 1; i >= 0; i-- {
		m := w.messages[i]
		if m.Channel != r.URL.Query().Get("channel") || oldest > 2e9 {
			continue
		}
		ts := r.URL.Query().Get("ts")
		if replies && m.TS != ts && m.Thread != ts || !replies && m.Thread != "" {
			continue
		}
		shown := map[string]any{"ts": m.TS, "text": m.Text}
		if r.URL.Query().Get("include_all_metadata") == "true" && m.Metadata != nil {
			shown["metadata"] = m.Metadata
		}
		list = append(list, shown)
	}
	return map[string]any{"ok": true, "messages": list}, 200
}

// place returns the conversation of a message that is addressed to an id: for the id of a user, the direct message
// with the user. It returns false for an unknown id.
func place(id string) (string, bool) {
	switch {
	case strings.HasPrefix(id, "U"):
		return "D" + id[1:], true
	case id == Channel:
		return id, true
	}
	return "", false
}

func (w *Workspace) post(body []byte) (map[string]any, int) {
	m := new(Message)
	if json.Unmarshal(body, m) != nil {
		return refuse("invalid_json")
	}
	at, ok := place(m.Channel)
	if !ok {
		return refuse("channel_not_found")
	}
	m.Channel = at
	if code := w.checkMessage(m, "chat.postMessage"); code != "" {
		return refuse(code)
	}
	if now := time.Now(); now.Sub(w.last[at]) < time.Second && !w.hurried {
		return nil, http.StatusTooManyRequests
	}
	w.last[at] = time.Now()
	if m.Unfurl == nil || *m.Unfurl {
		w.t.Error("slacktest: links are unfurled")
	}
	m.TS = w.stamp()
	w.messages = append(w.messages, m)
	return map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS}, 200
}

func (w *Workspace) update(body []byte) (map[string]any, int) {
	m := new(Message)
	if json.Unmarshal(body, m) != nil {
		return refuse("invalid_json")
	}
	if !strings.HasPrefix(m.Channel, "C") && !strings.HasPrefix(m.Channel, "D") {
		return refuse("channel_not_found")
	}
	if utf8.RuneCountInString(m.Text) > 4000 {
		return refuse("msg_too_long")
	}
	if code := w.checkMessage(m, "chat.update"); code != "" {
		return refuse(code)
	}
	for _, old := range w.messages {
		if old.Channel != m.Channel || old.TS != m.TS {
			continue
		}
		old.Text, old.Blocks = m.Text, m.Blocks // a text without blocks removes them
		old.Updates++
		return map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS}, 200
	}
	return refuse("message_not_found")
}

func (w *Workspace) whisper(body []byte) (map[string]any, int) {
	var e Ephemeral
	if json.Unmarshal(body, &e) != nil {
		return refuse("invalid_json")
	}
	switch {
	case e.Channel != Channel:
		return refuse("channel_not_found")
	case w.outsiders[e.User]:
		return refuse("user_not_in_channel")
	case e.Text == "":
		return refuse("no_text")
	}
	w.ephemerals = append(w.ephemerals, e)
	return map[string]any{"ok": true, "message_ts": w.stamp()}, 200
}

func (w *Workspace) open(body []byte) (map[string]any, int) {
	var v struct {
		Trigger string         `json:"trigger_id"`
		View    map[string]any `json:"view"`
	}
	if json.Unmarshal(body, &v) != nil {
		return refuse("invalid_json")
	}
	t := w.triggers[v.Trigger]
	switch {
	case t == nil:
		return refuse("invalid_trigger")
	case t.used:
		return refuse("trigger_exchanged")
	case time.Since(t.made) > patience:
		return refuse("trigger_expired")
	}
	if code := checkView(v.View); code != "" {
		w.t.Errorf("slacktest: views.open: %s", code)
		return refuse("invalid_arguments")
	}
	t.used = true
	w.views = append(w.views, v.View)
	return map[string]any{"ok": true, "view": map[string]any{"id": "V" + v.Trigger}}, 200
}
