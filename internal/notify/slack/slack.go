// Package slack posts messages into a Slack channel as the bot of the operator's own Slack app, keeps
// the cards up to date with their actions, and processes the clicks on them.
//
// A click is verified and stored before it is acknowledged, within 3 seconds. Afterwards it is
// carried out under a lease, by the same use case as every other decision. See [Handler].
package slack

import (
	"bytes"
	"cmp"
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

// defaultURL is the address of the Web API.
const defaultURL = "https://slack.com/api"

const (
	// minSecret is the minimum length of a signing secret; Slack's have 32 characters.
	minSecret = 16
	// defaultPace is the default of Config.Pace: Slack accepts one message per second and channel.
	defaultPace = 1100 * time.Millisecond
	// maxAnswer is the maximum number of bytes that are read of an answer; historyLimit is the
	// maximum number of messages that Find reads.
	maxAnswer    = 4 << 20
	historyLimit = 200
	eventType    = "gatehouse_notification"
)

// Config configures a channel.
type Config struct {
	// Token is the bot token, xoxb-….
	Token string
	// Channel is the id of the channel, such as C0123456789.
	Channel string
	// BaseURL is the address of the Web API; Slack's own by default. AllowPrivate permits an
	// internal address, and plain http.
	BaseURL      string
	AllowPrivate bool
	// SigningSecret verifies Slack's HTTP requests, AppToken (xapp-…) opens Socket Mode. With
	// either, people can decide on the cards.
	SigningSecret, AppToken string
	// Transport replaces the network, for development; nil is the network.
	Transport http.RoundTripper
	// Pace is the minimum time between two posts or searches, and between two updates; 1.1 s by
	// default.
	Pace time.Duration
}

// Channel posts messages.
type Channel struct {
	config Config
	client *http.Client
	// turn is held while a message is posted. Posts and updates have separate paces, because Slack
	// limits them separately.
	turn           chan struct{}
	posts, updates pacer
}

var _ notify.Keeper = (*Channel)(nil)

// channelForm is the id of a channel; it does not match names.
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
	if c.AppToken != "" && !strings.HasPrefix(c.AppToken, "xapp-") {
		return nil, errors.New("app_token: must begin with xapp-")
	}
	if c.SigningSecret != "" && len(c.SigningSecret) < minSecret {
		return nil, errors.New("signing_secret: is too short to be Slack's")
	}
	if err := notify.CheckURL(c.BaseURL, c.AllowPrivate); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	client := notify.HTTPClient(c.AllowPrivate)
	if c.Transport != nil {
		client.Transport = c.Transport
	}
	pace := cmp.Or(c.Pace, defaultPace)
	return &Channel{
		config: c, client: client, turn: make(chan struct{}, 1), posts: pacer{pace: pace}, updates: pacer{pace: pace},
	}, nil
}

// Kind is slack.
func (*Channel) Kind() string { return "slack" }

// Trait says that the channel has one shared place, which people read.
func (*Channel) Trait() notify.Trait { return notify.Trait{} }

// Reaches matters for personal channels only.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// Decides reports whether the server receives clicks.
func (c *Channel) Decides() bool { return c.config.SigningSecret != "" || c.config.AppToken != "" }

// Send posts a message. It is a reply to the action's card if m.Card is set.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return notify.Sent{}, &notify.Refusal{Recipient: true, Err: errors.New("too many messages wait for this channel")}
	}
	if m.Attempt > 1 {
		if ref := c.find(ctx, m.ID, m.At, m.Card); ref != "" {
			return notify.Sent{Delivered: true, Ref: ref}, nil
		}
	}
	return c.post(ctx, m)
}

// Rewrite updates a posted card.
func (c *Channel) Rewrite(ctx context.Context, ref string, m *notify.Message) error {
	card := parse(ref)
	_, err := c.call(ctx, &c.updates, "chat.update", map[string]any{
		"channel": card.channel, "ts": card.ts, "text": fallback(m), "blocks": blocks(m),
	})
	return err
}

// Gone reports whether the card was deleted or can no longer be updated.
func (*Channel) Gone(err error) bool {
	var e apiError
	return errors.As(err, &e) && slices.Contains(goneErrors, string(e))
}

// place is a message's identity in Slack: channel and timestamp.
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
	answer, err := c.call(ctx, &c.posts, "chat.postMessage", arguments)
	if err != nil {
		return notify.Sent{}, err
	}
	return notify.Sent{Delivered: true, Ref: answer.Channel + "/" + answer.TS, Shown: c.Shown(m)}, nil
}

// Find searches for a message that may have been posted, although Slack's answer to the post was
// lost; "" if it is not found, or if the search fails.
func (c *Channel) Find(ctx context.Context, id string, at time.Time) string {
	return c.find(ctx, id, at, "")
}

// find is Find, but searches the replies to a card if card is not "": the history of a channel has no replies.
func (c *Channel) find(ctx context.Context, id string, at time.Time, card string) string {
	method, query := "conversations.history", url.Values{
		"channel": {c.config.Channel}, "oldest": {strconv.FormatInt(at.Add(-time.Minute).Unix(), 10)},
		"include_all_metadata": {"true"}, "limit": {strconv.Itoa(historyLimit)},
	}
	if card != "" {
		method = "conversations.replies"
		query.Set("ts", parse(card).ts)
	}
	answer, err := c.read(ctx, method, query)
	if err != nil {
		return ""
	}
	for _, posted := range answer.Messages {
		if posted.Metadata.Type == eventType && posted.Metadata.Payload.ID == id {
			return c.config.Channel + "/" + posted.TS
		}
	}
	return ""
}

// answer is an answer of Slack.
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

func (e apiError) Error() string { return "Slack answered with the error " + string(e) }

// The errors that mean that a card no longer exists or can no longer be updated, and those that mean
// that the same message will never be accepted.
var (
	goneErrors  = []string{"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"}
	finalErrors = []string{"msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format", "no_text"}
)

// call calls a method once, when the pacer p permits it; a nil p permits it at once.
func (c *Channel) call(ctx context.Context, p *pacer, method string, arguments map[string]any) (*answer, error) {
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, &notify.Refusal{Final: true, Err: err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.BaseURL+"/"+method, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return c.do(ctx, p, r)
}

func (c *Channel) read(ctx context.Context, method string, query url.Values) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.BaseURL+"/"+method+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, &c.posts, r)
}

// do sends a request once, when the pacer p permits it.
func (c *Channel) do(ctx context.Context, p *pacer, r *http.Request) (*answer, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.config.Token)
	response, err := c.client.Do(r) //nolint:gosec // the address is the operator's, and its client guards it
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
		return nil, errors.New("the answer is not JSON as Slack sends it")
	}
	if !out.OK {
		e := apiError(out.Error)
		return nil, &notify.Refusal{
			Final: slices.Contains(finalErrors, out.Error), Recipient: out.Error == "ratelimited", Err: e,
		}
	}
	return out, nil
}

// pacer spaces calls apart.
type pacer struct {
	pace time.Duration
	mu   sync.Mutex
	next time.Time
}

// wait returns when it is the caller's turn.
func (p *pacer) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	now := time.Now()
	at := now
	if p.next.After(now) {
		at = p.next
	}
	p.next = at.Add(p.pace)
	p.mu.Unlock()
	t := time.NewTimer(at.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &notify.Refusal{Recipient: true, Err: errors.New("too many messages wait for this channel")}
	}
}
