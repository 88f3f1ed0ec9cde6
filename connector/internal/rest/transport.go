package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"code.dny.dev/ssrf"

	"github.com/gatehouse-dev/gatehouse"
)

// maxResponse limits how much of an answer is read, in bytes.
const maxResponse = 1 << 20

// guard refuses internal addresses of every kind, on any port.
func guard() *ssrf.Guardian { return ssrf.New(ssrf.WithAnyPort()) }

// ParseBase parses the address of an API: http or https, without credentials, query, fragment or
// dot segments. It removes a trailing slash. Without allowPrivate, it refuses a literal internal
// address, and plain http for requests with credentials.
func ParseBase(raw string, allowPrivate, credentials bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, errors.New("is required")
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must be http or https")
	case u.Host == "" || u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.User != nil:
		return nil, errors.New("cannot hold credentials; use auth")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("cannot have a query or fragment")
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, errors.New("cannot have dot segments")
		}
	}
	if !allowPrivate {
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
			if err := guard().SafeAddr(ip.Unmap()); err != nil {
				return nil, fmt.Errorf("%s is an internal address; set allow_private to permit it", ip)
			}
		}
		if u.Scheme == "http" && credentials {
			return nil, errors.New("credentials would go over plain http; use https, " +
				"or set allow_private inside a network that you trust")
		}
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = strings.TrimSuffix(u.RawPath, "/")
	return u, nil
}

// NewDialer makes a dialer. Without allowPrivate, it refuses to connect to internal addresses, even
// if a name resolves to one.
func NewDialer(allowPrivate bool) *net.Dialer {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: -1}
	if !allowPrivate {
		// Control receives the resolved address, just before it is dialed.
		dialer.Control = guard().Safe
	}
	return dialer
}

// NewClient makes a client that sends each request once, on a new connection. Without connection
// reuse and with HTTP/1.1 only, net/http never resends a request by itself. Without allowPrivate,
// it refuses to connect to internal addresses, even if a name resolves to one.
func NewClient(allowPrivate bool) *http.Client {
	dialer := NewDialer(allowPrivate)
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

// Authorities reads a file of PEM certificates. Without a file it returns nil, which selects the
// system's certificates.
func Authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(gatehouse.Quote(file) + " has no PEM certificate")
	}
	return roots, nil
}

// Certificate parses a client certificate and its private key. The error contains no part of
// either.
func Certificate(certificate, key string) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return tls.Certificate{}, errors.New("certificate and key are not PEM, or do not belong together")
	}
	return pair, nil
}

// Trust limits the trusted authorities of a client of [NewClient] to roots, unless it is nil, and
// sets its client certificates.
func Trust(client *http.Client, roots *x509.CertPool, certificates ...tls.Certificate) {
	config := client.Transport.(*http.Transport).TLSClientConfig
	config.RootCAs, config.Certificates = roots, certificates
}

// Answer is the response to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Cut says why the body is incomplete, "" when it is complete.
	Cut string
}

// SendError is the error of a request without an answer.
type SendError struct {
	// Connected reports whether a connection was established.
	Connected bool
	// Refused reports whether an internal address was refused.
	Refused bool
	Err     error
}

func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// Send sends a request once. The error is a *[SendError].
func Send(ctx context.Context, client *http.Client, r *Request) (*Answer, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// This hook runs after the TLS handshake, before the first byte of the request is written.
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := r.http(ctx)
	if err != nil {
		return nil, &SendError{Err: err}
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, &SendError{Connected: connected.Load(), Refused: errors.Is(err, ssrf.ErrProhibitedIP), Err: err}
	}
	defer res.Body.Close()
	a := &Answer{Status: res.StatusCode, Header: res.Header}
	a.Body, err = io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	switch {
	case len(a.Body) > maxResponse:
		a.Body, a.Cut = a.Body[:maxResponse], "larger than 1 MiB"
	case err != nil:
		a.Cut = "the connection broke off"
		if ctx.Err() != nil {
			a.Cut = "the time ran out"
		}
	}
	for name := range r.Secret {
		value := r.Header.Get(name)
		a.Redact(value)
		if _, credential, ok := strings.Cut(value, " "); ok { // after a scheme such as Bearer
			a.Redact(credential)
		}
	}
	return a, nil
}
