package httpconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"code.dny.dev/ssrf"
)

// maxResponse bounds what is read of an answer, in bytes.
const maxResponse = 1 << 20

// guard refuses inside addresses of every kind, on any port.
func guard() *ssrf.Guardian { return ssrf.New(ssrf.WithAnyPort()) }

// newClient makes a client that sends each request once, on a connection of
// its own. With no connection ever reused and HTTP/1.1 alone, net/http has no
// case left in which it would send a request again by itself.
func newClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: -1}
	if !allowPrivate {
		// Control sees the address that is really dialed, after resolution.
		dialer.Control = guard().Safe
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			ForceAttemptHTTP2:      false,
			TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	// cut says why the body is not whole, "" when it is.
	cut string
}

// sendError is a request without an answer.
type sendError struct {
	connected bool // there was a connection to write to
	refused   bool // the address is an inside one
	err       error
}

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

// send sends a draft once. The error is a *sendError.
func (c *Connector) send(ctx context.Context, d *draft) (*answer, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// Called before the first byte of the request is written, after the
		// TLS handshake.
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := d.http(ctx)
	if err != nil {
		return nil, &sendError{err: err}
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, &sendError{connected: connected.Load(), refused: errors.Is(err, ssrf.ErrProhibitedIP), err: err}
	}
	defer res.Body.Close()
	a := &answer{status: res.StatusCode, header: res.Header}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	switch {
	case len(a.body) > maxResponse:
		a.body, a.cut = a.body[:maxResponse], "larger than 1 MiB"
	case err != nil:
		a.cut = "the connection broke off"
		if ctx.Err() != nil {
			a.cut = "the time was over"
		}
	}
	return a, nil
}
