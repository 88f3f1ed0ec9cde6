package slack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const token = "xoxb-of-the-gate"

// fake implements the six methods that the connector uses, as Slack documents them: it checks the
// caller, the arguments and their limits, answers errors with ok false and status 200, permits one
// message per second and channel, changes only its own messages, returns metadata only on request,
// pages with cursors, and stores a modified text.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	messages []*posted // oldest first
	last     map[string]time.Time
	log      []string // methods that were called
	effects  int
	serial   int
	// trouble answers instead of a call; with after, once the call has taken effect. nil for none.
	trouble func(w http.ResponseWriter, method string) bool
	after   bool
	// rewrite is how an app in the workspace changes a text.
	rewrite func(string) string
}

type posted struct {
	channel, ts, thread, text, bot string
	metadata                       json.RawMessage
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := &fake{last: map[string]time.Time{}, rewrite: func(s string) string { return s }}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// add posts a message without the connector.
func (f *fake) add(channel, text, bot string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &posted{channel: channel, ts: f.ts(), text: stored(text), bot: bot}
	f.messages = append(f.messages, m)
	return channel + "/" + m.ts
}

// ts is the time, made unique in the workspace.
func (f *fake) ts() string {
	f.serial++
	return fmt.Sprintf("%d.%06d", time.Now().Unix(), f.serial)
}

func (f *fake) edit(ref, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	channel, ts, _ := strings.Cut(ref, "/")
	f.at(channel, ts).text = stored(text)
}

// text is a message's text; "" when it was deleted.
func (f *fake) text(ref string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	channel, ts, _ := strings.Cut(ref, "/")
	if m := f.at(channel, ts); m != nil {
		return m.text
	}
	return ""
}

func (f *fake) at(channel, ts string) *posted {
	for _, m := range f.messages {
		if m.channel == channel && m.ts == ts {
			return m
		}
	}
	return nil
}

// all are the texts of all messages.
func (f *fake) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts := []string{}
	for _, m := range f.messages {
		texts = append(texts, m.text)
	}
	return texts
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.effects
}

// calls counts the calls of a method.
func (f *fake) calls(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.log {
		if m == method {
			n++
		}
	}
	return n
}

// fail makes a method fail until it is called with "".
func (f *fake) fail(method string, after bool, with func(http.ResponseWriter)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = after
	f.trouble = func(w http.ResponseWriter, called string) bool {
		if called != method {
			return false
		}
		with(w)
		return true
	}
}

func lost(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func says(code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { fmt.Fprintf(w, `{"ok":false,"error":%q}`, code) }
}

var (
	link  = regexp.MustCompile(`https?://[^\s<>|]+`)
	smile = strings.NewReplacer("😀", ":grinning:", "✅", ":white_check_mark:")
	and   = strings.NewReplacer("&", "&amp;")
)

// stored is the form in which Slack stores a text.
func stored(s string) string {
	s = strings.NewReplacer("&amp;amp;", "&amp;", "&amp;lt;", "&lt;", "&amp;gt;", "&gt;").Replace(and.Replace(s))
	if !strings.Contains(s, "<http") {
		s = link.ReplaceAllString(s, "<$0>")
	}
	return smile.Replace(s)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, method)
	if f.trouble != nil && !f.after && f.trouble(w, method) {
		return
	}
	answer := f.handle(w, r, method, body)
	if f.trouble != nil && f.trouble(w, method) {
		return
	}
	if answer != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func refuse(code string) map[string]any { return map[string]any{"ok": false, "error": code} }

func (f *fake) handle(w http.ResponseWriter, r *http.Request, method string, body []byte) map[string]any {
	switch {
	case r.Header.Get("Authorization") == "":
		return refuse("not_authed")
	case r.Header.Get("Authorization") != "Bearer "+token:
		return refuse("invalid_auth")
	}
	args := map[string]any{}
	if r.Method == http.MethodPost && len(body) > 0 {
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || json.Unmarshal(body, &args) != nil {
			return refuse("invalid_json")
		}
	}
	// Methods that read do not accept JSON.
	for name, values := range r.URL.Query() {
		args[name] = values[0]
	}
	known := map[string]string{
		"auth.test":             "",
		"chat.postMessage":      "channel text thread_ts metadata unfurl_links unfurl_media",
		"chat.update":           "channel ts text",
		"chat.delete":           "channel ts",
		"conversations.history": "channel oldest latest inclusive limit cursor include_all_metadata",
		"conversations.replies": "channel ts oldest latest inclusive limit cursor include_all_metadata",
	}
	names, ok := known[method]
	if !ok {
		return refuse("unknown_method")
	}
	for name := range args {
		if !slices.Contains(strings.Fields(names), name) {
			return refuse("invalid_arguments")
		}
	}
	text := func(name string) string {
		s, _ := args[name].(string)
		return s
	}
	if method == "auth.test" {
		return map[string]any{"ok": true, "user_id": "UGATE"}
	}
	if c := text("channel"); !strings.HasPrefix(c, "C") && !strings.HasPrefix(c, "G") && !strings.HasPrefix(c, "D") {
		return refuse("channel_not_found")
	}
	if method == "chat.postMessage" {
		return f.post(w, text, body)
	}
	if strings.HasPrefix(method, "conversations.") {
		return f.list(method, text)
	}
	m := f.at(text("channel"), text("ts"))
	update := method == "chat.update"
	switch {
	case m == nil:
		return refuse("message_not_found")
	case m.bot != "UGATE" && update:
		return refuse("cant_update_message")
	case m.bot != "UGATE":
		return refuse("cant_delete_message")
	case update && text("text") == "":
		return refuse("no_text")
	case update && len([]rune(text("text"))) > 4000:
		return refuse("msg_too_long")
	}
	f.effects++
	if update {
		m.text = stored(f.rewrite(text("text")))
		return map[string]any{
			"ok":      true,
			"channel": m.channel,
			"ts":      m.ts,
			"text":    m.text,
			"message": f.show(m, false),
		}
	}
	f.messages = slices.DeleteFunc(f.messages, func(o *posted) bool { return o == m })
	return map[string]any{"ok": true, "channel": m.channel, "ts": m.ts}
}

func (f *fake) post(w http.ResponseWriter, text func(string) string, body []byte) map[string]any {
	channel := text("channel")
	var marked struct {
		Metadata *struct {
			Type    string          `json:"event_type"`
			Payload json.RawMessage `json:"event_payload"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &marked); err != nil || marked.Metadata == nil || marked.Metadata.Type == "" {
		return refuse("invalid_metadata_format")
	}
	if time.Since(f.last[channel]) < 900*time.Millisecond {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return refuse("ratelimited")
	}
	if text("text") == "" {
		return refuse("no_text")
	}
	f.last[channel] = time.Now()
	metadata, _ := json.Marshal(
		map[string]any{"event_type": marked.Metadata.Type, "event_payload": marked.Metadata.Payload},
	)
	m := &posted{
		channel: channel, ts: f.ts(), thread: text("thread_ts"), text: stored(f.rewrite(text("text"))), bot: "UGATE",
		metadata: metadata,
	}
	f.messages = append(f.messages, m)
	f.effects++
	return map[string]any{"ok": true, "channel": channel, "ts": m.ts, "message": f.show(m, false)}
}

func (f *fake) show(m *posted, all bool) map[string]any {
	out := map[string]any{"type": "message", "ts": m.ts, "text": m.text, "bot_id": m.bot}
	if m.thread != "" {
		out["thread_ts"] = m.thread
	}
	if all && m.metadata != nil {
		out["metadata"] = m.metadata
	}
	return out
}

// list answers with the messages of a channel, newest first, or of a thread.
func (f *fake) list(method string, text func(string) string) map[string]any {
	limit, err := strconv.Atoi(text("limit"))
	if err != nil || limit < 1 || limit > 999 {
		return refuse("invalid_limit")
	}
	thread := method == "conversations.replies"
	if thread && f.at(text("channel"), text("ts")) == nil {
		return refuse("thread_not_found")
	}
	var found []*posted
	for _, m := range slices.Backward(f.messages) {
		in := m.channel == text("channel") &&
			(!thread && m.thread == "" || thread && (m.ts == text("ts") || m.thread == text("ts")))
		if oldest := text("oldest"); oldest != "" && (m.ts < oldest || m.ts == oldest && text("inclusive") != "true") {
			in = false
		}
		if latest := text("latest"); latest != "" && (m.ts > latest || m.ts == latest && text("inclusive") != "true") {
			in = false
		}
		if in {
			found = append(found, m)
		}
	}
	if thread {
		slices.Reverse(found)
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(text("cursor"), "page-"))
	found = found[min(from, len(found)):]
	next := ""
	if len(found) > limit {
		found, next = found[:limit], fmt.Sprintf("page-%d", from+limit)
	}
	list := []any{}
	for _, m := range found {
		list = append(list, f.show(m, text("include_all_metadata") == "true"))
	}
	return map[string]any{
		"ok": true, "messages": list, "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next},
	}
}

func state(text string) gatehouse.JSON { return gatehouse.MustJSON(map[string]string{"text": text}) }
