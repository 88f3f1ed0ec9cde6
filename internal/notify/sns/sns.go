// Package sns publishes messages to a topic of Amazon SNS.
// https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
package sns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

// The limits of SNS: for a mail's subject in ASCII characters, for the message in bytes.
const (
	maxSubject = 99
	maxMessage = 256 << 10
)

// Config configures a channel.
type Config struct {
	// Topic is the ARN of a standard or FIFO topic; requests go to its region.
	Topic string
	// The credentials of an identity with the right to sns:Publish to the topic. SessionToken is
	// for temporary credentials.
	AccessKeyID, SecretAccessKey, SessionToken string
	// URL replaces https://sns.REGION.amazonaws.com.
	URL string
	// AllowPrivate permits an internal address, and plain http.
	AllowPrivate bool
}

// Channel publishes messages.
type Channel struct {
	topic, region, url string
	credentials        aws.Credentials
	signer             *v4.Signer
	client             *http.Client
}

// topicForm captures the region and the name.
var topicForm = regexp.MustCompile(`^arn:aws[a-z-]*:sns:([a-z0-9-]{4,30}):[0-9]{12}:([A-Za-z0-9_-]{1,256}(?:\.fifo)?)$`)

// New checks the configuration.
func New(c Config) (*Channel, error) {
	parts := topicForm.FindStringSubmatch(c.Topic)
	if parts == nil {
		return nil, errors.New("topic: must be the ARN of a topic, such as arn:aws:sns:eu-central-1:123456789012:approvals")
	}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return nil, errors.New("access_key_id: is required, with secret_access_key")
	}
	if c.URL == "" {
		c.URL = "https://sns." + parts[1] + ".amazonaws.com"
		if strings.HasPrefix(parts[1], "cn-") { // the partition of China has a domain of its own
			c.URL += ".cn"
		}
	}
	if err := notify.CheckURL(c.URL, c.AllowPrivate); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return &Channel{
		topic: c.Topic, region: parts[1], url: strings.TrimSuffix(c.URL, "/") + "/", signer: v4.NewSigner(),
		client: notify.HTTPClient(c.AllowPrivate),
		credentials: aws.Credentials{
			AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken,
		},
	}, nil
}

// Kind is sns.
func (*Channel) Kind() string { return "sns" }

// Trait says that the channel has one shared place, which programs may read: every message is
// published.
func (*Channel) Trait() notify.Trait { return notify.Trait{Every: true} }

// Reaches matters for personal channels only.
func (*Channel) Reaches(*gatehouse.Principal) bool { return false }

// Send publishes one message. SNS does not report the delivery to its subscribers, so
// Sent.Delivered stays false. A FIFO topic drops a second message with the same id.
func (c *Channel) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	form, err := c.form(m)
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(form))
	if err != nil {
		return notify.Sent{}, &notify.Refusal{Final: true, Err: err}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sum := sha256.Sum256([]byte(form))
	err = c.signer.SignHTTP(ctx, c.credentials, req, hex.EncodeToString(sum[:]), "sns", c.region, time.Now().UTC())
	if err != nil {
		return notify.Sent{}, fmt.Errorf("the request cannot be signed: %w", err)
	}
	answer, err := c.client.Do(req)
	if err != nil {
		return notify.Sent{}, notify.WithoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return notify.Sent{}, errors.New("the response of SNS is incomplete")
	}
	if answer.StatusCode != http.StatusOK {
		return notify.Sent{}, failure(answer, body)
	}
	var published struct {
		ID string `xml:"PublishResult>MessageId"`
	}
	if err := xml.Unmarshal(body, &published); err != nil || published.ID == "" {
		return notify.Sent{}, errors.New("the answer has no message id")
	}
	return notify.Sent{Ref: published.ID}, nil
}

// form is the body of the request. The published message is the JSON body of a webhook; its subject is a text.
func (c *Channel) form(m *notify.Message) (string, error) {
	content, err := json.Marshal(webhook.NewBody(m))
	if err != nil {
		return "", err
	}
	if len(content) > maxMessage {
		return "", errors.New("the message is too large for SNS")
	}
	v := url.Values{
		"Action": {"Publish"}, "Version": {"2010-03-31"}, "TopicArn": {c.topic}, "Message": {string(content)},
		"Subject":                                     {subject(m.Subject)},
		"MessageAttributes.entry.1.Name":              {"kind"},
		"MessageAttributes.entry.1.Value.DataType":    {"String"},
		"MessageAttributes.entry.1.Value.StringValue": {string(m.Kind)},
	}
	if strings.HasSuffix(c.topic, ".fifo") {
		group := m.Tenant
		if m.Action != nil {
			group = m.Action.ID // messages about one action arrive in order
		}
		v.Set("MessageGroupId", group)
		v.Set("MessageDeduplicationId", m.ID)
	}
	return v.Encode(), nil
}

// subject converts a text to SNS's rules for subjects: ASCII that starts with a letter, digit or
// punctuation mark, without line breaks.
func subject(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r > '~' {
			r = '?'
		}
		b.WriteRune(r)
	}
	text := strings.TrimSpace(b.String())
	return strings.TrimSpace(text[:min(len(text), maxSubject)])
}

// failure says what to do next, by the error's code.
// https://docs.aws.amazon.com/sns/latest/api/API_Publish.html#API_Publish_Errors
func failure(answer *http.Response, body []byte) error {
	var e struct {
		Code string `xml:"Error>Code"`
	}
	_ = xml.Unmarshal(body, &e) // without a code, the status decides
	r := &notify.Refusal{
		After: notify.RetryAfter(answer.Header, time.Now()),
		Err:   fmt.Errorf("SNS answered %d %s", answer.StatusCode, gatehouse.Quote(e.Code)),
	}
	switch e.Code {
	case "Throttling", "ThrottlingException", "Throttled", "KMSThrottling":
		r.Recipient = true
	case "InvalidParameter", "InvalidParameterValue", "ValidationError":
		r.Final = true
	}
	return r
}
