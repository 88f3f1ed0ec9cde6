// Package webhook sends messages to an HTTP endpoint, signed according to Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com/).
package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// The specification's limits for a secret, in bytes.
const (
	minSecret = 24
	maxSecret = 64
)

// Config configures a channel.
type Config struct {
	// URL receives the POST requests.
	URL string
	// Secret is whsec_ and the base64 of 24 to 64 bytes, which signs as v1, or whsk_ and the base64
	// of an ed25519 private key (32 bytes of seed, or seed and public key), which signs as v1a.
	// With several secrets, one per line, each signs.
	Secret string
	// AllowPrivate permits internal addresses, such as 10.0.0.1, and plain http.
	AllowPrivate bool
}

// Channel sends webhooks.
type Channel struct {
	url    string
	keys   []signer
	client *http.Client
}

// signer makes one signature.
type signer func(content []byte) string

// New checks the configuration.
func New(c Config) (*Channel, error) {
	if err := notify.CheckURL(c.URL, c.AllowPrivate); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	keys, err := newSigners(c.Secret)
	if err != nil {
		return nil, err
	}
	return &Channel{url: c.URL, keys: keys, client: notify.HTTPClient(c.AllowPrivate)}, nil
}

// newSigners makes the signers of secrets, one per line.
func newSigners(secrets string) (keys []signer, err error) {
	for line := range strings.Lines(secrets) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, err := newSigner(line)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("secret: is required")
	}
	return keys, nil
}

// newSigner makes a signer of one secret.
func newSigner(secret string) (signer, error) {
	prefix, encoded, _ := strings.Cut(secret, "_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case prefix == "whsec" && err == nil && len(key) >= minSecret && len(key) <= maxSecret:
		return func(content []byte) string {
			mac := hmac.New(sha256.New, key)
			mac.Write(content)
			return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		}, nil
	case prefix == "whsk" && err == nil && (len(key) == ed25519.SeedSize || len(key) == ed25519.PrivateKeySize):
		private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
		if len(key) == ed25519.PrivateKeySize && !bytes.Equal(key, private) {
			return nil, errors.New("the public key in a whsk_ secret does not belong to its seed")
		}
		return func(content []byte) string {
			return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(private, content))
		}, nil
	}
	return nil, errors.New("must be whsec_ and the base64 of 24 to 64 bytes, or whsk_ and that of an ed25519 key")
}

// Kind is webhook.
func (*Channel) Kind() string { return "webhook" }

// Trait says that a program gets every message at one place.
func (*Channel) Trait() notify.Trait { return notify.Trait{Every: true} }

// Reaches matters for personal channels only.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// Body is the posted body.
type Body struct {
	// Type is one of the values in types, such as approval.asked; for a callback, action.decided or
	// action.finished.
	Type string `json:"type"`
	// Timestamp is the time when the message was queued.
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data describes one action, without its payload: a receiver can read the action with an API key.
type Data struct {
	Tenant   string `json:"tenant"`
	ActionID string `json:"action_id,omitempty"`
	// Event is the type of the audit log's entry, such as hitl.approved.
	Event      string `json:"event,omitempty"`
	ActionType string `json:"action_type,omitempty"`
	RiskLevel  int    `json:"risk_level,omitempty"`
	// Status is the action's status at the time of the attempt; for a callback, the status that it
	// reports.
	Status     string     `json:"status,omitempty"`
	Digest     string     `json:"digest,omitempty"`
	ApprovalID string     `json:"approval_id,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	DecidedBy  string     `json:"decided_by,omitempty"`
	Summary    string     `json:"summary"`
	URL        string     `json:"url,omitempty"`
	// CallbackData is the additional content of a callback.
	CallbackData
}

// types maps the kinds of messages to the types of bodies.
var types = map[gatehouse.NotificationKind]string{
	gatehouse.NotifyAsked: "approval.asked", gatehouse.NotifyDecided: "approval.decided",
	gatehouse.NotifyEscalated: "approval.escalated", gatehouse.NotifyReminded: "approval.reminded",
	gatehouse.NotifyExpired:    "approval.expired",
	gatehouse.NotifyDeadLetter: "push.dead_letter", gatehouse.NotifyUnknown: "push.unknown",
	gatehouse.NotifyChannelFailing: "channel.failing", gatehouse.NotifyTest: "gatehouse.test",
	gatehouse.NotifyCallbackDecided: "action.decided", gatehouse.NotifyCallbackFinished: "action.finished",
}

// NewBody is the body of a message.
func NewBody(m *notify.Message) Body {
	return Body{Type: types[m.Kind], Timestamp: m.At, Data: NewData(m)}
}

// NewData describes the action of a message.
func NewData(m *notify.Message) Data {
	d := Data{Tenant: m.Tenant, Event: m.Event, Summary: m.Heading, URL: m.Link}
	if a := m.Action; a != nil {
		d.ActionID, d.ActionType, d.RiskLevel = a.ID, a.ActionType, int(a.RiskLevel)
		d.Status, d.Digest, d.DecidedBy = string(a.Status), string(a.Digest), a.DecidedBy
		d.Summary = m.Sentence
		if a.Approval != nil {
			d.ApprovalID, d.ExpiresAt = a.Approval.ID, &a.Approval.ExpiresAt
		}
		if m.Reached != "" {
			d.Status, d.CallbackData = string(m.Reached), newCallbackData(a)
		}
	}
	return d
}

// Send posts one message. The webhook-id is the same in every attempt.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	content, err := json.Marshal(NewBody(m))
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Err: err}
	}
	return post(ctx, c.client, c.keys, c.url, m.ID, content)
}

// post sends one signed request.
func post(
	ctx context.Context, client *http.Client, keys []signer, to, id string, content []byte,
) (notify.Sent, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(content))
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Err: err}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gatehouse")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", at)
	req.Header.Set("webhook-signature", sign(keys, id, at, content))
	answer, err := client.Do(req)
	if err != nil {
		return notify.Sent{}, notify.WithoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode/100 == 2 {
		return notify.Sent{Delivered: true}, nil
	}
	return notify.Sent{}, &notify.Refusal{
		Gone: answer.StatusCode == http.StatusGone, After: notify.RetryAfter(answer.Header, time.Now()),
		Err: fmt.Errorf("the endpoint answered %d", answer.StatusCode),
	}
}

// sign returns the signatures with all secrets.
func sign(keys []signer, id, at string, content []byte) string {
	signed := append([]byte(id+"."+at+"."), content...)
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = key(signed)
	}
	return strings.Join(list, " ")
}
