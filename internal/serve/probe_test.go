package serve

import (
	"bytes"
	"database/sql"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// A target that cannot be used is logged once, and once more when it can be used again. A removed target has no
// metric.
func TestProbe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	c, err := sqlconn.New(t.Context(), sqlconn.Config{
		DSN: "sqlite:" + path, Entities: map[string]sqlconn.Entity{"item": {Table: "items", Key: "sku"}},
	}, nil)
	must(t, err)
	t.Cleanup(func() { _ = c.(io.Closer).Close() })
	var words bytes.Buffer
	metrics := prometheus.NewRegistry()
	targets := []dispatch.Target{{Name: "shop", Connector: c}}
	p := newProber(func() []dispatch.Target { return targets },
		telemetry.NewTargets(metrics),
		func(_ dispatch.Target, s string) string { return strings.ReplaceAll(s, "items", "[redacted]") },
		slog.New(slog.NewTextHandler(&words, nil)))
	check := func(up float64, told, again int) {
		t.Helper()
		p.probe(t.Context())
		p.probe(t.Context())
		found, err := metrics.Gather()
		if err != nil || len(found) != 1 {
			t.Fatalf("%d metrics, %v", len(found), err)
		}
		if got := found[0].Metric[0].Gauge.GetValue(); found[0].GetName() != "gatehouse_target_up" || got != up {
			t.Errorf("%s is %v, want %v", found[0].GetName(), got, up)
		}
		if log := words.String(); strings.Count(log, "cannot be used") != told ||
			strings.Count(log, "can be used again") != again {
			t.Errorf("the log says:\n%s", log)
		}
	}
	check(0, 1, 0)

	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE items (sku TEXT PRIMARY KEY, price TEXT) STRICT`); err != nil {
		t.Fatal(err)
	}
	check(1, 1, 1)
	if _, err := db.Exec(`DROP TABLE items`); err != nil {
		t.Fatal(err)
	}
	check(0, 2, 1)
	all := targets
	targets = nil
	p.probe(t.Context())
	if found, err := metrics.Gather(); err != nil || len(found) != 0 {
		t.Errorf("without a target: %v, %v", found, err)
	}
	targets = all
	check(0, 3, 1)
	if log := words.String(); strings.Contains(log, "items") || !strings.Contains(log, "[redacted]") {
		t.Errorf("the log has a text that must be redacted:\n%s", log)
	}
}
