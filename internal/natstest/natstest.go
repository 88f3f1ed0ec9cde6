// Package natstest runs a private NATS server with JetStream within a test,
// and puts faults between it and its clients.
package natstest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a NATS server that keeps its port and its files over restarts. Its
// methods are not for concurrent use.
type Server struct {
	t       testing.TB
	port    int
	dir     string
	running *server.Server
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := Prepare(t)
	s.Up()
	return s
}

// Prepare chooses the address of a server that does not run yet. Its port is
// below the range from which the system assigns ports. A port of that range could be
// assigned to another process before the server starts, or while it is down.
func Prepare(t testing.TB) *Server {
	t.Helper()
	for range 100 {
		s := &Server{t: t, port: 16_000 + rand.IntN(8_000)}
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.Addr())
		if err != nil {
			continue // in use
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		s.dir = t.TempDir()
		t.Cleanup(s.Down)
		return s
	}
	t.Fatal("no port is free")
	return nil
}

// Addr returns host and port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// URL returns the address for clients.
func (s *Server) URL() string { return "nats://" + s.Addr() }

// Up starts the server and waits until it accepts connections. If the server cannot start, Up tries again for up to a
// minute: another test may be checking at that moment whether the port is free.
func (s *Server) Up() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		running, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: s.port, JetStream: true, StoreDir: s.dir, NoLog: true, NoSigs: true,
			JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		var log faults
		running.SetLogger(&log, false, false)
		running.Start()
		for log.last.Load() == nil && time.Now().Before(deadline) {
			if running.ReadyForConnections(100 * time.Millisecond) {
				s.running = running
				return
			}
		}
		running.Shutdown()
		running.WaitForShutdown()
		why := "no fault"
		if last := log.last.Load(); last != nil {
			why = *last
		}
		if !time.Now().Before(deadline) {
			s.t.Fatalf("the NATS server does not take connections; it reports: %s", why)
		}
		s.t.Logf("the NATS server is started again: %s", why)
		time.Sleep(100 * time.Millisecond)
	}
}

// faults is a logger of a NATS server that keeps the last fatal fault.
type faults struct{ last atomic.Pointer[string] }

func (f *faults) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	f.last.Store(&text)
}

func (*faults) Noticef(string, ...any) {}
func (*faults) Warnf(string, ...any)   {}
func (*faults) Errorf(string, ...any)  {}
func (*faults) Debugf(string, ...any)  {}
func (*faults) Tracef(string, ...any)  {}

// Down cuts off all clients and stops the server.
func (s *Server) Down() {
	if s.running == nil {
		return
	}
	s.running.Shutdown()
	s.running.WaitForShutdown()
	s.running = nil
}

// Connect returns a connection that reconnects by itself and quickly, and is
// closed when the test ends. The server need not run.
func Connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
