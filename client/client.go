// Package client speaks to a Gatehouse server. A [Client] implements the
// domain's service interfaces over HTTP, so that a program does the same calls
// whether it stands inside the server or outside.
//
// Errors that the server answers are [*gatehouse.Error] with the server's code
// and context; errors of the connection are not.
//
// # Retries
//
// Reads are retried on broken connections and on busy servers. So are the
// calls that create or decide: each carries an Idempotency-Key that stays the
// same over its retries, so that the effect happens once and the answer to
// the first try is the answer to all. Drains, revocations and the like carry
// none, and are retried only when the server said that it did nothing.
package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// prefix is where the API stands below the base URL.
const prefix = "/api/v1"

// Client is safe for concurrent use.
type Client struct {
	base    string
	key     string
	token   string
	channel string
	http    *http.Client
	retry   retryPolicy
}

var (
	_ gatehouse.ActionService   = (*Client)(nil)
	_ gatehouse.DispatchService = (*Client)(nil)
	_ gatehouse.AdminService    = (*Client)(nil)
	_ gatehouse.PolicyService   = (*Client)(nil)
	_ gatehouse.AuditService    = (*Client)(nil)
)

// Option changes how a client works.
type Option func(*Client)

// WithEditToken sends the person's second secret, which deciding needs.
func WithEditToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient replaces the HTTP client. It must not limit the whole request
// to less than a long poll takes, and should not follow redirects.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithChannel names the surface that decisions come through. A server cannot know
// it, and records [gatehouse.ViaClient].
func WithChannel(via gatehouse.Channel) Option { return func(c *Client) { c.channel = string(via) } }

// WithRetries sets how often a call is tried again, 4 times by default; 0 for
// never. The pause before the first retry is about base, and doubles with each.
func WithRetries(n int, base time.Duration) Option {
	return func(c *Client) { c.retry = retryPolicy{max: n, base: base} }
}

// New makes a client for the server at baseURL, such as
// http://127.0.0.1:8080, that calls with an API key. The path of the API may
// stand at its end.
func New(baseURL, key string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("client: %q is not the URL of a server", baseURL)
	}
	c := &Client{
		base: strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(baseURL, "/"), prefix), "/"), key: key,
		retry: retryPolicy{max: 4, base: 100 * time.Millisecond},
	}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		c.http = defaultHTTP()
	}
	return c, nil
}

// defaultHTTP keeps connections for callers that decide in parallel, and never
// follows a redirect: a key goes to the server that it was given for.
func defaultHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			ResponseHeaderTimeout: gatehouse.MaxWait + 30*time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// errTooLarge is for an answer that no server of ours gives.
var errTooLarge = errors.New("client: the answer is too large")
