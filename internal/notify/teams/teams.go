// Package teams posts messages through a Workflows webhook of Microsoft Teams.
package teams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// maxBody is below the limit of Teams, in bytes.
const maxBody = 26 << 10

// Config configures a channel.
type Config struct {
	// URL is the address of the workflow. It is a secret, because it permits posting.
	URL string
	// AllowPrivate permits an internal address, and plain http.
	AllowPrivate bool
}

// Channel posts messages.
type Channel struct {
	url    string
	client *http.Client
}

// New checks the configuration.
func New(c Config) (*Channel, error) {
	if err := notify.CheckURL(c.URL, c.AllowPrivate); err != nil {
		return nil, fmt.Errorf("url_secret: %w", err)
	}
	return &Channel{url: c.URL, client: notify.HTTPClient(c.AllowPrivate)}, nil
}

// Kind is teams.
func (*Channel) Kind() string { return "teams" }

// Trait says that people read the messages at one shared place, and that the channel is tested weekly: a workflow
// stops unnoticed when the account of the person who made it is closed.
func (*Channel) Trait() notify.Trait { return notify.Trait{Weekly: true} }

// Reaches matters for personal channels only.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// Send posts one card. The workflow answers before it posts the card, so a message is never reported as
// delivered, only as accepted.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	body, err := json.Marshal(envelope(m))
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Err: err}
	}
	if len(body) > maxBody {
		return notify.Sent{}, &notify.Refusal{
			Final: true, Recipient: true, Err: errors.New("the card is too large for Teams"),
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return notify.Sent{}, errors.New("the address cannot be parsed")
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(r)
	if err != nil {
		return notify.Sent{}, notify.WithoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode/100 == 2 {
		return notify.Sent{}, nil
	}
	return notify.Sent{}, &notify.Refusal{
		Recipient: answer.StatusCode == http.StatusTooManyRequests, After: notify.RetryAfter(answer.Header, time.Now()),
		Err: fmt.Errorf("the workflow answered %d", answer.StatusCode),
	}
}

// envelope is the body for a workflow: one Adaptive Card.
func envelope(m *notify.Message) any {
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": adaptive(m),
	}}}
}

// adaptive is the card. Its texts are text runs, in which no markup is interpreted.
func adaptive(m *notify.Message) any {
	heading := run(m.Heading)
	heading["weight"], heading["size"] = "Bolder", "Medium"
	body := []any{rich(heading)}
	if m.Sentence != "" {
		body = append(body, rich(run(m.Sentence)))
	}
	for _, line := range m.Diff {
		r := run(line)
		r["fontType"] = "Monospace"
		body = append(body, rich(r))
	}
	if m.DiffMore > 0 {
		body = append(body, rich(run(fmt.Sprintf("and %d more", m.DiffMore))))
	}
	for _, f := range m.Facts {
		label := run(f.Label + ": ")
		label["weight"] = "Bolder"
		body = append(body, rich(label, run(f.Value)))
	}
	asOf := run("State as of " + m.AsOf.UTC().Format(notify.TimeLayout) + ". Teams messages are not updated.")
	asOf["isSubtle"], asOf["size"] = true, "Small"
	body = append(body, rich(asOf))
	card := map[string]any{
		"type": "AdaptiveCard", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "version": "1.4",
		"body": body,
	}
	if m.Link != "" {
		card["actions"] = []any{map[string]any{"type": "Action.OpenUrl", "title": "Open in Gatehouse", "url": m.Link}}
	}
	return card
}

func run(text string) map[string]any { return map[string]any{"type": "TextRun", "text": text} }

func rich(inlines ...map[string]any) any {
	return map[string]any{"type": "RichTextBlock", "inlines": inlines}
}
