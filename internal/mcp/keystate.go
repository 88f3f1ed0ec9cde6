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

// keyState is a front's state for one key: its sessions, and the worker that executes approved actions.
type keyState struct {
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
	starting      int // sessions with a reserved place that are not in sessions yet
	// shared serves the protocol without sessions, nil for none.
	shared *session
	// kept is an ended session whose server executes actions that are approved
	// later, nil for none.
	kept *session
	// wanted maps the hash of a call to the session that last asked for it.
	wanted map[string]*session
}

// The time limits and bounds for one key.
const (
	// trustedFor is how long a key is trusted without asking the gate.
	trustedFor = 30 * time.Second
	// keptFor is how long a key's last server is kept for actions that are approved later.
	keptFor = 24 * time.Hour
	// discoverTimeout is how long a server may take to show that it knows the
	// newer protocol. Some older servers do not answer unknown requests.
	discoverTimeout = 10 * time.Second
	// maxWanted bounds the calls whose session is remembered. Above it, any one is forgotten.
	maxWanted = 1000
)

func newKeyState(f *Front, id [sha256.Size]byte, gate Gate, me *gatehouse.Principal) *keyState {
	k := &keyState{
		front: f, id: id, gate: gate, me: me, done: newExecuted(), ready: make(chan struct{}, 1),
		sessions: map[string]*session{}, wanted: map[string]*session{}, used: time.Now(),
	}
	k.ctx, k.stop = context.WithCancel(f.ctx)
	return k
}

func (k *keyState) trusted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used = time.Now()
	return time.Since(k.checked) < trustedFor
}

func (k *keyState) trust() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checked, k.used = time.Now(), time.Now()
}

// all returns the sessions with a running server. The caller holds k.mu.
func (k *keyState) all() (list []*session) {
	for _, s := range k.sessions {
		list = append(list, s)
	}
	for _, s := range []*session{k.shared, k.kept} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (k *keyState) refresh() {
	k.mu.Lock()
	list := k.all()
	k.mu.Unlock()
	for _, s := range list {
		s.proxy.refresh()
	}
}

// work executes approved actions until the key is dropped or the front closes, then ends the sessions.
func (k *keyState) work() {
	w := &worker{
		Config: k.front.Config, proposer: k.me.ID, done: k.done, ready: k.awaitReady, carryOut: k.carryOut,
	}
	w.Gate = k.gate
	w.run(k.ctx)
	k.mu.Lock()
	list := k.all()
	k.mu.Unlock()
	var closing sync.WaitGroup // a server may take some time to end
	for _, s := range list {
		closing.Go(s.close)
	}
	closing.Wait()
}

// awaitReady waits until some session can execute calls; false when ctx ends
// first.
func (k *keyState) awaitReady(ctx context.Context) bool {
	for {
		if s := k.take(""); s != nil {
			k.put(s)
			return true
		}
		select {
		case <-k.ready:
		case <-ctx.Done():
			return false
		}
	}
}

// take returns a session that can execute a call, preferably the one that asked
// for it, and nil if there is none. The session stays open until put.
func (k *keyState) take(call string) *session {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.wanted[call]
	if !found.canExecute() {
		found = nil
		for _, s := range k.all() {
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

// put gives back a session that take returned.
func (k *keyState) put(s *session) {
	k.mu.Lock()
	s.busy--
	over := s.retired && s.busy == 0
	k.mu.Unlock()
	if over {
		s.close()
	}
}

func callHash(tool string, arguments gatehouse.JSON) string { return hash(tool, string(arguments)) }

func (k *keyState) carryOut(ctx context.Context, push *gatehouse.LeasedPush) {
	s := k.take(callHash(push.Operation, push.ProposedChange))
	if s == nil {
		// No session was left when this push was leased.
		p := newProxy(k.front.Config, nil)
		p.Gate, p.done = k.gate, k.done
		v := p.failure(push, "not_sent", "server_gone", errServerGone.Error())
		if err := p.report(push, v); err != nil {
			p.Log.Error("the outcome could not be reported before the lease ended", "error", err)
		}
		return
	}
	defer k.put(s)
	s.proxy.execute(ctx, push)
}

// recordWanted remembers which session asked for a call.
func (k *keyState) recordWanted(s *session, tool string, arguments gatehouse.JSON) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.wanted) >= maxWanted {
		for call := range k.wanted { // drop any one
			delete(k.wanted, call)
			break
		}
	}
	k.wanted[callHash(tool, arguments)] = s
}

// begin starts a session with its own server.
func (k *keyState) begin(modern bool) (*session, error) {
	if !modern {
		if err := k.makeRoom(); err != nil {
			return nil, err
		}
	}
	upstream, err := k.front.Start()
	k.mu.Lock()
	if !modern {
		k.starting--
	}
	if err != nil {
		k.mu.Unlock()
		return nil, err
	}
	s := newSession(k, upstream, modern)
	switch {
	case k.ctx.Err() != nil:
		k.mu.Unlock()
		_ = upstream.Close()
		return nil, errStopping
	case !modern:
		k.sessions[s.id] = s
	case k.shared != nil: // two requests came at once
		first := k.shared
		k.mu.Unlock()
		_ = upstream.Close()
		return first, nil
	default:
		k.shared = s
	}
	k.front.running.Go(s.run)
	k.mu.Unlock()
	return s, nil
}

// makeRoom reserves a place for one more session of a key. If none is free, it ends the session that was idle
// longest.
func (k *keyState) makeRoom() error {
	k.mu.Lock()
	if len(k.sessions)+k.starting < maxSessions {
		k.starting++
		k.mu.Unlock()
		return nil
	}
	var oldest *session
	for _, s := range k.sessions {
		if s.idle() && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		k.mu.Unlock()
		return errFull
	}
	k.starting++
	over := k.remove(oldest)
	k.mu.Unlock()
	if over {
		oldest.close()
	}
	return nil
}

// find returns a session of this key.
func (k *keyState) find(id string) *session {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s != nil {
		s.used = time.Now()
	}
	return s
}

// sharedSession returns the session for the protocol without sessions.
func (k *keyState) sharedSession() (*session, error) {
	k.mu.Lock()
	s := k.shared
	if s != nil {
		s.used = time.Now()
	}
	k.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return k.begin(true)
}

// end ends a session for its client.
func (k *keyState) end(s *session) {
	k.mu.Lock()
	over := k.remove(s)
	k.mu.Unlock()
	if over {
		s.close()
	}
}

// remove takes a session from its client. Its server is kept if no other server could execute actions that are
// approved later; over is true if the caller must close it. The caller holds k.mu.
func (k *keyState) remove(s *session) (over bool) {
	s.detach()
	if k.sessions[s.id] == s {
		delete(k.sessions, s.id)
	}
	if k.shared == s {
		k.shared = nil
	}
	keep := s.canExecute()
	for _, other := range k.all() {
		keep = keep && !other.canExecute()
	}
	if keep {
		k.kept = s
		return false
	}
	return k.retire(s)
}

// retire lets a session end when its calls have returned; true if none is in progress, so that the caller must
// close it.
func (k *keyState) retire(s *session) bool {
	s.retired = true
	return s.busy == 0
}

// readied records that a session can execute calls. A server kept for that
// purpose is no longer needed.
func (k *keyState) readied(s *session) {
	k.mu.Lock()
	var old *session
	if k.kept != nil && k.kept != s {
		old, k.kept = k.kept, nil
		if !k.retire(old) {
			old = nil
		}
	}
	k.mu.Unlock()
	select {
	case k.ready <- struct{}{}:
	default:
	}
	if old != nil {
		old.close()
	}
}

// forgetSession forgets a session whose server has ended.
func (k *keyState) forgetSession(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sessions[s.id] == s {
		delete(k.sessions, s.id)
	}
	if k.shared == s {
		k.shared = nil
	}
	if k.kept == s {
		k.kept = nil
	}
	for call, by := range k.wanted {
		if by == s {
			delete(k.wanted, call)
		}
	}
}

// sweep ends idle sessions. It reports whether the state is no longer needed.
func (k *keyState) sweep() bool {
	k.mu.Lock()
	var ended []*session
	for _, s := range k.sessions {
		if s.idle() && time.Since(s.used) > k.front.Idle {
			ended = append(ended, s)
		}
	}
	if s := k.shared; s != nil && s.idle() && time.Since(s.used) > keptFor {
		ended = append(ended, s)
	}
	unused := len(k.sessions) == 0 && k.shared == nil && time.Since(k.used) > keptFor
	k.mu.Unlock()
	for _, s := range ended {
		k.end(s)
	}
	return unused
}

// delete ends a session at its client's request.
func (k *keyState) delete(w http.ResponseWriter, r *http.Request) {
	s := k.find(r.Header.Get(sessionHeader))
	if s == nil {
		http.Error(w, errNoSession.Error(), http.StatusNotFound)
		return
	}
	k.end(s)
	w.WriteHeader(http.StatusNoContent)
}

var errNoSession = errors.New("this key has no such session")
