package natstest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy is a proxy between a server and its clients. It can hold back what either side sends, drop
// what the server sends, and cut connections.
type Proxy struct {
	target   string
	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	closed   bool
	hold     chan struct{} // closed when nothing is held back
	// swallow says that the server's bytes are dropped, lost counts those that were.
	swallow atomic.Bool
	lost    atomic.Int64
}

// NewProxy listens until the test ends; target is host and port.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listener: l, conns: make(map[net.Conn]struct{}), hold: make(chan struct{})}
	close(p.hold)
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Resume()
		p.Cut()
	})
	return p
}

// URL returns the address for clients.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Hold keeps everything back, in both directions, until Resume, like a peer that
// has stopped but whose connections are open.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.hold:
		p.hold = make(chan struct{})
	default: // held already
	}
}

// Resume lets everything through again.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.hold:
	default:
		close(p.hold)
	}
}

// SwallowAnswers drops the server's bytes while on. What clients send still arrives and takes
// effect. A connection that has lost bytes is unusable: Cut it.
func (p *Proxy) SwallowAnswers(on bool) { p.swallow.Store(on) }

// Lost counts the bytes that were swallowed.
func (p *Proxy) Lost() int64 { return p.lost.Load() }

// Cut closes all connections; new ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			_ = client.Close()
			_ = upstream.Close()
		} else {
			p.conns[client], p.conns[upstream] = struct{}{}, struct{}{}
		}
		p.mu.Unlock()
		go p.copy(upstream, client, false)
		go p.copy(client, upstream, true)
	}
}

func (p *Proxy) copy(to, from net.Conn, answers bool) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		hold := p.hold
		p.mu.Unlock()
		<-hold
		if answers && p.swallow.Load() {
			p.lost.Add(int64(n))
		} else if _, werr := to.Write(buf[:n]); err == nil {
			err = werr
		}
		if err != nil {
			_ = from.Close() // the other direction ends, too
			return
		}
	}
}
