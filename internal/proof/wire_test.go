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

// wire is a TCP proxy between a client and a server. Its troubles say what it
// does to the traffic; without any it passes everything.
type wire struct {
	network, address string
	listener         net.Listener
	troubles         atomic.Pointer[troubles]

	// What it has done so far.
	answersLost, requestsLost, delayed atomic.Int64

	mu    sync.Mutex
	ends  map[net.Conn]struct{}
	ended bool
}

// troubles are probabilities, from 0 to 1, for each chunk of traffic.
type troubles struct {
	// loseAnswer resets the client's connection instead of passing an answer:
	// the server has executed the request, and the client does not know it.
	loseAnswer float64
	// among, when set, restricts this to answers that contain it.
	among []byte
	// loseRequest resets the connection before the server gets the request.
	loseRequest float64
	// delay holds back either side's data for up to forAsLong.
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

// addr is the clients' host and port.
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

// copy passes on the data of from. When it ends, both connections are closed.
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
			case answers && t.loseAnswer > 0 && (t.among == nil || bytes.Contains(buf[:n], t.among)) &&
				rand.Float64() < t.loseAnswer:
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

// reset closes a connection with RST, so that its peer sees a failure instead
// of an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
