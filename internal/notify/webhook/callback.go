package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// The limits of a callback: maxVotes for the number of votes, and maxNotes for the characters of a vote's
// notes and of a failure's detail.
const (
	maxVotes = 10
	maxNotes = 1000
)

// CallbackData is the additional content of a callback.
type CallbackData struct {
	DecidedAt    *time.Time `json:"decided_at,omitempty"`
	DecidedVia   string     `json:"decided_via,omitempty"`
	Votes        []Vote     `json:"votes,omitempty"`
	SupersededBy string     `json:"superseded_by,omitempty"`
	Failure      *Failure   `json:"failure,omitempty"`
}

// Vote is one person's answer; long notes are cut.
type Vote struct {
	By       string `json:"by"`
	Decision string `json:"decision"`
	Notes    string `json:"notes,omitempty"`
}

// Failure explains why an action ended with a failure.
type Failure struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func newCallbackData(a *gatehouse.Action) CallbackData {
	c := CallbackData{DecidedAt: a.DecidedAt, DecidedVia: string(a.DecidedVia), SupersededBy: a.Superseded}
	if a.Approval != nil {
		for _, v := range a.Approval.Votes[:min(len(a.Approval.Votes), maxVotes)] {
			notes, _ := card.Truncate(card.Terminal(v.Notes), maxNotes)
			c.Votes = append(c.Votes, Vote{By: v.Name, Decision: string(v.Decision), Notes: notes})
		}
	}
	if a.Failure != nil {
		detail, _ := card.Truncate(card.Terminal(a.Failure.Detail), maxNotes)
		c.Failure = &Failure{Code: a.Failure.Code, Detail: detail}
	}
	return c
}

// CallbackConfig limits the destinations of the proposals' callbacks.
type CallbackConfig struct {
	// Hosts accept callbacks over https, at external addresses. Private hosts may have internal
	// addresses and may use plain http. Each is HOST, or HOST:PORT for that port only.
	Hosts, Private []string
	// Secret signs the callbacks; see [Config].
	Secret string
}

// Callback posts to each proposal's URL.
type Callback struct {
	hosts, private   []string
	keys             []signer
	outside, allowed *http.Client
}

// NewCallback checks the configuration.
func NewCallback(c CallbackConfig) (*Callback, error) {
	keys, err := newSigners(c.Secret)
	if err != nil {
		return nil, err
	}
	if len(c.Hosts)+len(c.Private) == 0 {
		return nil, errors.New("hosts or private_hosts is required")
	}
	ch := &Callback{keys: keys, outside: notify.HTTPClient(false), allowed: notify.HTTPClient(true)}
	for _, list := range []struct {
		from []string
		to   *[]string
		key  string
	}{{c.Hosts, &ch.hosts, "hosts"}, {c.Private, &ch.private, "private_hosts"}} {
		for _, host := range list.from {
			u, err := url.Parse("https://" + host)
			if err != nil || u.Hostname() == "" || u.Host != host {
				return nil, fmt.Errorf("%s: %s is neither HOST nor HOST:PORT", list.key, gatehouse.Quote(host))
			}
			*list.to = append(*list.to, strings.ToLower(host))
		}
	}
	return ch, nil
}

// Kind is webhook.
func (*Callback) Kind() string { return "webhook" }

// Trait says that the channel makes callbacks.
func (*Callback) Trait() notify.Trait { return notify.Trait{Every: true, Callback: true} }

// Reaches matters for personal channels only.
func (*Callback) Reaches(*gatehouse.Principal) bool { return false }

// Check refuses an address that is not allowed.
func (c *Callback) Check(cb *gatehouse.Callback) error {
	if _, err := c.client(cb.URL); err != nil {
		return gatehouse.Violations{{Pointer: "/callback/url", Detail: err.Error()}}.Err()
	}
	return nil
}

// client is the HTTP client for an address.
func (c *Callback) client(address string) (*http.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	host := strings.ToLower(u.Hostname())
	names := func(list []string) bool {
		bare := host
		if strings.Contains(host, ":") {
			bare = "[" + host + "]"
		}
		return slices.Contains(list, bare) || slices.Contains(list, net.JoinHostPort(host, port))
	}
	switch {
	case names(c.private):
		return c.allowed, nil
	case !names(c.hosts):
		return nil, errors.New("leads to a host that is not allowed: see callbacks.webhook.hosts")
	case u.Scheme != "https":
		return nil, errors.New("must be https, unless the host is one of callbacks.webhook.private_hosts")
	}
	return c.outside, nil
}

// Send posts to the proposal's own address. A failure concerns only that receiver, and not the
// channel.
func (c *Callback) Send(ctx context.Context, m *notify.Message) (notify.Sent, error) {
	fail := func(err error) (notify.Sent, error) {
		return notify.Sent{}, &notify.Refusal{Final: true, Recipient: true, Err: err}
	}
	if m.Action == nil || m.Action.Callback == nil {
		return fail(errors.New("the action has no callback"))
	}
	client, err := c.client(m.Action.Callback.URL)
	if err != nil {
		return fail(err)
	}
	content, err := json.Marshal(NewBody(m))
	if err != nil {
		return fail(err)
	}
	sent, err := post(ctx, client, c.keys, m.Action.Callback.URL, m.ID, content)
	if err == nil {
		return sent, nil
	}
	r := &notify.Refusal{Err: err}
	errors.As(err, &r)
	return sent, &notify.Refusal{Final: r.Final || r.Gone, Recipient: true, After: r.After, Err: r.Err}
}
