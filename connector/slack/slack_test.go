package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/slack"
)

const channel = "C0123ABC"

func config(f *fake) slack.Config {
	return slack.Config{
		BaseURL: f.URL + "/api", AllowPrivate: true, Token: connector.Secret{Secret: "SLACK"},
		Channels: map[string]slack.Channel{channel: {}},
	}
}

var secrets = connectortest.Named(map[string]string{"SLACK": token})

func newConnector(t testing.TB, cfg slack.Config) *slack.Connector {
	t.Helper()
	return connectortest.Build[*slack.Connector](t, slack.New, cfg, secrets)
}

func call(operation, ref string, was, change gatehouse.JSON) connector.Call {
	entity := "message"
	if operation == "post" {
		entity = "channel"
	}
	return connectortest.Call(operation, entity, ref, was, change)
}

func post(text string) connector.Call { return call("post", channel, "", state(text)) }

var (
	wantFailure = connectortest.WantFailure
	failure     = connectortest.Failure
	found       = connectortest.WantFinding
)

var not = map[connectortest.Fault]string{
	connectortest.Dropped: "Slack requires the text, the only field",
	connectortest.Skewed:  "a token does not contain the time",
}

// The target is a fake; see [fake]. The suite runs on update, because it has what the suite needs:
// a pre-image, and a message to change.
func TestConformance(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
		f := newFake(t)
		ref := f.add(channel, "before", "UGATE")
		return &connectortest.Fixture{
			Connector: newConnector(t, config(f)),
			Call:      call("update", ref, state("before"), state("after")),
			Disturb:   func(*testing.T) { f.edit(ref, "other") },
			Read:      func(*testing.T) gatehouse.JSON { return gatehouse.StringJSON(f.text(ref)) },
			Effects:   func(*testing.T) int { return f.count() },
			Secrets:   []string{token},
			Server:    f.Server, Value: [2]string{"after", "later"},
			Expired: connectortest.WithSecret(slack.New, config(f), "xoxb-old"),
		}
	}})
}

// TestConformanceOfPost: each post creates a message.
func TestConformanceOfPost(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
		f := newFake(t)
		return &connectortest.Fixture{
			Connector: newConnector(t, config(f)), Call: post("hello"), Creates: true,
			Read:    func(*testing.T) gatehouse.JSON { return gatehouse.MustJSON(f.all()) },
			Effects: func(*testing.T) int { return f.count() },
			Secrets: []string{token},
			Server:  f.Server, Value: [2]string{"hello", "hullo"},
			Expired: connectortest.WithSecret(slack.New, config(f), "xoxb-old"),
		}
	}})
}

// TestPost posts, reads back by the metadata, and deletes the message.
func TestPost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newConnector(t, config(f))
	f.add(channel, "the same text", "UOTHER")
	p := post("the same text")
	found(t, c, p, connector.Inconclusive)
	res, err := c.Execute(t.Context(), p)
	if err != nil || f.text(res.ExternalID) != "the same text" ||
		strings.Contains(string(res.RequestMetadata), token) {
		t.Fatalf("%v, %+v", err, res)
	}
	if got := found(t, c, p, connector.Present); got.ExternalID != res.ExternalID || got.Reversal == nil {
		t.Errorf("%+v", got)
	}
	back := call(
		res.Reversal.Operation,
		res.Reversal.Target.EntityRef,
		res.Reversal.CurrentState,
		res.Reversal.ProposedChange,
	)
	undone, err := c.Execute(t.Context(), back)
	if err != nil || f.text(res.ExternalID) != "" || undone.Reversal != nil {
		t.Fatalf("%v, %+v", err, undone)
	}
	found(t, c, back, connector.Present)
	_, err = c.Execute(t.Context(), back)
	wantFailure(t, err, connector.Terminal, "target_changed")
	if op, _ := c.Operation("delete"); op.Reverses || op.Floor != gatehouse.L4 {
		t.Errorf("%+v", op)
	}
	if f.count() != 2 {
		t.Errorf("%d effects", f.count())
	}
}

// TestThread posts a reply, finds it and edits it.
func TestThread(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newConnector(t, config(f))
	_, root, _ := strings.Cut(f.add(channel, "root", "UOTHER"), "/")
	p := call("post", channel, "", gatehouse.MustJSON(map[string]string{"text": "reply", "thread_ts": root}))
	res, err := c.Execute(t.Context(), p)
	if err != nil || res.ExternalID == "" {
		t.Fatal(err)
	}
	found(t, c, p, connector.Present)
	if _, err := c.Execute(t.Context(), call("update", res.ExternalID, state("reply"), state("better"))); err != nil ||
		f.text(res.ExternalID) != "better" {
		t.Error(err)
	}
}

// TestTexts: a text that Slack stores in modified form counts as the same, another text does not.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a & b", "see http://example.com/x?a=1&b=2 now", "done ✅ 😀", "1 < 2 > 0", "ümläut",
		"<https://example.com|the page>",
	} {
		f := newFake(t)
		c := newConnector(t, config(f))
		ref := f.add(channel, "old", "UGATE")
		if _, err := c.Execute(t.Context(), call("update", ref, state("old"), state(text))); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		// The stored text also matches as the pre-image of the next change.
		if _, err := c.Execute(t.Context(), call("update", ref, state(text), state("new"))); err != nil {
			t.Errorf("%q as the pre-image: %v", text, err)
		}
	}
	f := newFake(t)
	c := newConnector(t, config(f))
	f.rewrite = func(s string) string { return s + " (edited by an app)" }
	res, err := c.Execute(t.Context(), post("x"))
	wantFailure(t, err, connector.Ambiguous, "not_as_approved")
	if res.ExternalID == "" || res.Reversal != nil {
		t.Errorf("%+v", res)
	}
	// The message of the first attempt still differs.
	found(t, c, post("x"), connector.Inconclusive)
	again := post("x")
	again.Attempt = 2
	_, err = c.Execute(t.Context(), again)
	wantFailure(t, err, connector.Ambiguous, "not_as_approved")
	if f.count() != 1 {
		t.Errorf("%d effects", f.count())
	}
}

// TestAnswerLost: a second attempt, as an operator starts it, finds the first one's message and
// posts no other.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newConnector(t, config(f))
	p := post("once")
	p.ActionID = fmt.Sprintf("act_%012x70008000000000000000", time.Now().UnixMilli())
	f.fail("chat.postMessage", true, lost)
	_, err := c.Execute(t.Context(), p)
	wantFailure(t, err, connector.Ambiguous, "connection_lost")
	f.fail("", false, nil)
	for i := range 250 { // more than two pages of later messages
		f.add(channel, fmt.Sprint(i), "UOTHER")
	}
	made := found(t, c, p, connector.Present)
	p.Attempt = 2
	if res, err := c.Execute(t.Context(), p); err != nil || res.ExternalID != made.ExternalID || f.count() != 1 {
		t.Errorf("%v, %s, %d effects", err, res.ExternalID, f.count())
	}
}

// TestTooManyMessages: with too many messages to search, a second attempt does not post its message again.
func TestTooManyMessages(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for i := range 1001 {
		f.add(channel, fmt.Sprint(i), "UOTHER")
	}
	p := post("once")
	p.Attempt = 2
	_, err := newConnector(t, config(f)).Execute(t.Context(), p)
	wantFailure(t, err, connector.Terminal, "too_many_messages")
	if f.count() != 0 {
		t.Errorf("%d effects", f.count())
	}
}

// TestErrors: what each of Slack's own errors proves.
func TestErrors(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }
	status := func(code int, retryAfter string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(code)
		}
	}
	for name, test := range map[string]struct {
		with func(http.ResponseWriter)
		kind connector.Kind
		code string
	}{
		"internal_error":   {says("internal_error"), connector.Ambiguous, "slack_internal_error"},
		"fatal_error":      {says("fatal_error"), connector.Ambiguous, "slack_fatal_error"},
		"an unknown one":   {says("something_new"), connector.Ambiguous, "slack_something_new"},
		"ratelimited":      {says("ratelimited"), connector.Transient, "slack_ratelimited"},
		"429":              {status(429, "30"), connector.Transient, "http_429"},
		"503":              {status(503, ""), connector.Ambiguous, "http_503"},
		"token_revoked":    {says("token_revoked"), connector.Terminal, "slack_token_revoked"},
		"is_archived":      {says("is_archived"), connector.Terminal, "slack_is_archived"},
		"msg_too_long":     {says("msg_too_long"), connector.Terminal, "slack_msg_too_long"},
		"no JSON":          {page, connector.Ambiguous, "no_answer"},
		"an error of ours": {says("a b\n"), connector.Ambiguous, "no_answer"},
		"lost":             {lost, connector.Ambiguous, "connection_lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			c := newConnector(t, config(f))
			f.fail("chat.postMessage", false, test.with)
			_, err := c.Execute(t.Context(), post("x"))
			wantFailure(t, err, test.kind, test.code)
			if f.calls("chat.postMessage") != 1 {
				t.Errorf("%d calls", f.calls("chat.postMessage"))
			}
			if name != "429" {
				return
			}
			if e := failure(t, err); e.RetryAfter != 30*time.Second {
				t.Errorf("retry after %v", e.RetryAfter)
			}
			f.fail("", false, nil)
			_, err = c.Execute(t.Context(), post("y"))
			wantFailure(t, err, connector.NotSent, "rate_limited")
		})
	}
}

// TestBefore: the message is read first. A message that cannot be read, or that belongs to somebody
// else, is not overwritten.
func TestBefore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		with func(http.ResponseWriter)
		kind connector.Kind
		code string
	}{
		"lost":     {lost, connector.NotSent, "connection_lost"},
		"internal": {says("internal_error"), connector.NotSent, "slack_internal_error"},
		"no scope": {says("missing_scope"), connector.Terminal, "slack_missing_scope"},
		"gone":     {says("thread_not_found"), connector.Terminal, "target_changed"},
	} {
		f := newFake(t)
		c := newConnector(t, config(f))
		ref := f.add(channel, "before", "UGATE")
		f.fail("conversations.replies", false, test.with)
		_, err := c.Execute(t.Context(), call("update", ref, state("before"), state("after")))
		if e := failure(t, err); e == nil || e.Kind != test.kind || e.Code != test.code ||
			f.calls("chat.update") != 0 {
			t.Errorf("%s: %v, %d calls", name, err, f.calls("chat.update"))
		}
	}
	for before, now := range map[string]string{
		"Done :tada:": "Done :x: :no_entry:", "at 10:30:00": "at 10:45:00",
	} {
		f := newFake(t)
		_, err := newConnector(t, config(f)).Execute(t.Context(),
			call("update", f.add(channel, now, "UGATE"), state(before), state("after")))
		wantFailure(t, err, connector.Terminal, "target_changed")
	}
	f := newFake(t)
	c := newConnector(t, config(f))
	ref := f.add(channel, "before", "UOTHER")
	_, err := c.Execute(t.Context(), call("update", ref, state("before"), state("after")))
	wantFailure(t, err, connector.Terminal, "slack_cant_update_message")
	_, err = c.Execute(t.Context(), call("delete", ref, state("before"), `{}`))
	wantFailure(t, err, connector.Terminal, "slack_cant_delete_message")
}

// TestPace: Slack accepts one message per second and channel. A call that cannot wait that long has
// sent nothing.
func TestPace(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newConnector(t, config(f))
	for _, text := range []string{"one", "two"} {
		if _, err := c.Execute(t.Context(), post(text)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := c.Execute(ctx, post("three"))
	wantFailure(t, err, connector.NotSent, "rate_limited")
	if f.count() != 2 || f.calls("chat.postMessage") != 2 {
		t.Errorf("%d effects of %d calls", f.count(), f.calls("chat.postMessage"))
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newConnector(t, config(f))
	message := channel + "/1712345678.000100"
	edit := call("update", message, state("a"), state("b"))
	keyed := func(p connector.Call, key string) connector.Call {
		p.IdempotencyKey = key
		return p
	}
	for name, test := range map[string]struct {
		call connector.Call
		want string // where the first violation points to; "" for none
	}{
		"a post":          {post("x"), ""},
		"an edit":         {edit, ""},
		"a delete":        {call("delete", message, state("a"), `{"deleted":true}`), ""},
		"no text":         {call("post", channel, "", `{"text":""}`), "/proposed_change/text"},
		"a text too long": {post(strings.Repeat("ü", 4001)), "/proposed_change/text"},
		"blocks":          {call("post", channel, "", `{"blocks":[],"text":"x"}`), "/proposed_change"},
		"a user":          {call("post", "U0123ABC", "", state("x")), "/target/entity_ref"},
		"another channel": {call("post", "C9", "", state("x")), "/target/entity_ref"},
		"a message elsewhere": {
			call("update", "C9ZZ/1712345678.000100", state("a"), state("b")), "/target/entity_ref",
		},
		"no timestamp":          {call("update", channel, state("a"), state("b")), "/target/entity_ref"},
		"an edit without guard": {call("update", message, "", state("b")), "/current_state/text"},
		"everybody":             {post("<!channel> look"), "/proposed_change/text"},
		"the key of the effect": {keyed(edit, "slack:"+channel+":"+edit.ChangeHash()), ""},
		"and its longer form":   {keyed(edit, "slack:update:"+channel+":1712345678.000100:"+edit.ChangeHash()), ""},
		"another channel's":     {keyed(edit, "slack:C9:"+edit.ChangeHash()), "/idempotency_key"},
		"another text's":        {keyed(edit, "slack:"+channel+":"+post("z").ChangeHash()), "/idempotency_key"},
	} {
		err := c.Validate(test.call)
		var invalid *gatehouse.Error
		got := ""
		if errors.As(err, &invalid) {
			got = invalid.Violations[0].Pointer
		}
		if got != test.want || (err == nil) != (test.want == "") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	loud := config(f)
	loud.AllowBroadcast = true
	if err := newConnector(t, loud).Validate(post("<!channel> look")); err != nil {
		t.Error(err)
	}
	if len(f.log) != 0 {
		t.Errorf("called %q", f.log)
	}
}

// TestLevels: an operator's level applies to its channel. The fingerprint covers the channels, and not their levels.
func TestLevels(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	cfg := config(f)
	cfg.Channels = map[string]slack.Channel{
		channel: {Operations: map[string]slack.Operation{"post": {Floor: 1}}},
		"C9ZZ":  {},
	}
	c := newConnector(t, cfg)
	for ref, want := range map[string]gatehouse.RiskLevel{channel: 1, "C9ZZ": 3} {
		if got := c.Floor(call("post", ref, "", state("x"))); got != want {
			t.Errorf("%s: %d, want %d", ref, got, want)
		}
	}
	if got := c.Floor(call("delete", channel+"/1712345678.000100", state("x"), `{}`)); got != gatehouse.L4 {
		t.Errorf("a delete has %d", got)
	}
	if d := c.Declarations(); len(d) != 1 ||
		d[0] != (connector.Declaration{Operation: "post", EntityType: "channel", Level: 1}) {
		t.Errorf("%+v", d)
	}
	base := c.Fingerprint()
	cfg.Channels[channel] = slack.Channel{}
	if newConnector(t, cfg).Fingerprint() != base {
		t.Error("levels are in the fingerprint")
	}
	delete(cfg.Channels, "C9ZZ")
	if newConnector(t, cfg).Fingerprint() == base {
		t.Error("channels are not in the fingerprint")
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	configure := func() slack.Config { return config(f) }
	connectortest.Refuses(t, slack.New, configure, secrets, map[string]func(*slack.Config){
		"at least one is needed":     func(c *slack.Config) { c.Channels = nil },
		"is not the id of a channel": func(c *slack.Config) { c.Channels = map[string]slack.Channel{"#general": {}} },
		"there is no secret":         func(c *slack.Config) { c.Token.Secret = "OTHER" },
		"needs the name":             func(c *slack.Config) { c.Token.Secret = "" },
		"an internal address":        func(c *slack.Config) { c.AllowPrivate = false },
		"not slack":                  func(c *slack.Config) { c.Type = "http" },
	})
}
