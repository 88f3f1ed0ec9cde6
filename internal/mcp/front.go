package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// FrontConfig configures a [Front].
type FrontConfig struct {
	// Config configures each proxy, except Upstream and Gate, which are created
	// per proxy.
	Config
	// Start starts or connects to the server, for one session.
	Start func() (Upstream, error)
	// GateFor returns a client of the gate for a caller's key.
	GateFor func(key string) (Gate, error)
	// Hosts are the names by which clients may reach the front, besides
	// localhost and IP addresses.
	Hosts []string
	// Idle is the time after which an unused session ends; 30 min by default.
	Idle time.Duration
}

// Front serves a proxy to clients over streamable HTTP, for protocol versions
// up to 2025-11-25 and for 2026-07-28. The bearer token of each request is the
// caller's own key of the gate.
//
// A session of the older protocol has its own proxy and server. Requests of the
// newer protocol, which has no sessions, share one proxy per key. An approved
// action is executed through the session that asked for it or, when that has
// ended, through another session of the same key. For this purpose, the server
// of a key's last session is kept.
type Front struct {
	FrontConfig
	ctx  context.Context
	stop context.CancelFunc

	open atomic.Int64
	// patience bounds the time for a body to arrive. discover bounds the time in which a server
	// must show that it knows the newer protocol.
	patience, discover time.Duration

	mu    sync.Mutex
	homes map[[sha256.Size]byte]*home
	// running are the workers and servers that Close waits for.
	running sync.WaitGroup
}

// The bounds of a front.
const (
	// maxHomes bounds the number of keys with state.
	maxHomes = 256
	// maxSessions bounds the sessions of one key.
	maxSessions = 16
	// maxRequests bounds the requests and streams of all callers.
	maxRequests = 1024
	// maxKey bounds a key, in bytes.
	maxKey = 512
	// bodyPatience is how long a body may take to arrive.
	bodyPatience = 30 * time.Second
)

// NewFront returns a front. [Front.Close] ends it.
func NewFront(c FrontConfig) (*Front, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	if c.Idle == 0 {
		c.Idle = 30 * time.Minute
	}
	f := &Front{
		FrontConfig: c, homes: map[[sha256.Size]byte]*home{}, patience: bodyPatience, discover: discoverPatience,
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.running.Go(f.sweep)
	return f, nil
}

// Close ends all sessions. Calls in progress at a server get some time to
// return.
func (f *Front) Close() {
	f.mu.Lock()
	f.stop()
	f.mu.Unlock()
	f.running.Wait()
}

// ServeHTTP answers one request.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.open.Add(1) > maxRequests {
		f.open.Add(-1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are open", http.StatusServiceUnavailable)
		return
	}
	defer f.open.Add(-1)
	if why := f.foreign(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	h, err := f.caller(r)
	if err != nil {
		f.refuse(w, err)
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.listen(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		http.Error(w, "the method is not POST, GET or DELETE", http.StatusMethodNotAllowed)
	}
}

// foreign explains why a request may come from another site's page, "" when it
// does not. A page of a site whose name resolves to this machine sends that
// name as the Host.
func (f *Front) foreign(r *http.Request) string {
	host := hostOf(r.Host)
	if net.ParseIP(host) == nil && host != "localhost" && !slices.Contains(f.Hosts, host) {
		return "the Host is not one of this server's names"
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return "the Origin is a different site"
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "the request comes from another site"
	}
	return ""
}

// hostOf returns a Host without port and brackets, in lower case.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

var (
	errNoKey    = errors.New("a key of the gate is needed as the bearer token")
	errFull     = errors.New("too many keys or sessions are in use")
	errStopping = errors.New("the proxy is stopping")
)

// refuse answers a request for which caller has returned an error.
func (f *Front) refuse(w http.ResponseWriter, err error) {
	var e *gatehouse.Error
	switch {
	case errors.Is(err, errNoKey):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.Is(err, errFull), errors.Is(err, errStopping):
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case errors.As(err, &e) && e.Code == gatehouse.CodeUnauthenticated:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "the gate does not know this key", http.StatusUnauthorized)
	case errors.Is(err, errRoles):
		http.Error(w, err.Error(), http.StatusForbidden)
	default:
		f.Log.Error("the gate could not verify the caller", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the gate could not be reached", http.StatusServiceUnavailable)
	}
}

// caller returns the home of a request's key. It asks the gate from time to
// time whether the key is still valid.
func (f *Front) caller(r *http.Request) (*home, error) {
	key := bearer(r)
	if key == "" || len(key) > maxKey {
		return nil, errNoKey
	}
	id := sha256.Sum256([]byte(key))
	f.mu.Lock()
	h := f.homes[id]
	f.mu.Unlock()
	if h != nil && h.trusted() {
		return h, nil
	}
	gate, err := f.GateFor(key)
	if err != nil {
		return nil, errNoKey
	}
	me, err := identify(r.Context(), gate)
	if err != nil {
		var e *gatehouse.Error
		if h != nil && (errors.Is(err, errRoles) || errors.As(err, &e) && e.Code == gatehouse.CodeUnauthenticated) {
			f.drop(h)
		}
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h = f.homes[id]; h == nil {
		switch {
		case f.ctx.Err() != nil:
			return nil, errStopping
		case len(f.homes) >= maxHomes:
			return nil, errFull
		}
		h = newHome(f, id, gate, me)
		f.homes[id] = h
		f.running.Go(h.work)
	}
	h.trust()
	return h, nil
}

// drop ends the sessions and worker of a key that is no longer valid.
func (f *Front) drop(h *home) {
	f.mu.Lock()
	if f.homes[h.id] == h {
		delete(f.homes, h.id)
	}
	f.mu.Unlock()
	h.stop()
}

// sweep ends unused sessions until the front is closed.
func (f *Front) sweep() {
	for pause(f.ctx, max(min(f.Idle/4, time.Minute), time.Second)) {
		f.mu.Lock()
		homes := make([]*home, 0, len(f.homes))
		for _, h := range f.homes {
			homes = append(homes, h)
		}
		f.mu.Unlock()
		for _, h := range homes {
			if h.sweep() {
				f.drop(h)
			}
		}
	}
}

// accepted makes every proxy check the pins again after one proxy has changed
// them.
func (f *Front) accepted() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.homes {
		h.refresh()
	}
}

// body reads a frame as one line: to a server on stdio, a line feed inside a
// frame would end it. body answers a refused request itself.
func (f *Front) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		http.Error(w, "Content-Type must be "+jsonType, http.StatusUnsupportedMediaType)
		return nil, false
	}
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(f.patience)) // test recorders have no deadlines
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxClientFrame))
	_ = deadlines.SetReadDeadline(time.Time{})
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		answerError(w, http.StatusRequestEntityTooLarge, nil, codeInvalidRequest, "the frame is longer than 4 MiB")
		return nil, false
	case err != nil:
		w.Header().Set("Connection", "close")
		answerError(w, http.StatusRequestTimeout, nil, codeInvalidRequest, "the body did not arrive")
		return nil, false
	}
	raw = bytes.TrimSpace(raw)
	if bytes.ContainsAny(raw, "\r\n") {
		var line bytes.Buffer
		if json.Compact(&line, raw) != nil {
			answerError(w, http.StatusBadRequest, nil, codeParse, "the frame is not JSON")
			return nil, false
		}
		raw = line.Bytes()
	}
	return raw, true
}

// answerError answers with a JSON-RPC error.
func answerError(w http.ResponseWriter, status int, id []byte, code int, detail string) {
	answerFrame(w, status, errorFrame(id, code, detail))
}

func answerFrame(w http.ResponseWriter, status int, frame []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(frame)
}

// token returns a name that nobody can guess.
func token() string { return rand.Text() + rand.Text() }

// logged returns the front's logger for one caller.
func (f *Front) logged(me *gatehouse.Principal) *slog.Logger { return f.Log.With("principal", me.ID) }
