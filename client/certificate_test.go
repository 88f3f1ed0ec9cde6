package client_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// TestRefusedCertificate: a server whose certificate is refused is not tried again, neither by a call nor by a wait.
func TestRefusedCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	var connections atomic.Int32
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "gth_x", client.WithRetries(3, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Follow": func() error {
			return c.Follow(t.Context(), gatehouse.EventFilter{}, func(gatehouse.Event) error { return nil })
		},
		"FindAction":   func() error { _, err := c.FindAction(t.Context(), "act_1"); return err },
		"WaitDecision": func() error { _, err := c.WaitDecision(t.Context(), "act_1"); return err },
	} {
		connections.Store(0)
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		select {
		case err := <-ended:
			var refused *tls.CertificateVerificationError
			if !errors.As(err, &refused) || connections.Load() != 1 {
				t.Errorf("%s: %d connections, %v", name, connections.Load(), err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s tries again", name)
		}
	}
}
