package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("gatehouse.yaml", []byte(`
runs:
  workers: 16
  lease: 60s
  tools: {fax: {workers: [fax-service]}}
  max_concurrency: 100
  max_runs_per_min: 600
  max_writes_per_run: 50
  budget: {amount: "100.00", currency: USD, window: 24h}
  tenants:
    acme:
      weight: 3
      max_runs_per_min: 60
      budget: {amount: 5, currency: EUR, window: 7d}
      workspaces: {support: {weight: 2}}
`))
	if err != nil {
		t.Fatal(err)
	}
	const day = gatehouse.Duration(24 * time.Hour)
	common := config.RunBounds{
		MaxConcurrency: 100, MaxRunsPerMin: 600, MaxWritesPerRun: 50,
		Budget: &config.Budget{Amount: "100.00", Currency: "USD", Window: day},
	}
	acme := config.Budget{Amount: "5", Currency: "EUR", Window: 7 * day}
	want := config.Runs{
		Workers: 16, Lease: gatehouse.Span(time.Minute), RunBounds: common,
		Tools: map[string]config.RunTool{"fax": {Workers: []string{"fax-service"}}},
		Tenants: map[string]config.RunTenant{"acme": {
			Weight: 3, RunBounds: config.RunBounds{MaxRunsPerMin: 60, Budget: &acme},
			Workspaces: map[string]config.RunWorkspace{"support": {Weight: 2}},
		}},
	}
	if diff := cmp.Diff(want, c.Runs); diff != "" {
		t.Error(diff)
	}
	own := common
	own.MaxRunsPerMin, own.Budget = 60, &acme
	if diff := cmp.Diff(map[string]config.RunBounds{"acme": own, "default": common},
		map[string]config.RunBounds{"acme": c.Runs.Of("acme"), "default": c.Runs.Of("default")}); diff != "" {
		t.Error(diff)
	}
	if r := c.Runs; r.Weight("acme", "") != 3 || r.Weight("acme", "support") != 2 || r.Weight("acme", "other") != 1 ||
		r.Weight("default", "") != 1 {
		t.Error("weights")
	}
}

func TestRunsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ src, want string }{
		"unknown key":       {"runs:\n  worker: 1\n", ":2:3: "},
		"unknown key below": {"runs:\n  tenants:\n    acme: {wait: 1}\n", ":3:12: "},
		"workers":           {"runs: {workers: 1025}", "runs.workers"},
		"a short lease":     {"runs: {lease: 1ms}", "runs.lease"},
		"a long lease":      {"runs: {lease: 2h}", "runs.lease"},
		"concurrency":       {"runs: {max_concurrency: -1}", "runs.max_concurrency"},
		"runs":              {"runs: {tenants: {acme: {max_runs_per_min: -1}}}", "runs.tenants.acme.max_runs_per_min"},
		"writes":            {"runs: {max_writes_per_run: -1}", "runs.max_writes_per_run"},
		"no amount":         {"runs: {budget: {currency: USD, window: 24h}}", "runs.budget.amount"},
		"amount no number":  {"runs: {budget: {amount: much, currency: USD, window: 24h}}", ":1:"},
		"a currency":        {"runs: {budget: {amount: 1, window: 24h}}", "runs.budget.currency"},
		"a window": {"runs: {tenants: {acme: {budget: {amount: 1, currency: USD}}}}",
			"runs.tenants.acme.budget.window"},
		"a tool":      {"runs: {tools: {\"a b\": {workers: [x]}}}", "cannot name a tool"},
		"nobody":      {"runs: {tools: {fax: {workers: []}}}", "runs.tools.fax.workers: the list is empty"},
		"a step":      {"runs: {tools: {worker.fax: {workers: [x]}}}", "the tool of `uses: worker.fax` is fax"},
		"no workers":  {"runs: {tools: {fax: }}", "runs.tools.fax.workers: the list is empty"},
		"a worker":    {"runs: {tools: {fax: {workers: [a b]}}}", "cannot name a principal"},
		"a weight":    {"runs: {tenants: {acme: {weight: 1001}}}", "runs.tenants.acme.weight"},
		"a tenant":    {"runs: {tenants: {\"a b\": {weight: 1}}}", "cannot name a tenant"},
		"a workspace": {"runs: {tenants: {acme: {workspaces: {\"a b\": {weight: 1}}}}}", "cannot name a workspace"},
		"its weight":  {"runs: {tenants: {acme: {workspaces: {w: {weight: -1}}}}}", "runs.tenants.acme.workspaces.w.weight"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("gatehouse.yaml", []byte(tc.src))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q in it", err, tc.want)
			}
		})
	}
}
