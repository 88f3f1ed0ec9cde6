package proof

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a TCP proxy between a client and a server. What it does to what
// passes is said by its troubles; without any it passes all.
type wire struct {
	network, address string
	listener         net.Listener
	troubles         atomic.Pointer[troubles]

	// What was done so far.
	answersLost, requestsLost, delayed atomic.Int64

	mu    sync.Mutex
	ends  map[net.Conn]struct{}
	ended bool
}

// troubles are chances, from 0 to 1, for each piece of a conversation.
type troubles struct {
	// loseAnswer resets the client's connection instead of giving it an
	// answer: the server has done what it was asked, and nobody knows.
	loseAnswer float64
	// among, when set, loses only answers that contain it.
	among []byte
	// loseRequest resets the connection before the server hears of a request.
	loseRequest float64
	// delay holds either side's word back, for up to forAsLong.
	delay     float64
	forAsLong time.Duration
}

// newWire listens on a free port until the test ends.
func newWire(t testing.TB, network, address string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{network: network, address: address, listener: l, ends: make(map[net.Conn]struct{})}
	w.calm()
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { w.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		w.ended = true
		for c := range w.ends {
			_ = c.Close()
		}
		w.mu.Unlock()
		conns.Wait()
	})
	return w
}

// addr is host and port of the clients' side.
func (w *wire) addr() string { return w.listener.Addr().String() }

func (w *wire) trouble(t troubles) { w.troubles.Store(&t) }

func (w *wire) calm() { w.trouble(troubles{}) }

func (w *wire) serve(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(context.Background(), w.network, w.address)
	if err != nil {
		reset(client)
		return
	}
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		_, _ = client.Close(), server.Close()
		return
	}
	w.ends[client], w.ends[server] = struct{}{}, struct{}{}
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { w.copy(server, client, client, false) })
	w.copy(client, server, client, true)
	both.Wait()
	w.mu.Lock()
	delete(w.ends, client)
	delete(w.ends, server)
	w.mu.Unlock()
}

// copy passes on what from says. When it ends, both connections do.
func (w *wire) copy(to, from, client net.Conn, answers bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			t := w.troubles.Load()
			if t.delay > 0 && rand.Float64() < t.delay {
				w.delayed.Add(1)
				time.Sleep(rand.N(t.forAsLong))
			}
			switch {
			case answers && t.loseAnswer > 0 && (t.among == nil || bytes.Contains(buf[:n], t.among)) && rand.Float64() < t.loseAnswer:
				w.answersLost.Add(1)
				reset(client)
				return
			case !answers && t.loseRequest > 0 && rand.Float64() < t.loseRequest:
				w.requestsLost.Add(1)
				reset(client)
				return
			}
			if _, e := to.Write(buf[:n]); e != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// reset closes a connection with RST, so that its peer sees a failure and no
// orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
