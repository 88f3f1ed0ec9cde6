package slackdev

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
)

const (
	// patience is how long Slack waits for an acknowledgement.
	patience = 3 * time.Second
	// answerWait is how long a press waits for the answer to the person, rewriteWait how long it
	// then waits for the card to be updated, because a page without scripts does not refresh
	// itself.
	answerWait  = 5 * time.Second
	rewriteWait = 2500 * time.Millisecond
	// maxTyped limits a request of the browser, in bytes.
	maxTyped = 64 << 10
)

// press presses a button of a card.
func (w *Workspace) press(r *http.Request, user string) {
	w.mu.Lock()
	m := w.find(r.PostForm.Get("ts"))
	var b *element
	if m != nil {
		b = m.button(r.PostForm.Get("action"))
	}
	if b == nil {
		w.whisper(user, "This button is not on the card any more. Nothing was sent.")
		w.mu.Unlock()
		return
	}
	payload := map[string]any{
		"type":      "block_actions",
		"container": map[string]any{"type": "message", "channel_id": channelID, "message_ts": m.TS},
		"actions":   []any{map[string]any{"type": "button", "action_id": b.ActionID, "value": b.Value}},
	}
	w.mu.Unlock()
	w.interact(r.Context(), user, payload, m)
}

// submit submits an open form.
func (w *Workspace) submit(r *http.Request, user string) {
	w.mu.Lock()
	v := w.forms[user]
	if v == nil || r.PostForm.Has("cancel") {
		delete(w.forms, user)
		w.mu.Unlock()
		return
	}
	values, given := map[string]any{}, map[string]string{}
	for _, b := range v.Blocks {
		if b.Type != "input" {
			continue
		}
		typed := strings.ReplaceAll(r.PostForm.Get(b.BlockID), "\r\n", "\n")
		given[b.BlockID] = typed
		values[b.BlockID] = map[string]any{b.Element.ActionID: map[string]any{"type": b.Element.Type, "value": typed}}
	}
	payload := map[string]any{"type": "view_submission", "view": map[string]any{
		"callback_id": v.CallbackID, "private_metadata": v.Metadata, "state": map[string]any{"values": values},
	}}
	w.mu.Unlock()
	reply := w.interact(r.Context(), user, payload, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	if reply.Action == "errors" {
		again := *v
		again.Problems, again.Given = reply.Errors, given
		w.forms[user] = &again
		return
	}
	if w.forms[user] == v {
		delete(w.forms, user)
	}
}

// enter sends a slash command.
func (w *Workspace) enter(r *http.Request, user string) {
	reply, ok := w.deliver(r.Context(), url.Values{
		"command": {"/gatehouse"}, "text": {r.PostForm.Get("text")}, "user_id": {user}, "team_id": {team},
		"channel_id": {channelID},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ok {
		reply.Text = "Gatehouse did not accept the command. Enter it again."
	}
	if reply.Text != "" {
		w.whisper(user, reply.Text)
	}
}

// reply is the content of an acknowledgement.
type reply struct {
	Text   string            `json:"text"`
	Action string            `json:"response_action"`
	Errors map[string]string `json:"errors"`
}

// interact delivers an interaction. It waits for a limited time until the person has an answer or an
// open form; after an answer, unless card is nil, it also waits until the card is updated.
func (w *Workspace) interact(ctx context.Context, user string, payload map[string]any, card *message) reply {
	id := rand.Text()
	payload["trigger_id"] = id
	payload["team"] = map[string]any{"id": team}
	payload["user"] = map[string]any{"id": user, "team_id": team}
	content, err := json.Marshal(payload)
	if err != nil {
		return reply{}
	}
	w.mu.Lock()
	for old, t := range w.triggers {
		if time.Since(t.made) > triggerLife {
			delete(w.triggers, old)
		}
	}
	w.triggers[id] = trigger{user, time.Now()}
	seen := w.serial
	form := w.forms[user]
	w.mu.Unlock()
	out, ok := w.deliver(ctx, url.Values{"payload": {string(content)}})
	if !ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.whisper(user, "Gatehouse did not accept this. Try again.")
		return out
	}
	if out.Action == "errors" {
		return out
	}
	updates := -1
	w.wait(ctx, answerWait, func() bool {
		for _, m := range w.messages {
			if m.User == user && serial(m.TS) > seen {
				if card != nil {
					updates = card.Updates
				}
				return true
			}
		}
		return w.forms[user] != form
	})
	if updates >= 0 {
		w.wait(ctx, rewriteWait, func() bool { return card.Updates > updates })
	}
	return out
}

// serial is the number in a timestamp.
func serial(ts string) int {
	_, number, _ := strings.Cut(ts, ".")
	n, _ := strconv.Atoi(number)
	return n
}

// wait returns when the condition holds or the time is over. The condition is evaluated under the
// lock.
func (w *Workspace) wait(ctx context.Context, d time.Duration, holds func() bool) {
	end := time.NewTimer(d)
	defer end.Stop()
	for {
		w.mu.Lock()
		done, changed := holds(), w.changed
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends a request to the handler, signed as Slack signs it; ok reports whether it was
// acknowledged.
func (w *Workspace) deliver(ctx context.Context, form url.Values) (out reply, ok bool) {
	w.mu.Lock()
	handler := w.handler
	w.mu.Unlock()
	if handler == nil {
		return out, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	body := []byte(form.Encode())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, slack.InteractionsPath, bytes.NewReader(body))
	if err != nil {
		return out, false
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	slack.Sign(w.secret, r.Header, body, time.Now())
	a := &acknowledgement{header: make(http.Header), status: http.StatusOK}
	handler.ServeHTTP(a, r)
	if a.status != http.StatusOK {
		return out, false
	}
	if a.body.Len() > 0 && json.Unmarshal(a.body.Bytes(), &out) != nil {
		return out, false
	}
	return out, true
}

// acknowledgement is the handler's answer.
type acknowledgement struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *acknowledgement) Header() http.Header         { return a.header }
func (a *acknowledgement) WriteHeader(status int)      { a.status = status }
func (a *acknowledgement) Write(b []byte) (int, error) { return a.body.Write(b) }

// whisper adds a message that only one person sees. The caller holds the lock.
func (w *Workspace) whisper(user, said string) { w.add(&message{User: user, Text: said}) }
