package serve

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// The counter that the console uses counts decisions, also those that are refused.
func TestConsoleDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	s, agent, _ := testServer(t, AllRoles())
	defer s.Close()
	a := servetest.Propose(t, agent, "1")
	metrics := prometheus.NewRegistry()
	actions, err := telemetry.CountDecisions(metrics, s.Gate)
	must(t, err)
	ctx := t.Context()
	for range 2 {
		if _, err := actions.Decide(ctx, a.ID,
			gatehouse.Decision{Decision: gatehouse.Reject}); gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
			t.Fatal(err)
		}
	}
	families, err := metrics.Gather()
	must(t, err)
	if len(families) != 1 || len(families[0].Metric) != 1 || families[0].Metric[0].GetCounter().GetValue() != 2 {
		t.Errorf("%v", families)
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
