package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"code.dny.dev/ssrf"
)

// longestAfter limits the wait that a receiver may ask for.
const longestAfter = 24 * time.Hour

// HTTPClient makes a client that follows no redirects. Without allowPrivate, it connects to no
// internal address.
func HTTPClient(allowPrivate bool) *http.Client { return httpClient(allowPrivate, nil) }

// HTTPClientWith is HTTPClient with PEM certificates that are trusted in addition to the system's.
func HTTPClientWith(allowPrivate bool, ca string) (*http.Client, error) {
	if ca == "" {
		return HTTPClient(allowPrivate), nil
	}
	pool, err := CertPool(ca)
	if err != nil {
		return nil, err
	}
	return httpClient(allowPrivate, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}), nil
}

// CertPool returns the system's certificates and those of ca, in PEM.
func CertPool(ca string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("holds no certificate in PEM")
	}
	return pool, nil
}

func httpClient(allowPrivate bool, trust *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: DialContext(allowPrivate), TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute, TLSClientConfig: trust,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// DialContext returns a function that connects to a host. Without allowPrivate, the function refuses internal
// addresses.
func DialContext(allowPrivate bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !allowPrivate {
		dialer.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	return dialer.DialContext
}

// CheckURL refuses an invalid or forbidden destination.
func CheckURL(address string, allowPrivate bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("must be an http or https address")
	}
	if u.Scheme == "http" && !allowPrivate {
		return errors.New("must be https, unless allow_private is set")
	}
	return nil
}

// WithoutURL removes the URL from an HTTP client's error, because it may contain a secret.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// RetryAfter parses the header, in seconds or as a date; the result is at most a day, and 0 without
// a valid header.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	s := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(s); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, 1<<20))*time.Second, longestAfter)
	}
	if at, err := http.ParseTime(s); err == nil {
		return min(max(at.Sub(now), 0), longestAfter)
	}
	return 0
}
