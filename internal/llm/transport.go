package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/gatehouse-dev/gatehouse"
)

// DefaultTimeout limits a request if the configuration does not.
const DefaultTimeout = 2 * time.Minute

// endpoint is the address of a provider, with the HTTP client and headers.
type endpoint struct {
	url    string
	header http.Header // with the key
	// requestID is the name of the response header with the request's id.
	requestID string
	timeout   time.Duration
	client    *http.Client
	redactor  *strings.Replacer
	now       func() time.Time
}

func newEndpoint(c Config, path string) *endpoint {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !c.AllowPrivate {
		// Control gets the dialed address, after name resolution.
		dialer.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	return &endpoint{
		url: strings.TrimSuffix(c.BaseURL, "/") + path,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"},
			"User-Agent": {"gatehouse"}},
		timeout:  timeout,
		redactor: newRedactor(c.Key),
		now:      time.Now,
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:                  nil,
				DialContext:            dialer.DialContext,
				ForceAttemptHTTP2:      true,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    10 * time.Second,
				MaxIdleConnsPerHost:    16,
				IdleConnTimeout:        time.Minute,
				MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// newRedactor returns a replacer that removes a key from a text: as it is, URL-escaped and JSON-escaped.
func newRedactor(key string) *strings.Replacer {
	if len(key) < 4 { // a short key would match ordinary text
		return strings.NewReplacer()
	}
	spellings := []string{key, url.QueryEscape(key), url.PathEscape(key)}
	quoted := string(gatehouse.StringJSON(key))
	spellings = append(spellings, quoted[1:len(quoted)-1])
	slices.Sort(spellings)
	var pairs []string
	for _, s := range slices.Compact(spellings) {
		pairs = append(pairs, s, "[redacted]")
	}
	return strings.NewReplacer(pairs...)
}

// post sends one request and decodes a 200 into answer. failed parses the body of any other
// status. The error is an *Error.
func (e *endpoint) post(
	ctx context.Context, body, answer any, failed func([]byte) failure,
) (requestID string, err error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return "", &Error{Code: CodeInvalid, Detail: "the request cannot be written as JSON", cause: err}
	}
	if len(sent) > MaxBytes {
		return "", &Error{Code: CodeTooLarge, Detail: "the request is larger than 4 MiB"}
	}
	own, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(own, http.MethodPost, e.url, bytes.NewReader(sent))
	if err != nil {
		return "", &Error{Code: CodeInvalid, Detail: "the base URL cannot be used", cause: err}
	}
	req.Header = e.header.Clone()
	res, err := e.client.Do(req)
	if err != nil {
		return "", network(ctx, own, err)
	}
	defer res.Body.Close()
	requestID = plain(e.redactor, res.Header.Get(e.requestID))
	read, err := io.ReadAll(io.LimitReader(res.Body, MaxBytes+1))
	switch {
	case res.StatusCode != http.StatusOK:
		// The status counts even if reading the body fails.
		f := failed(read)
		f.message = plain(e.redactor, f.message)
		failure := classify(res.StatusCode, res.Header, f, e.now())
		failure.RequestID = requestID
		return requestID, failure
	case err != nil:
		failure := network(ctx, own, err)
		failure.Status, failure.RequestID = res.StatusCode, requestID
		return requestID, failure
	}
	bad := func(detail string, cause error) (string, error) {
		return requestID,
			&Error{Code: CodeBadAnswer, Detail: detail, Status: res.StatusCode, RequestID: requestID, cause: cause}
	}
	if len(read) > MaxBytes {
		return bad("the answer is larger than 4 MiB", nil)
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return bad("the answer is not JSON; is the base URL right?", err)
	}
	if err := json.Unmarshal(read, answer); err != nil {
		return bad("the answer does not follow the provider's protocol", err)
	}
	return requestID, nil
}

// network makes an error of a request without a complete answer. parent is the caller's context,
// own is the one with the timeout.
func network(parent, own context.Context, err error) *Error {
	e := &Error{Code: CodeUnreachable, Detail: "the connection to the provider failed", Retryable: true, cause: err}
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP):
		e.Code, e.Retryable = CodeAddressRefused, false
		e.Detail = "the provider's address is inside the network, and allow_private is not set"
	case errors.Is(parent.Err(), context.Canceled):
		e.Code, e.Detail = CodeCanceled, "the caller canceled the request"
	case own.Err() != nil:
		e.Code, e.Detail = CodeTimeout, "no answer came in time"
	}
	return e
}
