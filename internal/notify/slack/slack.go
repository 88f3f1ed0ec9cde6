// Package slack posts messages into a Slack channel as the bot of an own app, and
// updates the message that asked once the question is settled.
package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// defaultURL is that of the Web API.
const defaultURL = "https://slack.com/api"

const (
	// pace is the least time between two calls: Slack takes a message a second and
	// channel.
	pace = 1100 * time.Millisecond
	// maxAnswer bounds what is read of an answer, in bytes; historyLimit the messages
	// that are looked through for one whose answer was lost.
	maxAnswer    = 4 << 20
	historyLimit = 200
	eventType    = "gatehouse_notification"
)

// Config is what a channel posts by.
type Config struct {
	// Token is the bot token, xoxb-….
	Token string
	// Channel is the id of the channel, such as C0123456789.
	Channel string
	// BaseURL is that of the Web API; Slack's own by default. AllowPrivate permits an
	// address inside, and plain http.
	BaseURL      string
	AllowPrivate bool
}

// Channel posts.
type Channel struct {
	config Config
	client *http.Client
	// turn is held during a call; next is when the following one may begin.
	turn chan struct{}
	mu   sync.Mutex
	next time.Time
}

// channelForm is the id of a channel; never a name.
var channelForm = regexp.MustCompile(`^[CG][A-Z0-9]{2,20}$`)

// New checks the configuration.
func New(c Config) (*Channel, error) {
	if c.Token == "" {
		return nil, errors.New("token: is required")
	}
	if !channelForm.MatchString(c.Channel) {
		return nil, errors.New("channel: must be the id of a channel, such as C0123456789")
	}
	if c.BaseURL == "" {
		c.BaseURL = defaultURL
	}
	if err := notify.CheckURL(c.BaseURL, c.AllowPrivate); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return &Channel{config: c, client: notify.HTTPClient(c.AllowPrivate), turn: make(chan struct{}, 1)}, nil
}

// Kind is slack.
func (*Channel) Kind() string { return "slack" }

// Trait says that there is one place, which people read.
func (*Channel) Trait() notify.Trait { return notify.Trait{} }

// Reaches is about personal channels only.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// Send posts a card, or updates the one that asked. What else becomes of an action
// is a reply to it.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return notify.Sent{}, &notify.Refusal{Recipient: true, Err: errors.New("many messages wait for this channel")}
	}
	if m.Card != "" && (m.Kind == gatehouse.NotifyDecided || m.Kind == gatehouse.NotifyExpired) {
		sent, err := c.update(ctx, m)
		if !gone(err) {
			return sent, err
		}
	}
	if m.Attempt > 1 {
		if ref := c.find(ctx, m); ref != "" {
			return notify.Sent{Delivered: true, Ref: ref}, nil
		}
	}
	return c.post(ctx, m)
}

// place is the channel and the timestamp of a message, by which Slack names it.
type place struct{ channel, ts string }

func parse(ref string) place {
	channel, ts, _ := strings.Cut(ref, "/")
	return place{channel, ts}
}

func (c *Channel) post(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	arguments := map[string]any{
		"channel": c.config.Channel, "text": fallback(m), "blocks": blocks(m), "unfurl_links": false,
		"unfurl_media": false,
		"metadata":     map[string]any{"event_type": eventType, "event_payload": map[string]string{"id": m.ID}},
	}
	if m.Card != "" {
		arguments["thread_ts"] = parse(m.Card).ts
	}
	answer, err := c.call(ctx, "chat.postMessage", arguments)
	if err != nil {
		return notify.Sent{}, err
	}
	return notify.Sent{Delivered: true, Ref: answer.Channel + "/" + answer.TS}, nil
}

func (c *Channel) update(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	card := parse(m.Card)
	_, err := c.call(ctx, "chat.update", map[string]any{
		"channel": card.channel, "ts": card.ts, "text": fallback(m), "blocks": blocks(m),
	})
	if err != nil {
		return notify.Sent{}, err
	}
	return notify.Sent{Delivered: true, Ref: m.Card}, nil
}

// find looks for a message whose answer was lost; "" where it is not found, or the
// app may not look.
func (c *Channel) find(ctx context.Context, m *notify.Message) string {
	answer, err := c.read(ctx, "conversations.history", url.Values{
		"channel": {c.config.Channel}, "oldest": {strconv.FormatInt(m.At.Add(-time.Minute).Unix(), 10)},
		"include_all_metadata": {"true"}, "limit": {strconv.Itoa(historyLimit)},
	})
	if err != nil {
		return ""
	}
	for _, posted := range answer.Messages {
		if posted.Metadata.Type == eventType && posted.Metadata.Payload.ID == m.ID {
			return c.config.Channel + "/" + posted.TS
		}
	}
	return ""
}

// answer is what Slack says.
type answer struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Channel  string `json:"channel"`
	TS       string `json:"ts"`
	Messages []struct {
		TS       string `json:"ts"`
		Metadata struct {
			Type    string `json:"event_type"`
			Payload struct {
				ID string `json:"id"`
			} `json:"event_payload"`
		} `json:"metadata"`
	} `json:"messages"`
}

// apiError is an answer with ok false.
type apiError string

func (e apiError) Error() string { return "the answer of Slack is " + string(e) }

// The errors that say that the message to update is no longer there to update, and
// those that say that the same message will never be taken.
var (
	goneErrors  = []string{"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"}
	finalErrors = []string{"msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format", "no_text"}
)

func gone(err error) bool {
	var e apiError
	return errors.As(err, &e) && slices.Contains(goneErrors, string(e))
}

func (c *Channel) call(ctx context.Context, method string, arguments map[string]any) (*answer, error) {
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, &notify.Refusal{Final: true, Err: err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.BaseURL+"/"+method, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return c.do(ctx, r)
}

func (c *Channel) read(ctx context.Context, method string, query url.Values) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.BaseURL+"/"+method+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, r)
}

// do sends one request, once, when it is its turn.
func (c *Channel) do(ctx context.Context, r *http.Request) (*answer, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.config.Token)
	response, err := c.client.Do(r)
	if err != nil {
		return nil, notify.WithoutURL(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusTooManyRequests {
		after := notify.RetryAfter(response.Header, time.Now())
		return nil, &notify.Refusal{Recipient: true, After: after, Err: apiError("ratelimited")}
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d from Slack", response.StatusCode)
	}
	out := new(answer)
	if err := json.Unmarshal(content, out); err != nil {
		return nil, errors.New("the answer is not Slack's")
	}
	if !out.OK {
		e := apiError(out.Error)
		return nil, &notify.Refusal{
			Final: slices.Contains(finalErrors, out.Error), Recipient: out.Error == "ratelimited", Err: e,
		}
	}
	return out, nil
}

// wait keeps to the pace.
func (c *Channel) wait(ctx context.Context) error {
	c.mu.Lock()
	now := time.Now()
	at := now
	if c.next.After(now) {
		at = c.next
	}
	c.next = at.Add(pace)
	c.mu.Unlock()
	t := time.NewTimer(at.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &notify.Refusal{Recipient: true, Err: errors.New("many messages wait for this channel")}
	}
}
