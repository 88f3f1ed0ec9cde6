package notify_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/sns"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

const snsTopic = "arn:aws:sns:eu-central-1:123456789012:approvals.fifo"

// fakeSNS implements Publish as documented: it checks the signature for the region and the limits
// of subject and message, and keeps one message for each deduplication id.
type fakeSNS struct {
	*httptest.Server
	mu        sync.Mutex
	published map[string]url.Values
	fail      string // the code of the error that it answers
}

func newSNS(t *testing.T) *fakeSNS {
	t.Helper()
	f := &fakeSNS{published: make(map[string]url.Values)}
	f.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		refuse := func(status int, code string) {
			rw.WriteHeader(status)
			fmt.Fprintf(rw, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code></Error></ErrorResponse>`, code)
		}
		if !signedForSNS(r, body) {
			refuse(http.StatusForbidden, "SignatureDoesNotMatch")
			return
		}
		form, err := url.ParseQuery(string(body))
		subject := form.Get("Subject")
		if err != nil || form.Get("Action") != "Publish" || form.Get("TopicArn") != snsTopic || subject == "" ||
			len(subject) >= 100 || strings.ContainsFunc(subject, func(r rune) bool { return r < ' ' || r > '~' }) ||
			len(form.Get("Message")) > 256<<10 || form.Get("MessageGroupId") == "" {
			refuse(http.StatusBadRequest, "InvalidParameter")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.fail != "" {
			refuse(http.StatusBadRequest, f.fail)
			return
		}
		id := form.Get("MessageDeduplicationId")
		f.published[id] = form
		fmt.Fprintf(rw, `<PublishResponse><PublishResult><MessageId>sns-%s</MessageId></PublishResult></PublishResponse>`, id)
	}))
	t.Cleanup(f.Close)
	return f
}

// signedForSNS signs the request again and compares the signatures.
func signedForSNS(r *http.Request, body []byte) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return false
	}
	again.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{
		AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: "session",
	}, again, hex.EncodeToString(sum[:]), "sns", "eu-central-1", at)
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization") &&
		r.Header.Get("X-Amz-Security-Token") == "session"
}

func (f *fakeSNS) fails(code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = code
}

// TestSNS publishes every message once, including hostile texts, in the message group of its action.
func TestSNS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newSNS(t)
	c, err := sns.New(sns.Config{
		Topic: snsTopic, AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: "session",
		URL: f.URL, AllowPrivate: true,
	})
	must(t, err)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{
		{Name: "topic", Tenants: []string{"default"}, Channel: c},
	}})
	a := w.Propose("walnuts", "price_change", 12)
	for _, text := range append(hostileTexts, strings.Repeat("ä€", 190)) {
		w.hostile(text)
	}
	f.fails("Throttled")
	w.send(n, "topic")
	f.fails("")
	w.Clock.Advance(time.Minute)
	w.deliver(n, "topic")
	w.Decide(a, "ana", gatehouse.Approve)
	w.send(n, "topic")
	if len(f.published) != len(hostileTexts)+3 {
		t.Errorf("%d messages", len(f.published))
	}
	var about []string
	for _, form := range f.published {
		var b webhook.Body
		if err := json.Unmarshal([]byte(form.Get("Message")), &b); err != nil {
			t.Error(err)
		}
		if form.Get("MessageGroupId") != b.Data.ActionID {
			t.Errorf("the group %s of %s", form.Get("MessageGroupId"), b.Data.ActionID)
		}
		if b.Data.ActionID == a.ID {
			about = append(about, b.Type)
		}
	}
	if len(about) != 2 {
		t.Errorf("told of the action: %v", about)
	}
	if got := w.statuses(); got[gatehouse.NotificationAccepted] != len(hostileTexts)+3 || len(got) != 1 {
		t.Errorf("statuses: %v", got)
	}
}

// TestSNSRefusals: a message that is refused because of a wrong key stays queued, and an invalid one
// fails. A topic that is a queue, and missing credentials, are refused at the start.
func TestSNSRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newSNS(t)
	config := sns.Config{
		Topic: snsTopic, AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "other", URL: f.URL, AllowPrivate: true,
	}
	c, err := sns.New(config)
	must(t, err)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{
		{Name: "topic", Tenants: []string{"default"}, Channel: c},
	}})
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "topic")
	list := w.list(gatehouse.NotificationFilter{})
	if len(list) != 1 || list[0].Status != gatehouse.NotificationQueued ||
		!strings.Contains(list[0].LastError, "SignatureDoesNotMatch") {
		t.Errorf("under a wrong key: %+v", list[0])
	}
	config.SecretAccessKey, config.SessionToken = "secret", "session"
	c, err = sns.New(config)
	must(t, err)
	n = w.notifier(notify.Config{Channels: []*notify.Configured{
		{Name: "topic", Tenants: []string{"default"}, Channel: c},
	}})
	f.fails("InvalidParameter")
	w.Clock.Advance(time.Minute)
	w.deliver(n, "topic")
	list = w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationFailed})
	if len(list) != 1 || !strings.Contains(list[0].LastError, "InvalidParameter") {
		t.Errorf("an invalid message: %v", w.statuses())
	}
	config.Topic = "arn:aws:sqs:eu-central-1:123456789012:approvals"
	if _, err := sns.New(config); err == nil || !strings.HasPrefix(err.Error(), "topic:") {
		t.Errorf("a queue for a topic: %v", err)
	}
	config.Topic, config.AccessKeyID = snsTopic, ""
	if _, err := sns.New(config); err == nil || !strings.HasPrefix(err.Error(), "access_key_id:") {
		t.Errorf("no credentials: %v", err)
	}
}
