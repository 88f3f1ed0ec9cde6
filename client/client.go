// Package client calls a Gatehouse server. A [Client] implements the domain's service interfaces
// over HTTP, so a program makes the same calls inside the server and outside of it.
//
// Errors that the server returns are [*gatehouse.Error] with the server's code and context;
// connection errors are not.
//
// # Retries
//
// The client retries reads after connection errors and when the server is busy. It does the same
// with calls that create or decide: each carries an Idempotency-Key that stays the same over all
// tries, so the effect happens once and every try gets the first answer. Other calls, such as drains and
// changes of principals, carry no Idempotency-Key, and are retried only if the server said that it did nothing.
//
// Waits outlast restarts and outages of the server: they continue until their own time is over.
package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// prefix is the path of the API below the base URL.
	prefix = "/api/v1"
	// slowest is the longest time that the server takes for an answer: that of a check of the store. It
	// is longer than [gatehouse.MaxWait].
	slowest = 90 * time.Second
	// connectWithin limits connecting to the server, and then the TLS handshake.
	connectWithin = 10 * time.Second
)

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

// Option configures a client.
type Option func(*Client)

// WithEditToken sends the person's second secret, which a decision requires.
func WithEditToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient replaces the HTTP client. Its time limit must be longer than a long poll, and longer
// than 90 s if the program checks the store. It should not follow redirects.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithChannel names the surface on which people decide. The server cannot verify it, and records
// [gatehouse.ViaClient].
func WithChannel(via gatehouse.Channel) Option { return func(c *Client) { c.channel = string(via) } }

// WithRetries sets how often a call is retried, 4 times by default; 0 for never. The pause before
// the first retry is about base, and doubles with each further one.
func WithRetries(n int, base time.Duration) Option {
	return func(c *Client) { c.retry = retryPolicy{max: n, base: base} }
}

// New makes a client for the server at baseURL, such as http://127.0.0.1:8080, that authenticates
// with an API key. baseURL may end in the path of the API.
func New(baseURL, key string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("client: %q is not the URL of a server", baseURL)
	}
	c := &Client{
		base: strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(baseURL, "/"), prefix), "/"), key: key,
		retry: retryPolicy{max: 4, base: defaultBase},
	}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		c.http = defaultHTTP()
	}
	return c, nil
}

// defaultHTTP keeps connections open for callers that decide in parallel. It never follows a
// redirect, so the key is sent only to its own server.
func defaultHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			DialContext: (&net.Dialer{Timeout: connectWithin}).DialContext, TLSHandshakeTimeout: connectWithin,
			ResponseHeaderTimeout: slowest + 30*time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// errTooLarge is the error of an answer that is larger than any answer of Gatehouse.
var errTooLarge = errors.New("client: the answer is too large")
