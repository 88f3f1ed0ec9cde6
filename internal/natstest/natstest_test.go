package natstest

import (
	"net"
	"testing"
	"time"
)

// TestUpWaitsForThePort: a server starts although its port is taken at first.
func TestUpWaitsForThePort(t *testing.T) {
	t.Parallel()
	s := Prepare(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = l.Close() })
	s.Up()
	c := Connect(t, s.URL())
	if err := c.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}
