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

// Reach connects to the host of an address as client would, with TLS for https, and sends nothing.
// Success means that the name resolves to a permitted address, that the port is open, and that the
// certificate is valid. The error is for an operator.
func Reach(ctx context.Context, client *http.Client, base *url.URL) error {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	address := net.JoinHostPort(base.Hostname(), port)
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return fmt.Errorf("%s cannot be checked", address)
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
