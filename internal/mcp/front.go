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
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// FrontConfig configures a [Front].
type FrontConfig struct {
	// Config configures each proxy. Its Upstream and Gate are not used: the front makes them for each proxy.
	Config
	// Start starts an MCP server, or connects to one, for one session.
	Start func() (Upstream, error)
	// GateFor returns a client of the gate that uses a caller's key.
	GateFor func(key string) (Gate, error)
	// Hosts are the host names, in lower case, by which clients may reach the front, in addition to localhost and
	// IP addresses.
	Hosts []string
	// Idle is the time after which an unused session ends; 30 min by default.
	Idle time.Duration
}

// Front is an HTTP handler that serves proxies to MCP clients over streamable HTTP, for protocol versions up to
// 2025-11-25 and for 2026-07-28. The bearer token of each request is the caller's API key of the gate. All keys belong
// to one tenant: that of the first key that the gate accepts.
//
// In the older protocol, each session has a proxy and an MCP server of its own. The newer protocol has no
// sessions: all requests with the same key share one proxy. An approved action is executed through the session
// that last made the call. If that session has ended, or is not remembered (see maxWanted), another session of the
// same key executes the action. Therefore the MCP server of a key's last session is kept after the session ends.
type Front struct {
	FrontConfig
	ctx  context.Context
	stop context.CancelFunc

	// open counts the open requests.
	open atomic.Int64
	// bodyTimeout bounds the time in which a body must arrive. discoverTimeout bounds the time in which a server
	// must answer server/discover, which shows that it knows the newer protocol.
	bodyTimeout, discoverTimeout time.Duration
	// beat is the interval of comments on a quiet stream, which detect a disconnected client and a revoked key.
	beat time.Duration

	mu sync.Mutex
	// tenant is the tenant of the first key that the gate accepted, "" before. Keys of other tenants are refused: the
	// pins, and what the servers show without an action, are for one tenant.
	tenant string
	keys   map[[sha256.Size]byte]*keyState // by the hash of the key
	// running has the workers and servers for which Close waits.
	running sync.WaitGroup
}

// The bounds of a front.
const (
	// maxKeys bounds the keys in use.
	maxKeys = 256
	// maxSessions bounds the sessions of one key.
	maxSessions = 16
	// maxRequests bounds the requests and streams of all callers.
	maxRequests = 1024
	// maxKeyLength bounds the length of a key, in bytes.
	maxKeyLength = 512
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = 30 * time.Second
)

// NewFront returns a front. Call [Front.Close] at its end.
func NewFront(c FrontConfig) (*Front, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	if c.Idle == 0 {
		c.Idle = 30 * time.Minute
	}
	f := &Front{
		FrontConfig: c, keys: map[[sha256.Size]byte]*keyState{}, bodyTimeout: bodyTimeout,
		discoverTimeout: discoverTimeout, beat: beat,
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.running.Go(f.sweep)
	return f, nil
}

// Close ends all sessions. It waits up to drainGrace for the calls that servers execute, and then until their outcomes
// are reported.
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
	if reason := f.crossSite(r); reason != "" {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	k, err := f.caller(r)
	if err != nil {
		f.refuse(w, err)
		return
	}
	switch r.Method {
	case http.MethodPost:
		k.post(w, r)
	case http.MethodGet:
		k.listen(w, r)
	case http.MethodDelete:
		k.delete(w, r)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		http.Error(w, "the method is not POST, GET or DELETE", http.StatusMethodNotAllowed)
	}
}

// crossSite returns the reason why a request may come from a web page of another site; "" if it does not. The
// check of the Host prevents DNS rebinding: if a site's name resolves to this machine, its pages send that name
// as the Host.
func (f *Front) crossSite(r *http.Request) string {
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

// hostOf returns the host name or address in a Host header, without port and brackets and in lower case.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

var (
	errNoKey    = errors.New("the bearer token must be a key of the gate")
	errFull     = errors.New("too many keys or sessions are in use")
	errStopping = errors.New("the proxy is stopping")
	errTenant   = errors.New("this proxy serves another tenant")
)

// refuse answers a request for which f.caller has returned err.
func (f *Front) refuse(w http.ResponseWriter, err error) {
	var e *gatehouse.Error
	switch {
	case errors.Is(err, errWorker):
		f.Log.Error("calls cannot be carried out", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the proxy cannot carry out calls now", http.StatusServiceUnavailable)
	case errors.Is(err, errNoKey):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.Is(err, errFull), errors.Is(err, errStopping):
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case errors.As(err, &e) && e.Code == gatehouse.CodeUnauthenticated:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "the gate does not know this key", http.StatusUnauthorized)
	case errors.Is(err, errRoles), errors.Is(err, errTenant):
		http.Error(w, err.Error(), http.StatusForbidden)
	default:
		f.Log.Error("the gate could not verify the caller", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the gate could not be reached", http.StatusServiceUnavailable)
	}
}

// caller returns the state of a request's key. From time to time, it asks the gate whether the key is still
// valid.
func (f *Front) caller(r *http.Request) (*keyState, error) {
	key := bearer(r)
	if key == "" || len(key) > maxKeyLength {
		return nil, errNoKey
	}
	id := sha256.Sum256([]byte(key))
	f.mu.Lock()
	k := f.keys[id]
	f.mu.Unlock()
	if k != nil && k.trusted() {
		return k, nil
	}
	gate, err := f.GateFor(key)
	if err != nil {
		return nil, errNoKey
	}
	me, err := f.identify(r.Context(), gate)
	if err == nil && k == nil {
		if err := f.CheckWorker(r.Context(), me.Tenant); err != nil {
			return nil, err
		}
	}
	if err != nil {
		if k != nil && revoked(err) {
			f.drop(k)
		}
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tenant == "" {
		f.tenant = me.Tenant
		f.Log.Info("the proxy serves one tenant", "tenant", me.Tenant)
	}
	if k = f.keys[id]; k == nil {
		switch {
		case me.Tenant != f.tenant:
			return nil, errTenant
		case f.ctx.Err() != nil:
			return nil, errStopping
		case len(f.keys) >= f.mostKeys():
			return nil, errFull
		}
		k = newKeyState(f, id, gate, me)
		f.keys[id] = k
		f.running.Go(k.work)
	}
	k.trust()
	return k, nil
}

// mostKeys bounds the keys in use. Each key can have a request for work that waits, and the gate bounds those of one
// principal to 200; so each proxy needs a worker of its own.
func (f *Front) mostKeys() int {
	if f.Worker != nil {
		return maxKeys / 2
	}
	return maxKeys
}

// revoked reports whether an error of [Front.caller] proves that a key is no longer valid here.
func revoked(err error) bool {
	var e *gatehouse.Error
	return errors.Is(err, errRoles) || errors.As(err, &e) && e.Code == gatehouse.CodeUnauthenticated
}

// drop ends the sessions and the worker of a key, and forgets its state.
func (f *Front) drop(k *keyState) {
	f.mu.Lock()
	if f.keys[k.id] == k {
		delete(f.keys, k.id)
	}
	f.mu.Unlock()
	k.stop()
}

// sweep ends unused sessions from time to time, until the front is closed.
func (f *Front) sweep() {
	for pause(f.ctx, max(min(f.Idle/4, time.Minute), time.Second)) {
		f.mu.Lock()
		keys := slices.Collect(maps.Values(f.keys))
		f.mu.Unlock()
		for _, k := range keys {
			if k.sweep() {
				f.drop(k)
			}
		}
	}
}

// recheckPins makes every proxy check its server against the pinned tools again. A proxy that has changed the
// pins calls it.
func (f *Front) recheckPins() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.keys {
		k.refresh()
	}
}

// body reads the JSON-RPC message of a request, and returns it as one line, because a server on stdio reads a
// line feed as the end of a message. If the message is refused, body answers the request and returns false.
func (f *Front) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		http.Error(w, "Content-Type must be "+jsonType, http.StatusUnsupportedMediaType)
		return nil, false
	}
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(f.bodyTimeout)) // test recorders have no deadlines
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxClientFrame))
	_ = deadlines.SetReadDeadline(time.Time{})
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
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

// answerError answers a request with a JSON-RPC error.
func answerError(w http.ResponseWriter, status int, id []byte, code int, detail string) {
	answerFrame(w, status, errorFrame(id, code, detail))
}

func answerFrame(w http.ResponseWriter, status int, frame []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(frame)))
	w.WriteHeader(status)
	_, _ = w.Write(frame)
}

// token returns a random text that nobody can guess.
func token() string { return rand.Text() + rand.Text() }

// logFor returns the front's logger with the id of a caller.
func (f *Front) logFor(me *gatehouse.Principal) *slog.Logger { return f.Log.With("principal", me.ID) }
