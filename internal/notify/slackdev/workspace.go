// Package slackdev is the Slack of development mode: it shows the messages of a slack channel on a
// page, and sends clicks, forms and commands to the real handler, signed as Slack signs them.
//
// Nothing leaves the process. A browser acts as the Slack user of its own cookie. As in Slack, that
// user cannot decide until a person has linked it with a code from their settings.
package slackdev

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
)

const (
	// channelID and team are the ids of the workspace.
	channelID = "C0DEV"
	team      = "T0DEV"
	// kept limits the number of messages, including those that only one person sees.
	kept = 200
	// maxForms limits the open forms; triggerLife is how long a click's trigger may open a form.
	maxForms    = 100
	triggerLife = 3 * time.Second
	// maxCall limits the body of a call, in bytes.
	maxCall = 1 << 20
)

// message is a message in the channel.
type message struct {
	TS     string  `json:"ts"`
	Thread string  `json:"thread_ts"`
	Text   string  `json:"text"`
	Blocks []block `json:"blocks"`
	// Metadata is the metadata by which the app finds its messages.
	Metadata json.RawMessage `json:"metadata"`
	// User is the only person who sees the message; "" means everybody.
	User string `json:"user"`
	// Updates counts the updates of the message.
	Updates int `json:"-"`
	// At is the time of the post.
	At time.Time `json:"-"`
}

// view is an open form.
type view struct {
	CallbackID string  `json:"callback_id"`
	Metadata   string  `json:"private_metadata"`
	Title      text    `json:"title"`
	Submit     text    `json:"submit"`
	Close      text    `json:"close"`
	Blocks     []block `json:"blocks"`
	// Problems are the handler's errors about an earlier attempt, by block; Given is the typed text.
	Problems map[string]string `json:"-"`
	Given    map[string]string `json:"-"`
}

type trigger struct {
	user string
	made time.Time
}

// Workspace is the fake. It is the transport of a channel, and serves [Path].
type Workspace struct {
	secret string
	pages  http.ServeMux

	mu       sync.Mutex
	handler  http.Handler
	linked   Linked
	serial   int
	messages []*message
	forms    map[string]*view
	triggers map[string]trigger
	// changed is closed and replaced after every post and update, and when a form opens.
	changed chan struct{}
}

var _ http.RoundTripper = (*Workspace)(nil)

// New makes an empty workspace.
func New() *Workspace {
	w := &Workspace{
		secret: rand.Text(), forms: make(map[string]*view), triggers: make(map[string]trigger),
		changed: make(chan struct{}),
	}
	w.routes()
	return w
}

// Channel makes the channel that posts to this workspace.
func (w *Workspace) Channel() (*slack.Channel, error) {
	return slack.New(slack.Config{Token: "xoxb-dev", Channel: channelID, SigningSecret: w.secret, Transport: w})
}

// RoundTrip answers a call of the Web API.
func (w *Workspace) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxCall)); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	w.mu.Lock()
	answer := w.call(path.Base(r.URL.Path), r.URL.Query().Get("channel"), body)
	w.mu.Unlock()
	content, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(content)),
		Body: io.NopCloser(bytes.NewReader(content)),
	}, nil
}

// refuse is an error answer of Slack.
func refuse(code string) map[string]any { return map[string]any{"ok": false, "error": code} }

func (w *Workspace) call(method, channel string, body []byte) map[string]any {
	switch method {
	case "conversations.history", "conversations.replies":
		return w.history(channel)
	case "chat.postMessage", "chat.postEphemeral", "chat.update":
		var m struct {
			message
			Channel string `json:"channel"`
		}
		if json.Unmarshal(body, &m) != nil {
			return refuse("invalid_blocks")
		}
		if method == "chat.update" {
			return w.update(&m.message)
		}
		return w.post(m.Channel, &m.message)
	case "views.open":
		var v struct {
			Trigger string `json:"trigger_id"`
			View    view   `json:"view"`
		}
		if json.Unmarshal(body, &v) != nil {
			return refuse("invalid_arguments")
		}
		return w.open(v.Trigger, &v.View)
	}
	return refuse("unknown_method")
}

func (w *Workspace) history(channel string) map[string]any {
	list := []any{}
	for _, m := range slices.Backward(w.messages) {
		if m.User == "" && channel == channelID {
			list = append(list, map[string]any{"ts": m.TS, "text": m.Text, "metadata": m.Metadata})
		}
	}
	return map[string]any{"ok": true, "messages": list}
}

// post posts a message to everybody, to one person in the channel, or to the person's direct
// messages with the app.
func (w *Workspace) post(channel string, m *message) map[string]any {
	if strings.HasPrefix(channel, "U") {
		m.User, channel = channel, "D"+channel[1:]
	} else if channel != channelID {
		return refuse("channel_not_found")
	}
	if m.Text == "" && len(m.Blocks) == 0 {
		return refuse("no_text")
	}
	w.add(m)
	return map[string]any{"ok": true, "channel": channel, "ts": m.TS, "message_ts": m.TS}
}

// add stores a message, and deletes the oldest ones.
func (w *Workspace) add(m *message) {
	w.serial++
	m.At = time.Now()
	m.TS = fmt.Sprintf("%d.%06d", m.At.Unix(), w.serial%1_000_000)
	w.messages = append(w.messages, m)
	w.messages = w.messages[max(0, len(w.messages)-kept):]
	w.tell()
}

func (w *Workspace) update(m *message) map[string]any {
	old := w.find(m.TS)
	if old == nil {
		return refuse("message_not_found")
	}
	old.Text, old.Blocks = m.Text, m.Blocks // a text without blocks removes them
	old.Updates++
	w.tell()
	return map[string]any{"ok": true, "channel": channelID, "ts": m.TS}
}

// find is a message that everybody sees, nil for none.
func (w *Workspace) find(ts string) *message {
	for _, m := range w.messages {
		if m.TS == ts && m.User == "" {
			return m
		}
	}
	return nil
}

func (w *Workspace) open(id string, v *view) map[string]any {
	t, ok := w.triggers[id]
	delete(w.triggers, id)
	switch {
	case !ok:
		return refuse("invalid_trigger")
	case time.Since(t.made) > triggerLife:
		return refuse("trigger_expired")
	case len(w.forms) >= maxForms && w.forms[t.user] == nil:
		return refuse("internal_error")
	}
	w.forms[t.user] = v
	w.tell()
	return map[string]any{"ok": true}
}

// tell wakes the goroutines that wait for a change. The caller holds the lock.
func (w *Workspace) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}
