package proof

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// call is one write that reached the target.
type call struct {
	at                     time.Time
	ref, key, digest, body string
}

// target is a target system for the http connector, with its own ledger. It
// lives in the test process and so survives every kill of the server.
//
//	GET   /{type}/{ref}       its version and state
//	PATCH /{type}/{ref}       class A: one effect per Idempotency-Key
//	POST  /once/{type}/{ref}  class C: one effect per call
type target struct {
	server *httptest.Server

	mu      sync.Mutex
	calls   []call
	effects map[string]int            // by idempotency key
	states  map[string]map[string]any // by ref
	version map[string]int            // number of changes, by ref; the version is one more
	scripts map[string][]int          // statuses to answer first, by ref
	hold    map[string]chan struct{}  // blocks reads, by ref
	waits   map[string]int            // number of blocked reads, by ref

	answers map[string]http.HandlerFunc // answers to reads, by ref

	// stall, when set, is called for each request; it returns how to delay it,
	// or nil to let it pass.
	stall func(method string) *stall
}

// stall delays one request. before says that it waits before the effect.
type stall struct {
	before bool
	wait   func(*http.Request)
}

func newTarget(t testing.TB) *target {
	x := &target{
		effects: make(map[string]int), states: make(map[string]map[string]any),
		version: make(map[string]int), scripts: make(map[string][]int), hold: make(map[string]chan struct{}),
		waits: make(map[string]int), answers: make(map[string]http.HandlerFunc),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{type}/{ref}", x.read)
	mux.HandleFunc("PATCH /{type}/{ref}", x.write)
	mux.HandleFunc("POST /once/{type}/{ref}", x.write)
	x.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		x.server.CloseClientConnections()
		x.server.Close()
	})
	return x
}

func (x *target) state(ref string) map[string]any {
	s := x.states[ref]
	if s == nil {
		s = map[string]any{"value": "old"}
		x.states[ref] = s
	}
	return s
}

func (x *target) read(w http.ResponseWriter, r *http.Request) {
	ref := r.PathValue("ref")
	x.mu.Lock()
	held := x.hold[ref]
	s := x.held(r)
	x.mu.Unlock()
	if held != nil {
		x.wait(ref, 1)
		select {
		case <-held:
		case <-r.Context().Done():
		}
		x.wait(ref, -1)
	}
	if s != nil {
		s.wait(r)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if answer := x.answers[ref]; answer != nil {
		answer(w, r)
		return
	}
	answerJSON(w, http.StatusOK, object{"version": fmt.Sprint(1 + x.version[ref]), "state": x.state(ref)})
}

func (x *target) held(r *http.Request) *stall {
	if x.stall == nil {
		return nil
	}
	return x.stall(r.Method)
}

func (x *target) write(w http.ResponseWriter, r *http.Request) {
	ref, key := r.PathValue("ref"), r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not arrive completely: no call, no effect
	}
	x.mu.Lock()
	x.calls = append(x.calls, call{time.Now(), ref, key, r.Header.Get("X-Digest"), string(body)})
	s := x.held(r)
	x.mu.Unlock()
	if s != nil && s.before {
		s.wait(r)
	}
	status := x.apply(ref, key, r.Method, body)
	if s != nil && !s.before {
		s.wait(r)
	}
	answerJSON(w, status, object{"id": "ext-" + ref})
}

// apply has the effect, whether or not the caller still waits.
func (x *target) apply(ref, key, method string, body []byte) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.scripts[ref]; len(s) > 0 {
		x.scripts[ref] = s[1:]
		if s[0] >= 300 {
			return s[0]
		}
	}
	if method == http.MethodPatch && x.effects[key] > 0 {
		return http.StatusOK
	}
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		return http.StatusBadRequest
	}
	x.effects[key]++
	x.version[ref]++
	for k, v := range change {
		x.state(ref)[k] = v
	}
	return http.StatusOK
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a vanished caller reads nothing
}

// script sets the answers to the next writes to ref: 300 and above mean no
// effect.
func (x *target) script(ref string, statuses ...int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.scripts[ref] = statuses
}

// change alters the target behind the gate's back.
func (x *target) change(ref, value string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state(ref)["value"] = value
	x.version[ref]++
}

// answer sets the answer to reads of ref.
func (x *target) answer(ref string, fn http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answers[ref] = fn
}

// holdReads blocks reads of ref until release is called.
func (x *target) holdReads(ref string) (release func()) {
	gate := make(chan struct{})
	x.mu.Lock()
	x.hold[ref] = gate
	x.mu.Unlock()
	return sync.OnceFunc(func() {
		x.mu.Lock()
		delete(x.hold, ref)
		x.mu.Unlock()
		close(gate)
	})
}

func (x *target) wait(ref string, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waits[ref] += n
}

// waiting counts the blocked reads of ref.
func (x *target) waiting(ref string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.waits[ref]
}

// sentKey is what the target receives for an action's idempotency key, as in
// docs/connectors.md.
func sentKey(tenant, key string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("gatehouse/idempotency-key/1\n"+tenant+"\n"+key)))
}

// tenants are the tenants that the target serves.
var tenants = []string{"default", "north", "south"}

// callsFor counts the writes under an action's key of any tenant; effectsOf
// counts their effects.
func (x *target) callsFor(key string) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.calls {
		if slices.ContainsFunc(tenants, func(tenant string) bool { return c.key == sentKey(tenant, key) }) {
			n++
		}
	}
	return n
}

func (x *target) effectsOf(key string) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, tenant := range tenants {
		n += x.effects[sentKey(tenant, key)]
	}
	return n
}

// log returns all writes so far.
func (x *target) log() []call {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]call(nil), x.calls...)
}
