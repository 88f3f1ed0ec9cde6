package serve

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// The server counts the decisions of its console, also those that are refused.
func TestConsoleDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	s, creds := serveSource(t, `
connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}`)
	a := servetest.Propose(t, servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent,
		gatehouse.RoleProposer), "1")
	link, err := s.Gate.CreateSetupLink(servetest.CallerContext(t, s.Gate, creds), creds.ID)
	must(t, err)
	in, err := s.Gate.RedeemSetupLink(t.Context(), link.Token, gatehouse.Browser{})
	must(t, err)
	for range 2 {
		form := url.Values{"decision": {string(gatehouse.Reject)}, "digest": {string(a.Digest)}, "notes": {"no"}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/actions/"+a.ID+"/decide",
			strings.NewReader(form.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.AddCookie(&http.Cookie{Name: "gatehouse_session", Value: in.Token})
		resp, err := http.DefaultTransport.RoundTrip(r)
		must(t, err)
		resp.Body.Close()
	}
	counted := regexp.MustCompile(`gatehouse_decisions_total{endpoint="console",.*`).
		FindAllString(servetest.Scrape(t, s.URL), -1)
	for _, want := range []string{`result="won"} 1`, `result="replayed"} 1`} {
		if !strings.Contains(strings.Join(counted, "\n"), want) {
			t.Errorf("%s is not in %s", want, counted)
		}
	}
}

// The page on the console shows a configuration that loads, and every screenshot on it exists.
func TestConsolePage(t *testing.T) {
	t.Setenv("OIDC_SECRET", "s")
	src, err := os.ReadFile("../../docs/console.md")
	must(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(src)
	if block == nil {
		t.Fatal("no configuration on the page")
	}
	cfg := servetest.Config(t, string(block[1]))
	n := openNode(t, cfg)
	defer n.Close()
	if _, err := newConsole(n, signInConfig(cfg.SignIn), prometheus.NewRegistry()); err != nil {
		t.Error(err)
	}
	for _, m := range regexp.MustCompile(`\]\((screenshots/[^)]+)\)`).FindAllStringSubmatch(string(src), -1) {
		if _, err := os.Stat("../../docs/" + strings.TrimSuffix(m[1], "/")); err != nil {
			t.Error(err)
		}
	}
}
