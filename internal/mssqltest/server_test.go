package mssqltest

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestDown: a connection that is accepted while the server goes down is closed, too.
func TestDown(t *testing.T) {
	t.Parallel()
	s := New(t)
	if err := s.Down(); err != nil {
		t.Fatal(err)
	}
	client, accepted := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	if err := client.SetDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	s.serve(accepted)
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection: %v", err)
	}
}
