package serve

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// testServer starts a server on an empty folder, with an http connector whose target does not
// answer.
func testServer(t *testing.T, roles []Role) (s *Server, agent *client.Client, polled <-chan string) {
	t.Helper()
	n := openNode(t, servetest.Config(t, `
connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}`))
	creds := servetest.Bootstrap(t, n.Gate)
	hints := &watchedHints{Hints: n.Hub, topics: make(chan string, 16)}
	n.Gate = gate.New(n.Store, n.Registry, hints, gate.Config{PolicySource: policy.DefaultSource()}, n.Log)
	s, err := StartRoles(n, "127.0.0.1:0", roles)
	must(t, err)
	bot := servetest.NewPrincipal(t, n.Gate, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	if agent, err = client.New(s.URL, bot.Key, client.WithRetries(0, 0)); err != nil {
		t.Fatal(err)
	}
	return s, agent, hints.topics
}

// watchedHints reports subscriptions, so that a test knows that a long poll has begun.
type watchedHints struct {
	*wake.Hints
	topics chan string
}

func (h *watchedHints) Subscribe(topics ...string) (<-chan struct{}, func()) {
	c, end := h.Hints.Subscribe(topics...)
	h.topics <- topics[0]
	return c, end
}

// A long poll does not delay a stop, and is answered with the present state.
func TestStopAnswersLongPolls(t *testing.T) {
	t.Parallel()
	s, agent, polled := testServer(t, AllRoles())
	a := servetest.Propose(t, agent, "1")
	answers := &firstAnswer{got: make(chan []byte, 1)}
	client.WithHTTPClient(&http.Client{Transport: answers})(agent)
	ctx, enough := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := agent.WaitAction(ctx, a.ID, gatehouse.MaxWait, gatehouse.UntilDecided)
		ended <- err
	}()
	for topic := range polled {
		if topic == a.ID {
			break
		}
	}
	if err := s.Close(); err != nil { // as when a request outlasts its grace
		t.Error(err)
	}
	var got gatehouse.Action
	if err := json.Unmarshal(<-answers.got, &got); err != nil || got.Status != gatehouse.StatusPending {
		t.Errorf("the poll was answered %q, %v", got.Status, err)
	}
	enough()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v, though nobody has decided", err)
	}
}

// firstAnswer is a transport that reports the body of its first answer, or nil for none.
type firstAnswer struct{ got chan []byte }

func (f *firstAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	select {
	case f.got <- body:
	default:
	}
	return resp, err
}

// TestDrain: a server that is about to stop reports that it is not ready, still answers, and closes
// the connections after their answers.
func TestDrain(t *testing.T) {
	t.Parallel()
	s, _, _ := testServer(t, AllRoles())
	ask := func(path string) (status int, last bool) {
		t.Helper()
		res, err := http.Get(s.URL + path)
		must(t, err)
		_ = res.Body.Close()
		return res.StatusCode, res.Close
	}
	if status, last := ask("/readyz"); status != http.StatusOK || last {
		t.Errorf("before: %d, last %v", status, last)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.drain(time.Hour) }()
	deadline := time.Now().Add(30 * time.Second)
	for status := 0; status != http.StatusServiceUnavailable; status, _ = ask("/readyz") {
		if time.Now().After(deadline) {
			t.Fatal("it stays ready")
		}
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/api/v1/whoami": http.StatusUnauthorized} {
		if status, last := ask(path); status != want || !last {
			t.Errorf("%s: %d, last %v", path, status, last)
		}
	}
	select {
	case err := <-ended:
		t.Errorf("it is over: %v", err)
	default:
	}
	gone := errors.New("the listener is gone")
	s.failed <- gone
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("ended with %v", err)
	}
	if err := s.drain(time.Nanosecond); err != nil {
		t.Error(err)
	}
}

// A process without the role api serves only its health and its metrics.
func TestRolesWithoutAPI(t *testing.T) {
	t.Parallel()
	s, _, _ := testServer(t, []Role{RoleSweeper})
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusOK,
		"/api/v1/whoami": http.StatusNotFound, "/openapi.json": http.StatusNotFound,
	} {
		res, err := http.Get(s.URL + path)
		must(t, err)
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFailedStart: a server that cannot start leaves no listener open.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	n := openNode(t, &config.Config{Retention: config.Retention{Finished: 1}})
	servetest.Bootstrap(t, n.Gate)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	n.listener = l
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	n.metricsListen = free.Addr().String()
	must(t, free.Close())
	if s, err := StartRoles(n, "", AllRoles()); err == nil {
		_ = s.Close()
		t.Fatal("it starts with a retention that is too short")
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
	again, err := net.Listen("tcp", n.metricsListen)
	if err != nil {
		t.Fatalf("the listener of the metrics is open: %v", err)
	}
	must(t, again.Close())

	early := openNode(t, &config.Config{Dispatch: config.Dispatch{Lease: -1}})
	if early.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer early.listener.Close()
	if s, err := StartRoles(early, "", AllRoles()); err == nil {
		_ = s.Close()
		t.Fatal("it starts with a negative lease")
	}
	if err := early.listener.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open after an early failure: %v", err)
	}
}

// TestFailedOpen: a node that cannot be opened closes its connection to NATS.
func TestFailedOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, masterKeyFile), nil, 0o600))
	log := slog.New(slog.DiscardHandler)
	b, err := newBackplane(&config.Config{}, "", "nats://127.0.0.1:1", AllRoles(), log)
	must(t, err)
	f := StoreFlags{DataFlags: DataFlags{Data: dir}}
	if n, err := f.Open(t.Context(), &config.Config{}, b, log); err == nil {
		_ = n.Close()
		t.Fatal("it opens with an empty master key")
	}
	if !b.nats.IsClosed() {
		t.Error("the connection to NATS is open")
	}
}

// A server reports a log that was changed while it was down.
func TestDamagedLogIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() *Server {
		n, err := Open(t.Context(), dir, &config.Config{}, slog.New(slog.DiscardHandler))
		must(t, err)
		if _, err := n.Gate.Bootstrap(t.Context()); err != nil && gatehouse.CodeOf(err) != gatehouse.CodeAlreadyExists {
			t.Fatal(err)
		}
		s, err := Start(n, "127.0.0.1:0")
		must(t, err)
		return s
	}
	metric := func(s *Server, want string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			body := servetest.Scrape(t, s.URL)
			if strings.Contains(body, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %s in\n%s", want, body)
			}
		}
	}
	s := start()
	metric(s, `gatehouse_audit_unnumbered 0`)
	metric(s, `gatehouse_ceiling_used{ceiling="destructive-per-day",tenant="default"} 0`)
	metric(s, `gatehouse_ceiling_limit{ceiling="destructive-per-day",tenant="default"} 20`)
	metric(s, `gatehouse_audit_damaged{tenant="default"} 0`)
	must(t, s.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, DatabaseFile))
	must(t, err)
	var trigger string
	for {
		err := db.QueryRow(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_batch' LIMIT 1`).Scan(
			&trigger)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		must(t, err)
		if _, err := db.Exec(`DROP TRIGGER ` + trigger); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`UPDATE audit_batch SET hashes = randomblob(length(hashes)) WHERE number = 0`); err != nil {
		t.Fatal(err)
	}
	must(t, db.Close())
	s = start()
	metric(s, `gatehouse_audit_damaged{tenant="default"} 1`)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
