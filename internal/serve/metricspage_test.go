package serve

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const metricsIntro = "# Metrics\n\nEvery metric of `/metrics`, generated from the program's source; " +
	"beside these it has those of\nPrometheus's collectors for Go and the process. " +
	"[Monitoring](monitoring.md) says what to alert on. Labels are in braces.\n\n"

// everything turns on what has metrics of its own: channels and reports of targets.
const everything = `
connectors:
  crm: {type: worker, operations: {update: {}}}
channels:
  hook: {kind: webhook, url: "https://hooks.example.com/gatehouse", secret: key}
hooks:
  targets:
    crm: {connector: crm, secret: key, entity_type: deal, entity_ref: /id}
secrets: {key: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
`

// TestMetricsPage compares docs/metrics.md with what a server registers.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "gatehouse.yaml"), []byte(everything))
	must(t, err)
	n, err := Open(t.Context(), t.TempDir(), cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	if _, err := n.Gate.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := StartRoles(n, "127.0.0.1:0", []Role{RoleAPI})
	must(t, err)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	telemetry.RegisterFeed(s.metrics, new(feed.Feed).Published, new(feed.Feed).Behind) // otherwise only with NATS

	want := metricsIntro + metricRows(t, s.metrics.(*prometheus.Registry))
	const page = "../../docs/metrics.md"
	if *update {
		must(t, os.WriteFile(page, []byte(want), 0o600))
	}
	got, err := os.ReadFile(page)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s differs from the registry: make generate", page)
	}
}

// metricRows returns a line for each metric of ours, by name.
func metricRows(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() { defer close(descs); r.Describe(descs) }()
	form := regexp.MustCompile(`^Desc\{fqName: ("[^"]*"), help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{(.*)\}\}$`)
	rows := map[string]string{}
	for d := range descs {
		m := form.FindStringSubmatch(d.String())
		if m == nil {
			t.Errorf("cannot read %s", d)
			continue
		}
		name, err := strconv.Unquote(m[1])
		if err != nil {
			t.Error(err)
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(name, "gatehouse_") {
			labels := strings.ReplaceAll("{"+m[3]+"}", "{}", "")
			rows[name] = fmt.Sprintf("- `%s%s`: %s\n", name, labels, help)
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		out.WriteString(rows[name])
	}
	return out.String()
}
