package rest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
)

// Reach connects to the host of an address as client would, over TLS where the
// address says https, and sends nothing: the name resolves, to no inside address
// where those are refused, somebody listens, and the certificate is good. The
// error is for an operator.
func Reach(ctx context.Context, client *http.Client, base *url.URL) error {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	address := net.JoinHostPort(base.Hostname(), port)
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return fmt.Errorf("%s cannot be looked at", address)
	}
	conn, err := transport.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("no connection to %s: %w", gatehouse.Quote(address), err)
	}
	defer conn.Close()
	if base.Scheme != "https" {
		return nil
	}
	config := transport.TLSClientConfig.Clone()
	config.ServerName = base.Hostname()
	ctx, cancel := context.WithTimeout(ctx, transport.TLSHandshakeTimeout)
	defer cancel()
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil {
		return fmt.Errorf("no TLS with %s: %w", gatehouse.Quote(address), err)
	}
	return nil
}
