// Package webpush sends notifications to browsers by Web Push: RFC 8030, encrypted according to RFC
// 8291, and signed according to RFC 8292.
package webpush

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// Config configures a channel.
type Config struct {
	// Contact is where the operators of push services can reach the operator of Gatehouse: mailto:
	// and an address, or an https URL.
	Contact string
	// AllowPrivate permits push services at internal addresses.
	AllowPrivate bool
	// CA holds PEM certificates that are trusted in addition to the system's; "" for none.
	CA string
	// Key returns the VAPID key of a tenant, which signs the requests to push services.
	Key func(ctx context.Context, tenant string) (*ecdsa.PrivateKey, error)
}

// Channel sends to the devices of its recipients.
type Channel struct {
	config Config
	client *http.Client
}

// New checks the configuration.
func New(c Config) (*Channel, error) {
	if err := checkContact(c.Contact); err != nil {
		return nil, fmt.Errorf("contact: %w", err)
	}
	client, err := notify.HTTPClientWith(c.AllowPrivate, c.CA)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	return &Channel{config: c, client: client}, nil
}

// checkContact refuses a contact that push services refuse: Apple answers 403 to a contact whose host
// is not public.
func checkContact(contact string) error {
	host := ""
	if address, ok := strings.CutPrefix(contact, "mailto:"); ok {
		if a, err := mail.ParseAddress(address); err == nil && a.Address == address {
			host = address[strings.LastIndex(address, "@")+1:]
		}
	} else if u, err := url.Parse(contact); err == nil && u.Scheme == "https" {
		host = u.Hostname()
	}
	if host == "" {
		return errors.New("must be mailto: and an address, or an https URL")
	}
	for _, end := range []string{"localhost", "local", "invalid", "internal"} {
		if host == end || strings.HasSuffix(host, "."+end) {
			return fmt.Errorf("must not use the host %s: push services refuse it", host)
		}
	}
	return nil
}

// Kind is webpush.
func (*Channel) Kind() string { return "webpush" }

// Trait says that the channel sends to the devices of each recipient.
func (*Channel) Trait() notify.Trait { return notify.Trait{Personal: true, Devices: true} }

// Reaches is false for everybody: the store, and not the channel, knows the devices.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// CheckEndpoint refuses an endpoint without https. Without AllowPrivate, it also refuses an IP address, a host
// name without a dot, and a port other than 443; the HTTP client then checks the resolved address of each request.
func (c *Channel) CheckEndpoint(endpoint string) error {
	if err := notify.CheckURL(endpoint, false); err != nil {
		return err
	}
	u, err := url.Parse(endpoint)
	if err != nil || c.config.AllowPrivate {
		return err
	}
	if p := u.Port(); p != "" && p != "443" {
		return errors.New("must have the port 443")
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if net.ParseIP(host) != nil || !strings.Contains(host, ".") {
		return errors.New("must be at a public host name, unless allow_private is set")
	}
	return nil
}

// sendTime limits the calls of one message, which run at the same time, one for each device.
const sendTime = 15 * time.Second

// Send sends a message to the devices that do not have it yet.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	key, err := c.config.Key(ctx, m.Tenant)
	if err != nil {
		return notify.Sent{}, err
	}
	content, err := payload(m)
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Recipient: true, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	outcomes := make([]notify.DeviceOutcome, len(m.Devices))
	var work sync.WaitGroup
	for i, d := range m.Devices {
		outcomes[i].Device = d
		if d.LastMessage == m.ID {
			continue
		}
		work.Go(func() { outcomes[i].Err = c.post(ctx, key, m, d, content) })
	}
	work.Wait()
	return notify.Sent{Devices: outcomes}, worst(outcomes)
}

// worst combines the outcomes of a message: it returns an error that can be retried if there is one, otherwise a
// final error if no device has accepted the message, otherwise nil. Endpoints come from browsers and may be false,
// so each error is a Recipient error, which does not count against the channel.
func worst(outcomes []notify.DeviceOutcome) error {
	var final *notify.Refusal
	again := &notify.Refusal{Recipient: true}
	taken := false
	for _, o := range outcomes {
		r := new(notify.Refusal)
		switch {
		case o.Err == nil:
			taken = true
		case errors.As(o.Err, &r) && (r.Final || r.Gone):
			final = &notify.Refusal{Final: true, Recipient: true, Err: o.Err}
		default:
			again.Err, again.After = o.Err, max(again.After, r.After)
		}
	}
	switch {
	case again.Err != nil:
		return again
	case final != nil && !taken:
		return final
	}
	return nil
}

// post sends a message to one device.
func (c *Channel) post(
	ctx context.Context, key *ecdsa.PrivateKey, m *notify.Message, d *gatehouse.Device, content []byte,
) error {
	body, err := encrypt(content, &d.Subscription)
	if err != nil {
		return &notify.Refusal{Final: true, Err: err}
	}
	now := time.Now()
	credentials, err := authorization(key, d.Endpoint, c.config.Contact, now)
	if err != nil {
		return &notify.Refusal{Final: true, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Endpoint, bytes.NewReader(body))
	if err != nil {
		return &notify.Refusal{Final: true, Err: notify.WithoutURL(err)}
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-Encoding", "aes128gcm")
	req.Header.Set("Authorization", credentials)
	req.Header.Set("TTL", strconv.Itoa(int(life(m)/time.Second)))
	req.Header.Set("Urgency", urgency(m))
	if t := topic(m); t != "" {
		req.Header.Set("Topic", t)
	}
	answer, err := c.client.Do(req)
	if err != nil {
		// The recipient sees this error. The full error could reveal details of the internal network.
		return fmt.Errorf("the push service %s cannot be reached", d.Service)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	switch status := answer.StatusCode; {
	case status/100 == 2:
		return nil
	case status == http.StatusNotFound || status == http.StatusGone:
		return &notify.Refusal{
			Gone: true, Err: errors.New("the subscription of the device has ended, and the device was removed"),
		}
	default:
		later := status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
		return &notify.Refusal{
			// Another 4xx is about the message or the key: the same message will not be accepted.
			Final: status/100 == 3 || status/100 == 4 && !later,
			After: notify.RetryAfter(answer.Header, now), Err: fmt.Errorf("the push service answered %d", status),
		}
	}
}

// The times for which a push service keeps a message for a device that is off (the header TTL). A message that
// asks for a decision is kept until its approval expires, but at least minLife and at most maxLife.
const (
	minLife   = time.Minute
	otherLife = 24 * time.Hour
	maxLife   = 28 * 24 * time.Hour // FCM keeps a message no longer
)

func life(m *notify.Message) time.Duration {
	switch {
	case m.Kind == gatehouse.NotifyTest:
		return minLife
	case m.Kind.Asks() && m.Action != nil && m.Action.Approval != nil:
		return min(max(m.Action.Approval.ExpiresAt.Sub(m.AsOf), minLife), maxLife)
	}
	return otherLife
}

// urgency says whether a message is worth waking a phone (RFC 8030, section 5.3).
func urgency(m *notify.Message) string {
	switch {
	case m.Kind.Asks(), m.Kind == gatehouse.NotifyTest, m.Kind == gatehouse.NotifyDeadLetter,
		m.Kind == gatehouse.NotifyUnknown:
		return "high"
	case m.Kind == gatehouse.NotifyDigest:
		return "low"
	}
	return "normal"
}

// topic is a message's Topic header, "" for none: a message replaces an undelivered message with the
// same topic (RFC 8030, section 5.4). Push services see the topic, so it is a hash.
func topic(m *notify.Message) string {
	var subject string
	switch {
	case m.Action != nil:
		subject = m.Action.ID
	case m.Kind == gatehouse.NotifyDigest:
		subject = string(m.Kind)
	default:
		return ""
	}
	sum := sha256.Sum256([]byte("gatehouse topic\x00" + m.Tenant + "\x00" + subject))
	return base64.RawURLEncoding.EncodeToString(sum[:24]) // 32 characters, the most that are allowed
}

// The limits of the texts, in characters. Systems show about 50 of a title and 150 of a body.
const (
	maxTitle = 120
	maxBody  = 400
)

// notification is the message that the browser shows. The format is that of Declarative Web Push
// (https://www.w3.org/TR/push-api/#declarative-push-message), which some browsers show without the
// service worker.
type notification struct {
	Title    string `json:"title"`
	Body     string `json:"body,omitempty"`
	Navigate string `json:"navigate,omitempty"`
	Tag      string `json:"tag"`
}

func payload(m *notify.Message) ([]byte, error) {
	n := notification{Navigate: m.Link, Tag: m.ID}
	if t := topic(m); t != "" {
		n.Tag = t
	}
	n.Title, n.Body = cut(m.Heading, maxTitle), cut(body(m), maxBody)
	return json.Marshal(struct {
		Version      int          `json:"web_push"`
		Notification notification `json:"notification"`
	}{8030, n})
}

func cut(text string, limit int) string {
	shown, hidden := card.Truncate(text, limit)
	if hidden > 0 {
		shown += "…"
	}
	return shown
}

// body is the text of the notification: without an action, the facts; otherwise the sentence and, if the message
// asks for a decision, the risk and the time that is left.
func body(m *notify.Message) string {
	if m.Action == nil {
		lines := make([]string, len(m.Facts))
		for i, f := range m.Facts {
			lines[i] = f.Label + ": " + f.Value
		}
		return strings.Join(lines, "\n")
	}
	text := m.Sentence
	if !m.Kind.Asks() {
		return text
	}
	for _, f := range m.Facts {
		if f.Label == "Risk" || f.Label == notify.TimeLeft {
			text += "\n" + f.Label + ": " + f.Value
		}
	}
	return text
}
