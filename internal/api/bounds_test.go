package api

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestWrongKeysAreThrottledByAddress: after twenty wrong keys an address gets
// 429 with Retry-After. Keys that were right before keep working from that
// address, and every right key works from another one.
func TestWrongKeysAreThrottledByAddress(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	addresses := &Addresses{now: func() time.Time { return now },
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	s := newServer(t, newFake(), func(c *Config) { c.Addresses = addresses })
	ask := func(from, key string, forwarded ...string) *httptest.ResponseRecorder {
		r := request{path: "/api/v1/whoami", key: key}.http()
		r.RemoteAddr = from
		for _, f := range forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	want := func(what string, w *httptest.ResponseRecorder, status int) {
		t.Helper()
		if w.Code != status {
			t.Errorf("%s: %d %s, want %d", what, w.Code, w.Body, status)
		}
	}
	const here = "198.51.100.7:4000"
	want("a right key", ask(here, "gth_ana"), http.StatusOK)
	for range wrongBurst {
		want("a wrong key", ask(here, "gth_guess"), http.StatusUnauthorized)
	}
	w := ask(here, "gth_guess")
	want("one too many", w, http.StatusTooManyRequests)
	if w.Header().Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	want("a key that was right", ask(here, "gth_ana"), http.StatusOK)
	want("from elsewhere", ask("203.0.113.9:1", "gth_bot"), http.StatusOK)
	want("through a proxy that is not trusted", ask(here, "gth_guess", "203.0.113.1"), http.StatusTooManyRequests)
	now = now.Add(wrongEvery)
	want("after a while", ask(here, "gth_guess"), http.StatusUnauthorized)

	for i := range wrongBurst {
		want("of one network", ask(fmt.Sprintf("[2001:db8:1:1::%x]:1", i+1), "gth_guess"), http.StatusUnauthorized)
	}
	want("the same /64", ask("[2001:db8:1:1:ffff::1]:1", "gth_guess"), http.StatusTooManyRequests)
	want("another /64", ask("[2001:db8:1:2::1]:1", "gth_guess"), http.StatusUnauthorized)

	for range wrongBurst {
		ask("10.1.1.1:1", "gth_guess", "192.0.2.66", "10.2.2.2")
	}
	want("behind a trusted proxy", ask("10.1.1.1:1", "gth_guess", "1.2.3.4, 192.0.2.66", "10.2.2.2"),
		http.StatusTooManyRequests)
	want("another client of the proxy", ask("10.1.1.1:1", "gth_guess", "192.0.2.67"), http.StatusUnauthorized)

	for i := range maxAddresses + 10 {
		addresses.Failed(&http.Request{RemoteAddr: fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff)})
	}
	if len(addresses.failed) > maxAddresses {
		t.Errorf("%d addresses are kept", len(addresses.failed))
	}
}

// TestMetricsAreGuarded: metrics are readable from this machine, by auditors,
// and on a separate listener.
func TestMetricsAreGuarded(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for _, c := range []struct {
		from, key, header string
		status            int
	}{
		{"127.0.0.1:1", "", "", 200}, {"[::1]:1", "", "", 200},
		{"127.0.0.1:1", "", "X-Forwarded-For", 401}, {"127.0.0.1:1", "", "Forwarded", 401},
		{"192.0.2.1:1", "", "", 401}, {"192.0.2.1:1", "gth_bot", "", 403}, {"192.0.2.1:1", "gth_ana", "", 403},
		{"192.0.2.1:1", "gth_aud", "", 200}, {"192.0.2.1:1", "gth_root", "", 200},
	} {
		r := request{path: "/metrics", key: c.key}.http()
		r.RemoteAddr = c.from
		if c.header != "" {
			r.Header.Set(c.header, "for=198.51.100.1")
		}
		for surface, h := range map[string]http.Handler{"all": s, "health": s.HealthOnly()} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s, %+v: %d, want %d", surface, c, w.Code, c.status)
			}
		}
	}
	for path, status := range map[string]int{"/metrics": 200, "/api/v1/whoami": 404, "/": 404} {
		w := httptest.NewRecorder()
		s.Metrics().ServeHTTP(w, request{path: path}.http())
		if w.Code != status {
			t.Errorf("the scrapers' listener, %s: %d, want %d", path, w.Code, status)
		}
	}
}

// inTenant is an authenticator whose principals are all of one tenant.
type inTenant struct {
	*fake
	tenant string
}

func (a inTenant) Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error) {
	p, err := a.fake.Authenticate(ctx, key)
	if err != nil {
		return nil, err
	}
	moved := *p
	moved.Tenant = a.tenant
	return &moved, nil
}

// TestMetricsAreForTheDefaultTenant: metrics name all tenants, so auditors of other tenants may not read them.
func TestMetricsAreForTheDefaultTenant(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.Auth = inTenant{newFake(), "acme"} })
	for _, key := range []string{"gth_aud", "gth_root"} {
		r := request{path: "/metrics", key: key}.http()
		r.RemoteAddr = "192.0.2.1:1"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		wantCode(t, w, gatehouse.CodeRoleRequired)
		if !strings.Contains(w.Body.String(), "auditors of the tenant default") {
			t.Errorf("%s: the refusal does not say who may read: %s", key, w.Body)
		}
	}
}

// TestUnreadAnswersAreBounded: a client that requests large lists without
// reading them is refused before it holds much memory. Other clients are not,
// and it is served again after it has disconnected.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	f := newFake()
	large := testAction()
	large.Rationale = strings.Repeat("x", 7<<20)
	f.values["ListActions"] = gatehouse.Page[*gatehouse.Action]{Items: []*gatehouse.Action{large}}
	s := newServer(t, f)
	web := httptest.NewServer(s)
	defer web.Close()
	address := strings.TrimPrefix(web.URL, "http://")
	var open []net.Conn
	refused := false
	for range 20 {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		defer conn.Close()
		open = append(open, conn)
		fmt.Fprintf(conn, "GET /api/v1/proposed-actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer gth_bot\r\n\r\n")
		status, err := bufio.NewReaderSize(conn, 64).ReadString('\n')
		must(t, err)
		if refused = strings.Contains(status, "429"); refused {
			break
		}
	}
	if !refused {
		t.Fatalf("%d answers of 7 MiB wait unread, and no request was refused", len(open))
	}
	if held := s.answers.bytes[principalOf("gth_bot")]; held > maxUnread+8<<20 {
		t.Errorf("%d bytes are held", held)
	}
	if w := (request{path: "/api/v1/proposed-actions", key: "gth_ana"}).send(s); w.Code != http.StatusOK {
		t.Errorf("another principal: %d", w.Code)
	}
	for _, conn := range open {
		conn.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); s.answers.full(principalOf("gth_bot")); time.Sleep(
		10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the answers on closed connections are still counted")
		}
	}
}

func principalOf(key string) string { return people[key].ID }

// TestWaitsAreBounded counts the waiting requests of one principal.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	var a answers
	var last func()
	for range maxWaits {
		over, err := a.wait("bot")
		must(t, err)
		last = over
	}
	if _, err := a.wait("bot"); gatehouse.CodeOf(err) != gatehouse.CodeRateLimited {
		t.Errorf("one too many: %v", err)
	}
	if _, err := a.wait("ana"); err != nil {
		t.Errorf("another principal: %v", err)
	}
	last()
	if _, err := a.wait("bot"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// TestWaitsAreBoundedAtOnce: requests that begin at the same time do not exceed the limit.
func TestWaitsAreBoundedAtOnce(t *testing.T) {
	t.Parallel()
	var a answers
	var waiting atomic.Int64
	var begun, all sync.WaitGroup
	a.mu.Lock()
	for range 2 * maxWaits {
		begun.Add(1)
		all.Go(func() {
			begun.Done()
			if _, err := a.wait("bot"); err == nil {
				waiting.Add(1)
			}
		})
	}
	begun.Wait()
	// After a waiter has missed the lock for a millisecond, all waiters get it in turn: see sync.Mutex.
	for range 3 {
		time.Sleep(2 * time.Millisecond)
		a.mu.Unlock()
		a.mu.Lock()
	}
	time.Sleep(2 * time.Millisecond)
	a.mu.Unlock()
	all.Wait()
	if got := waiting.Load(); got != maxWaits {
		t.Errorf("%d requests wait, want %d", got, maxWaits)
	}
}

// TestWritesHaveDeadlines: a client must read an answer in time.
func TestWritesHaveDeadlines(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	newServer(t, newFake()).ServeHTTP(w, request{path: "/api/v1/proposed-actions", key: "gth_bot"}.http())
	if left := time.Until(w.at); left <= 0 || left > answerTime+5*time.Second {
		t.Errorf("the deadline is %s away, want about %s", left, answerTime)
	}
}

type deadlines struct {
	*httptest.ResponseRecorder
	at time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error { d.at = at; return nil }

// TestFailedSignInsAreThrottled: an address with too many failed sign-ins is
// refused before the next attempt; other addresses and other pages are not.
func TestFailedSignInsAreThrottled(t *testing.T) {
	t.Parallel()
	tried := 0
	signIn := new(Addresses).SignIn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tried++
		if r.URL.Query().Get("token") != "right" {
			w.WriteHeader(http.StatusNotFound)
		}
	}), func(r *http.Request) (begins, finishes bool) { return false, r.URL.Path == "/setup" })
	ask := func(from, path string) int {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		signIn.ServeHTTP(w, r)
		return w.Code
	}
	for range 2 * wrongBurst {
		if got := ask("192.0.2.1:1", "/setup?token=right"); got != http.StatusOK {
			t.Fatalf("a success is counted: %d", got)
		}
	}
	for range wrongBurst {
		ask("192.0.2.1:1", "/setup?token=wrong")
	}
	before := tried
	if got := ask("192.0.2.1:1", "/setup?token=wrong"); got != http.StatusTooManyRequests || tried != before {
		t.Errorf("one too many: %d, tried %t", got, tried != before)
	}
	if got := ask("192.0.2.1:1", "/inbox"); got == http.StatusTooManyRequests {
		t.Error("another page is refused")
	}
	if got := ask("192.0.2.2:1", "/setup?token=right"); got != http.StatusOK {
		t.Errorf("another address: %d", got)
	}
}

// TestBegunSignInsAreThrottled: an address that begins too many sign-ins is refused before it reaches the bound that
// all addresses share. Its failed sign-ins, other pages and other addresses are not affected.
func TestBegunSignInsAreThrottled(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	begun := 0
	signIn := (&Addresses{now: func() time.Time { return now }}).SignIn(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/begin" {
				begun++
			}
		}), func(r *http.Request) (begins, finishes bool) { return r.URL.Path == "/begin", r.URL.Path == "/setup" })
	ask := func(from, path string, want int) http.Header {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		signIn.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s from %s: %d, want %d", path, from, w.Code, want)
		}
		return w.Header()
	}
	const here = "192.0.2.1:1"
	for range beginBurst {
		ask(here, "/begin", http.StatusOK)
	}
	if ask(here, "/begin", http.StatusTooManyRequests).Get("Retry-After") == "" || begun != beginBurst {
		t.Errorf("one too many: %d begun, or no Retry-After", begun)
	}
	ask(here, "/setup", http.StatusOK)
	ask(here, "/inbox", http.StatusOK)
	ask("192.0.2.2:1", "/begin", http.StatusOK)
	now = now.Add(beginEvery)
	ask(here, "/begin", http.StatusOK)
	ask(here, "/begin", http.StatusTooManyRequests)
}
