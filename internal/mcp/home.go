package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// home is a front's state for one key: its sessions, and the worker that
// executes approved actions.
type home struct {
	front *Front
	id    [sha256.Size]byte
	gate  Gate
	me    *gatehouse.Principal
	ctx   context.Context
	stop  context.CancelFunc
	done  *executed
	// ready receives a value when a session may have become ready.
	ready chan struct{}

	mu sync.Mutex
	// checked is when the gate last confirmed the key; used is when a request
	// last came.
	checked, used time.Time
	sessions      map[string]*session
	// shared serves the protocol without sessions, nil for none.
	shared *session
	// kept is an ended session whose server executes actions that are approved
	// later, nil for none.
	kept *session
	// wanted maps the hash of a call to the session that asked for it.
	wanted map[string]*session
}

// The time limits and bounds of a home.
const (
	// trustedFor is how long a key is trusted without asking the gate.
	trustedFor = 30 * time.Second
	// keptFor is how long a key's last server is kept for actions that are approved later.
	keptFor = 24 * time.Hour
	// discoverPatience is how long a server may take to show that it knows the
	// newer protocol. Some older servers do not answer unknown requests.
	discoverPatience = 10 * time.Second
	// maxWanted bounds the calls whose session is remembered.
	maxWanted = 1000
)

func newHome(f *Front, id [sha256.Size]byte, gate Gate, me *gatehouse.Principal) *home {
	h := &home{
		front: f, id: id, gate: gate, me: me, done: newExecuted(), ready: make(chan struct{}, 1),
		sessions: map[string]*session{}, wanted: map[string]*session{}, used: time.Now(),
	}
	h.ctx, h.stop = context.WithCancel(f.ctx)
	return h
}

func (h *home) trusted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	return time.Since(h.checked) < trustedFor
}

func (h *home) trust() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checked, h.used = time.Now(), time.Now()
}

// all returns the sessions with a running server.
func (h *home) all() (list []*session) {
	for _, s := range h.sessions {
		list = append(list, s)
	}
	for _, s := range []*session{h.shared, h.kept} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (h *home) refresh() {
	h.mu.Lock()
	list := h.all()
	h.mu.Unlock()
	for _, s := range list {
		s.proxy.refresh()
	}
}

// work executes approved actions until the front closes, then ends the
// sessions.
func (h *home) work() {
	w := &worker{
		Config: h.front.Config, ready: h.awaitReady, carryOut: h.carryOut,
	}
	w.Gate = h.gate
	w.run(h.ctx)
	h.mu.Lock()
	list := h.all()
	h.mu.Unlock()
	var closing sync.WaitGroup // a server may take some time to end
	for _, s := range list {
		closing.Go(s.close)
	}
	closing.Wait()
}

// awaitReady waits until some session can execute calls; false when ctx ends
// first.
func (h *home) awaitReady(ctx context.Context) bool {
	for {
		if s := h.take(""); s != nil {
			h.put(s)
			return true
		}
		select {
		case <-h.ready:
		case <-ctx.Done():
			return false
		}
	}
}

// take returns a session that can execute a call, preferably the one that asked
// for it, and nil if there is none. The session stays open until put.
func (h *home) take(call string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.wanted[call]
	if !found.canExecute() {
		found = nil
		for _, s := range h.all() {
			if s.canExecute() && (found == nil || s.used.After(found.used)) {
				found = s
			}
		}
	}
	if found != nil {
		found.busy++
	}
	return found
}

// put returns a session from take.
func (h *home) put(s *session) {
	h.mu.Lock()
	s.busy--
	over := s.retired && s.busy == 0
	h.mu.Unlock()
	if over {
		s.close()
	}
}

func callHash(tool string, arguments gatehouse.JSON) string { return hash(tool, string(arguments)) }

func (h *home) carryOut(ctx context.Context, push *gatehouse.LeasedPush) {
	s := h.take(callHash(push.Operation, push.ProposedChange))
	if s == nil {
		// No session was left when this push was leased.
		p := newProxy(h.front.Config, nil)
		p.Gate, p.done = h.gate, h.done
		v := p.failure(push, "not_sent", "server_gone", errServerGone.Error())
		if err := p.report(push, v); err != nil {
			p.Log.Error("the outcome could not be reported: it will be unknown", "error", err)
		}
		return
	}
	defer h.put(s)
	s.proxy.execute(ctx, push)
}

// recordWanted remembers which session asked for a call.
func (h *home) recordWanted(s *session, tool string, arguments gatehouse.JSON) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.wanted) >= maxWanted {
		for call := range h.wanted { // drop any one
			delete(h.wanted, call)
			break
		}
	}
	h.wanted[callHash(tool, arguments)] = s
}

// begin starts a session with its own server.
func (h *home) begin(modern bool) (*session, error) {
	if err := h.makeRoom(modern); err != nil {
		return nil, err
	}
	upstream, err := h.front.Start()
	if err != nil {
		return nil, err
	}
	s := newSession(h, upstream, modern)
	h.mu.Lock()
	switch {
	case h.ctx.Err() != nil:
		h.mu.Unlock()
		_ = upstream.Close()
		return nil, errStopping
	case !modern:
		h.sessions[s.id] = s
	case h.shared != nil: // two requests came at once
		first := h.shared
		h.mu.Unlock()
		_ = upstream.Close()
		return first, nil
	default:
		h.shared = s
	}
	h.front.running.Go(s.run)
	h.mu.Unlock()
	return s, nil
}

// makeRoom makes room for one more session of a key by ending the one that was idle
// longest.
func (h *home) makeRoom(modern bool) error {
	h.mu.Lock()
	if modern || len(h.sessions) < maxSessions {
		h.mu.Unlock()
		return nil
	}
	var oldest *session
	for _, s := range h.sessions {
		if s.idle() && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	h.mu.Unlock()
	if oldest == nil {
		return errFull
	}
	h.end(oldest)
	return nil
}

// find returns a session of this key.
func (h *home) find(id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s != nil {
		s.used = time.Now()
	}
	return s
}

// sharedSession returns the session for the protocol without sessions.
func (h *home) sharedSession() (*session, error) {
	h.mu.Lock()
	s := h.shared
	if s != nil {
		s.used = time.Now()
	}
	h.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return h.begin(true)
}

// end ends a session for its client. Its server is kept if no other server
// could execute actions that are approved later.
func (h *home) end(s *session) {
	s.detach()
	h.mu.Lock()
	if h.sessions[s.id] == s {
		delete(h.sessions, s.id)
	}
	if h.shared == s {
		h.shared = nil
	}
	keep := s.canExecute()
	for _, other := range h.all() {
		keep = keep && !other.canExecute()
	}
	if keep {
		h.kept = s
		h.mu.Unlock()
		return
	}
	over := h.retire(s)
	h.mu.Unlock()
	if over {
		s.close()
	}
}

// retire lets a session's server end when its calls have returned; true when it
// has none.
func (h *home) retire(s *session) bool {
	s.retired = true
	return s.busy == 0
}

// readied records that a session can execute calls. A server kept for that
// purpose is no longer needed.
func (h *home) readied(s *session) {
	h.mu.Lock()
	var old *session
	if h.kept != nil && h.kept != s {
		old, h.kept = h.kept, nil
		if !h.retire(old) {
			old = nil
		}
	}
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
	if old != nil {
		old.close()
	}
}

// forgetSession forgets a session whose server has ended.
func (h *home) forgetSession(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[s.id] == s {
		delete(h.sessions, s.id)
	}
	if h.shared == s {
		h.shared = nil
	}
	if h.kept == s {
		h.kept = nil
	}
	for call, by := range h.wanted {
		if by == s {
			delete(h.wanted, call)
		}
	}
}

// sweep ends idle sessions; true when the home is no longer needed.
func (h *home) sweep() bool {
	h.mu.Lock()
	var ended []*session
	for _, s := range h.sessions {
		if s.idle() && time.Since(s.used) > h.front.Idle {
			ended = append(ended, s)
		}
	}
	if s := h.shared; s != nil && s.idle() && time.Since(s.used) > keptFor {
		ended = append(ended, s)
	}
	unused := len(h.sessions) == 0 && h.shared == nil && time.Since(h.used) > keptFor
	h.mu.Unlock()
	for _, s := range ended {
		h.end(s)
	}
	return unused
}

// delete ends a session at its client's request.
func (h *home) delete(w http.ResponseWriter, r *http.Request) {
	s := h.find(r.Header.Get(sessionHeader))
	if s == nil {
		http.Error(w, errNoSession.Error(), http.StatusNotFound)
		return
	}
	h.end(s)
	w.WriteHeader(http.StatusNoContent)
}

var errNoSession = errors.New("this key has no such session")
