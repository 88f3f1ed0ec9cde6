package mcp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// session is the proxy for one client of a front, or for all requests of one
// key that have no session. It is the proxy's output: it writes each frame to
// the HTTP response waiting for the frame.
type session struct {
	state  *keyState
	id     string
	modern bool
	proxy  *Proxy
	log    func(msg string, args ...any)
	ctx    context.Context
	stop   context.CancelFunc
	// isReady is set when the handshake is over, isGone when the server has
	// ended.
	isReady, isGone atomic.Bool
	closing         sync.Once

	// Guarded by state.mu: the time of the last use, the number of calls in
	// progress, and whether the session ends after the last of them.
	used    time.Time
	busy    int
	retired bool

	mu sync.Mutex
	// outlets maps the proxy's request ids to the open responses.
	outlets map[string]*outlet
	// listening is the stream for messages that answer no request, nil for
	// none.
	listening *outlet
	// waiting are messages that answer no request and have no stream yet.
	waiting [][]byte
	// detached is true once the client has ended the session.
	detached bool
	count    int
}

// maxWaiting bounds the frames that wait for a stream.
const maxWaiting = 100

func newSession(k *keyState, upstream Upstream, modern bool) *session {
	s := &session{
		state: k, id: token(), modern: modern, outlets: map[string]*outlet{}, used: time.Now(),
		log: k.front.logFor(k.me).Warn,
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	c := k.front.Config
	c.Gate, c.Upstream, c.Log = k.gate, upstream, k.front.logFor(k.me)
	s.proxy = newProxy(c, s)
	s.proxy.me, s.proxy.done, s.proxy.queued = k.me, k.done, true
	s.proxy.wants = func(tool string, arguments gatehouse.JSON) { k.recordWanted(s, tool, arguments) }
	s.proxy.pinsChanged = k.front.recheckPins
	return s
}

// run reads the server's frames until the server ends.
func (s *session) run() {
	over := make(chan struct{})
	go func() {
		select {
		case <-s.proxy.ready:
			s.isReady.Store(true)
			s.state.readied(s)
		case <-over:
		}
	}()
	err := s.proxy.fromServer()
	close(over)
	s.isGone.Store(true)
	s.state.forgetSession(s)
	ended := howEnded(err)
	s.proxy.end(ended)
	s.close()
	if err != nil && !errors.Is(err, errServerGone) {
		s.log("reading from the server failed", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detached = true
	for id, o := range s.outlets {
		o.add(errorFrame(o.id, codeInternal, ended.Error()))
		delete(s.outlets, id)
	}
	if s.listening != nil {
		s.listening.end()
	}
}

// close ends the server and cancels waiting calls.
func (s *session) close() {
	s.closing.Do(func() {
		s.stop()
		_ = s.proxy.Upstream.Close()
	})
}

// canExecute reports whether the session's server can execute a call.
func (s *session) canExecute() bool {
	return s != nil && !s.retired && s.isReady.Load() && !s.isGone.Load()
}

// idle reports whether no request and no stream is open.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.outlets) == 0 && s.listening == nil
}

// detach stops all output to the client.
func (s *session) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detached = true
	s.waiting = nil
	if s.listening != nil {
		s.listening.end()
	}
}

// outlet is the HTTP response to one request, or the stream of messages that
// answer no request.
type outlet struct {
	// id and progress are the request's own id and progress token.
	id, progress []byte
	// known is the id by which the proxy knows the request.
	known string
	// number is the request's number in the session, from 1.
	number int
	// listensForTools is true if the request opens a stream for notifications of changed
	// tools.
	listensForTools bool
	wake            chan struct{}

	mu    sync.Mutex
	queue [][]byte
	size  int
	over  bool
}

func newOutlet() *outlet { return &outlet{wake: make(chan struct{}, 1)} }

// maxQueued limits the bytes queued for a slow client. The answer is always
// queued.
const maxQueued = 4 << 20

// add queues a frame without a limit. A caller that can drop the frame checks
// full first.
func (o *outlet) add(frame []byte) {
	o.mu.Lock()
	o.queue = append(o.queue, frame)
	o.size += len(frame)
	o.mu.Unlock()
	o.signal()
}

func (o *outlet) full(more int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size+more > maxQueued
}

func (o *outlet) end() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.signal()
}

func (o *outlet) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns the queued frames, and whether the outlet is closed.
func (o *outlet) take() (frames [][]byte, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames, o.queue, o.size = o.queue, nil, 0
	return frames, o.over
}

// request opens the response to a request. It returns nil if a request with the
// same id is open, or the session has ended. raw is the frame for the proxy. For
// clients without sessions, which may use equal ids, raw has an id and a progress
// token that are unique in the proxy.
func (s *session) request(f *frame) (o *outlet, raw []byte) {
	o = newOutlet()
	o.id = f.id
	meta := memberOf(f.params, "_meta")
	o.progress = memberOf(meta, "progressToken")
	o.listensForTools = f.method == "subscriptions/listen" &&
		string(memberOf(memberOf(f.params, "notifications"), "toolsListChanged")) == "true"
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	o.number = s.count
	if !s.modern {
		o.known = string(f.id)
		if s.outlets[o.known] != nil || s.detached {
			return nil, nil
		}
		s.outlets[o.known] = o
		return o, f.raw
	}
	if s.detached {
		return nil, nil
	}
	o.known = strconv.Quote("h" + strconv.Itoa(s.count))
	s.outlets[o.known] = o
	raw = setMember(f.raw, "id", []byte(o.known))
	if o.progress != nil {
		raw = setMember(raw, "params", setMember(f.params, "_meta", setMember(meta, "progressToken", []byte(o.known))))
	}
	return o, raw
}

// leave is called when the client stops reading a response. It ends the wait of a call; the action
// is unchanged. A client without a session cancels a request in this way.
func (s *session) leave(o *outlet) {
	s.mu.Lock()
	open := s.outlets[o.known] == o
	if open {
		delete(s.outlets, o.known)
	}
	s.mu.Unlock()
	if !open || s.proxy.leave([]byte(o.known)) || !s.modern {
		return
	}
	cancelled := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + o.known + `}}`)
	s.proxy.clientFrame(s.ctx, cancelled)
}

// Write passes a frame of the proxy to the response or stream that it belongs
// to. It returns errLeft for the answer to a request whose response has ended.
func (s *session) Write(line []byte) (int, error) {
	raw := slices.Clone(line[:len(line)-1])
	f, err := parseFrame(raw, serverDepth)
	if err != nil { // the proxy has already checked it
		s.log("a frame for the client was refused", "why", err.Error())
		return len(line), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f.isResponse():
		if !s.respond(f) {
			return 0, errLeft
		}
	case s.modern:
		s.notify(f)
	default:
		s.deliver(f)
	}
	return len(line), nil
}

// respond passes on the answer to a request; false if the client no longer reads it.
func (s *session) respond(f *frame) bool {
	o := s.outlets[string(f.id)]
	if o == nil {
		return false
	}
	delete(s.outlets, o.known)
	raw := f.raw
	if s.modern {
		raw = setMember(raw, "id", o.id)
		if meta := memberOf(f.result, "_meta"); string(memberOf(meta, subscription)) == o.known {
			raw = setMember(raw, "result", setMember(f.result, "_meta", setMember(meta, subscription, o.id)))
		}
	}
	o.add(raw)
	return true
}

// subscription is the member of _meta with the id of the request that opened a
// stream of notifications.
const subscription = "io.modelcontextprotocol/subscriptionId"

// notify passes a notification to the request that it concerns. Others are
// dropped: without a session, the protocol has no stream for them.
func (s *session) notify(f *frame) {
	params := f.params
	meta := memberOf(params, "_meta")
	token, by := memberOf(params, "progressToken"), memberOf(meta, subscription)
	var o *outlet
	switch {
	case f.method == "notifications/tools/list_changed" && by == nil: // the gate's own
		for _, o := range s.outlets {
			if o.listensForTools && !o.full(len(f.raw)) {
				about := setMember([]byte("{}"), subscription, o.id)
				o.add(setMember(f.raw, "params", setMember([]byte("{}"), "_meta", about)))
			}
		}
	case f.method == "notifications/progress":
		if o = s.outlets[string(token)]; o != nil && o.progress != nil {
			params = setMember(params, "progressToken", o.progress)
		}
	case by != nil:
		if o = s.outlets[string(by)]; o != nil {
			params = setMember(params, "_meta", setMember(meta, subscription, o.id))
		}
	}
	if o != nil && !f.isRequest() && !o.full(len(f.raw)) {
		o.add(setMember(f.raw, "params", params))
	}
}

// deliver passes on frames that answer no request: progress to its request, the
// rest to the client's stream or to the latest request. Without any of these, the
// first maxWaiting frames wait for a stream.
func (s *session) deliver(f *frame) {
	if s.detached {
		if f.isRequest() {
			go func() { _ = s.proxy.post(errorFrame(f.id, codeNoMethod, "the client has gone")) }()
		}
		return
	}
	o := s.listening
	var last *outlet
	for _, open := range s.outlets {
		if last == nil || open.number > last.number {
			last = open
		}
		if f.method == "notifications/progress" && open.progress != nil &&
			string(open.progress) == string(memberOf(f.params, "progressToken")) {
			o = open
		}
	}
	if o == nil {
		o = last
	}
	switch {
	case o == nil && len(s.waiting) < maxWaiting:
		s.waiting = append(s.waiting, f.raw)
	case o == nil || o.full(len(f.raw)):
		s.log("a frame of the server was dropped: the client does not read", "method", f.method)
	default:
		o.add(f.raw)
	}
}

// openStream opens the stream of messages that answer no request; nil when the
// stream is already open, or the session has ended.
func (s *session) openStream() *outlet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listening != nil || s.detached {
		return nil
	}
	s.listening = newOutlet()
	for _, frame := range s.waiting {
		s.listening.add(frame)
	}
	s.waiting = nil
	return s.listening
}

func (s *session) closeStream(o *outlet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listening == o {
		s.listening = nil
	}
}
