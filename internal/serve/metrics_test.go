package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestMetricsListen: the scrapers' listener serves the metrics, and nothing else.
func TestMetricsListen(t *testing.T) {
	t.Parallel()
	n := openNode(t, &config.Config{})
	servetest.Bootstrap(t, n.Gate)
	n.metricsListen = "127.0.0.1:0"
	s := startServer(t, n)
	get := func(url string) (int, string) {
		res, err := http.Get(url)
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		return res.StatusCode, string(body)
	}
	if status, body := get(s.MetricsURL); status != http.StatusOK ||
		!strings.Contains(body, "gatehouse_http_request_duration_seconds") && !strings.Contains(body, "go_goroutines") {
		t.Errorf("%d: %.200s", status, body)
	}
	if status, _ := get(strings.TrimSuffix(s.MetricsURL, "/metrics") + "/readyz"); status != http.StatusNotFound {
		t.Errorf("the scrapers' listener serves /readyz: %d", status)
	}
}
