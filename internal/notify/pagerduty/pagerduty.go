// Package pagerduty opens incidents through PagerDuty's Events API v2, and resolves the incidents
// of settled questions. https://developer.pagerduty.com/docs/events-api-v2-overview
package pagerduty

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

const (
	defaultURL = "https://events.pagerduty.com/v2/enqueue"
	// maxSummary is PagerDuty's limit, in characters.
	maxSummary = 1024
)

// Config configures a channel.
type Config struct {
	// RoutingKey is the secret integration key of a service: 32 characters.
	RoutingKey string
	// URL replaces PagerDuty's default address, for example by that of its EU region.
	URL string
	// AllowPrivate permits an internal address, and plain http.
	AllowPrivate bool
}

// Channel sends events.
type Channel struct {
	url, routingKey string
	client          *http.Client
}

// New checks the configuration.
func New(c Config) (*Channel, error) {
	if c.URL == "" {
		c.URL = defaultURL
	}
	if err := notify.CheckURL(c.URL, c.AllowPrivate); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if len(c.RoutingKey) != 32 {
		return nil, errors.New("routing_key: must be the 32 characters of an integration key")
	}
	return &Channel{url: c.URL, routingKey: c.RoutingKey, client: notify.HTTPClient(c.AllowPrivate)}, nil
}

// Kind is pagerduty.
func (*Channel) Kind() string { return "pagerduty" }

// Trait says that the channel has one shared recipient: the person on call.
func (*Channel) Trait() notify.Trait { return notify.Trait{} }

// Reaches matters for personal channels only.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// event is the body of a request.
type event struct {
	RoutingKey string `json:"routing_key"`
	// Action is trigger or resolve.
	Action string `json:"event_action"`
	// DedupKey identifies the incident: a repeated trigger opens only one.
	DedupKey string   `json:"dedup_key"`
	Payload  *payload `json:"payload,omitempty"`
	Links    []link   `json:"links,omitempty"`
	Client   string   `json:"client,omitempty"`
}

type payload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp time.Time         `json:"timestamp"`
	Details   map[string]string `json:"custom_details,omitempty"`
}

type link struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// Send opens an incident. A question that is settled or has expired resolves the incident that it
// opened. A test opens one and resolves it at once.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	e := c.event(m)
	if err := c.post(ctx, e); err != nil {
		return notify.Sent{}, err
	}
	if m.Kind == gatehouse.NotifyTest {
		if err := c.post(ctx, event{RoutingKey: c.routingKey, Action: "resolve", DedupKey: e.DedupKey}); err != nil {
			return notify.Sent{}, err
		}
	}
	return notify.Sent{Ref: e.DedupKey}, nil
}

func (c *Channel) event(m *notify.Message) event {
	e := event{RoutingKey: c.routingKey, Action: "trigger", DedupKey: dedupKey(m)}
	if m.Kind == gatehouse.NotifyDecided || m.Kind == gatehouse.NotifyExpired {
		e.Action = "resolve"
		return e
	}
	e.Client = "Gatehouse"
	e.Payload = &payload{
		Summary: summary(m), Source: "gatehouse/" + m.Tenant, Severity: severity(m), Timestamp: m.At.UTC(),
		Details: make(map[string]string, len(m.Facts)),
	}
	for _, f := range m.Facts {
		e.Payload.Details[f.Label] = f.Value
	}
	if m.Link != "" {
		e.Links = []link{{m.Link, "Open in Gatehouse"}}
	}
	return e
}

// dedupKey identifies the incident of a question, of a push, or of the message itself.
func dedupKey(m *notify.Message) string {
	if m.Action == nil {
		return "gatehouse/" + m.Tenant + "/" + m.ID
	}
	about := "approval"
	if m.Kind == gatehouse.NotifyDeadLetter || m.Kind == gatehouse.NotifyUnknown {
		about = "push"
	}
	return "gatehouse/" + m.Tenant + "/" + m.Action.ID + "/" + about
}

func summary(m *notify.Message) string {
	text := m.Heading
	if m.Sentence != "" {
		text += ": " + m.Sentence
	}
	if r := []rune(text); len(r) > maxSummary {
		text = string(r[:maxSummary-1]) + "…"
	}
	return text
}

// severity follows from the kind of a failure, and from the action's risk level for a question. Escalations and
// reminders count as questions, because each may be the event that opens the incident. Anything else is info.
func severity(m *notify.Message) string {
	switch m.Kind {
	case gatehouse.NotifyUnknown:
		return "critical"
	case gatehouse.NotifyDeadLetter, gatehouse.NotifyChannelFailing:
		return "error"
	case gatehouse.NotifyAsked, gatehouse.NotifyEscalated, gatehouse.NotifyReminded:
		switch {
		case m.Action.RiskLevel >= 5:
			return "critical"
		case m.Action.RiskLevel == 4:
			return "error"
		case m.Action.RiskLevel == 3:
			return "warning"
		}
	}
	return "info"
}

// post sends one event. PagerDuty answers 202 before anybody is paged, so a message is at most
// accepted.
func (c *Channel) post(ctx context.Context, e event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return &notify.Refusal{Final: true, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return &notify.Refusal{Final: true, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(req)
	if err != nil {
		return notify.WithoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode == http.StatusAccepted {
		return nil
	}
	throttled := answer.StatusCode == http.StatusTooManyRequests
	r := &notify.Refusal{
		// A 400 is about the event or the key: PagerDuty will never accept the same event.
		Final: answer.StatusCode == http.StatusBadRequest, Recipient: throttled,
		After: notify.RetryAfter(answer.Header, time.Now()), Err: fmt.Errorf("PagerDuty answered %d", answer.StatusCode),
	}
	if throttled {
		r.After = max(r.After, time.Minute) // a shorter wait does not help
	}
	return r
}
