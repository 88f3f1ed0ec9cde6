package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowCheck: the client outlasts the slowest answer of the server, and asks once.
func TestSlowCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c, err := New("http://gatehouse", "k")
		if err != nil {
			t.Fatal(err)
		}
		transport := c.http.Transport.(*http.Transport)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				if _, err := http.ReadRequest(bufio.NewReader(there)); err != nil {
					return
				}
				requests++
				time.Sleep(91 * time.Second) // 90 s in the server, and some time on the network
				_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
			}()
			return here, nil
		}
		if _, err := c.CheckConfiguration(t.Context()); err != nil || requests != 1 {
			t.Errorf("%d requests, %v", requests, err)
		}
		transport.CloseIdleConnections()
	})
}

// TestSilentHandshake: a connection on which the server never answers the TLS handshake does not hold a call for ever.
func TestSilentHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New("https://gatehouse", "k", WithRetries(0, time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			return here, nil
		}
		if _, err := c.WhoAmI(t.Context()); err == nil {
			t.Error("no error")
		}
	})
}
