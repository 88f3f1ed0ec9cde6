package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestOpenBreakerAtTheStart: a server that starts while changes wait for a breaker, which the
// previous process opened, names the connector, the cause and the next trial in its log and in the
// banner of dev.
func TestOpenBreakerAtTheStart(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(target.Close)
	cfg := servetest.Config(t, fmt.Sprintf(`
connectors:
  crm: {type: http, base_url: %q, allow_private: true, operations: {update: {method: POST, path: "/x", class: A}}}
dispatch: {hold: 0s, backoff: [20ms], breaker: {failures: 1, open: 1h, longest: 1h}}`, target.URL))
	dir := t.TempDir()
	n, err := Open(t.Context(), dir, cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	creds := servetest.Bootstrap(t, n.Gate)
	s := startServer(t, n)
	if open := s.warnBreakers(t.Context()); len(open) != 0 {
		t.Errorf("at first it says %v", open)
	}
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	ana := servetest.NewClient(t, s.Gate, s.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	a := servetest.Propose(t, bot, "1")
	servetest.DecideAtOnce(t, a, []*client.Client{ana})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		now, err := ana.FindAction(t.Context(), a.ID)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", now, err)
		}
		if now.Push != nil && strings.HasPrefix(now.Push.LastError, "too many") {
			break
		}
	}
	const cause = ": too many calls in a row have failed, the last with http_503"
	if open := s.warnBreakers(t.Context()); len(open) != 1 ||
		!strings.Contains(open[0], "connector crm: no calls since 20") ||
		!strings.Contains(open[0], cause) {
		t.Errorf("where it opened: %v", open)
	}
	h, err := ana.DispatchHealth(t.Context())
	if err != nil || h.Connectors[0].LastErrorCode != "http_503" ||
		!strings.Contains(h.Connectors[0].LastWords, cause[2:]) {
		t.Errorf("%+v, %v", h, err)
	}
	must(t, s.Close())

	var log, stdout bytes.Buffer
	n, err = Open(t.Context(), dir, cfg, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	t.Cleanup(func() { _ = n.Close() })
	open := n.warnBreakers(t.Context())
	if len(open) != 1 || !strings.Contains(open[0], "connector crm: no calls"+cause) ||
		!strings.Contains(open[0], "; the next trial is at 20") || !strings.Contains(log.String(), cause) {
		t.Errorf("after a restart: %v, and in the log %s", open, log.String())
	}
	for _, json := range []bool{false, true} {
		stdout.Reset()
		g := &term.IO{Ctx: t.Context(), Stdout: &stdout, JSON: json}
		link := &gatehouse.NewSetupLink{Path: "/setup?token=x"}
		must(t, (&devServeCmd{}).banner(g, &devCredentials{}, link, "", open))
		if !strings.Contains(stdout.String(), open[0]) {
			t.Errorf("the banner is %s", stdout.String())
		}
	}
}
