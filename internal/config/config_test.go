package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestParse(t *testing.T) {
	t.Setenv("SHOP_DB", "/data/shop.db")
	t.Setenv("RETRIES", "5")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := `
connectors:
  shop: {type: sql, dsn: "sqlite:${SHOP_DB}", entities: {item: {table: items, key: sku, version: version}}}
policy: {file: policy.yaml}
dispatch:
  {hold: 0s, retries: "${RETRIES}", backoff: [5s, 30s], lease: 60s, max_concurrency: 4, tenants: {acme: {weight: 3,
    max_concurrency: 8}}}
secrets: {crm: "file:token"}
`
	c, err := config.Parse(filepath.Join(dir, "gatehouse.yaml"), []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var sql struct {
		Type     string         `yaml:"type"`
		DSN      string         `yaml:"dsn"`
		Entities map[string]any `yaml:"entities"`
	}
	if err := c.Connectors["shop"].Decode(&sql); err != nil {
		t.Fatal(err)
	}
	if sql.DSN != "sqlite:/data/shop.db" || c.Connectors["shop"].Type != "sql" {
		t.Errorf("dsn = %q", sql.DSN)
	}
	if got, _ := c.Secret("crm"); got != "s3cret" {
		t.Errorf("secret = %q", got)
	}
	if _, err := c.Secret("none"); err == nil {
		t.Error("an unknown secret was given")
	}
	if c.Dispatch.Hold == nil || c.Dispatch.Hold.D() != 0 || *c.Dispatch.Retries != 5 ||
		c.Dispatch.Backoff[1].D() != 30*time.Second {
		t.Errorf("dispatch = %+v", c.Dispatch)
	}
	if d := c.Dispatch; d.MaxConcurrency != 4 || len(d.Tenants) != 1 ||
		d.Tenants["acme"] != (config.DispatchTenant{Weight: 3, MaxConcurrency: 8}) {
		t.Errorf("dispatch = %+v", d)
	}
	if c.Policy.File != filepath.Join(dir, "policy.yaml") {
		t.Errorf("policy file = %q", c.Policy.File)
	}
}

// TestParseRefusesTheFirst: of several errors in one section, it is always the first by name that is reported.
func TestParseRefusesTheFirst(t *testing.T) {
	t.Parallel()
	const entries = "{c: {tenants: []}, a: {tenants: []}, b: {tenants: []}}"
	for section, want := range map[string]string{
		"channels": "channels.a.", "models": "models.a.", "connectors": "gatehouse.yaml:1:35: tenants: ",
	} {
		for range 20 {
			_, err := config.Parse("gatehouse.yaml", []byte(section+": "+entries))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %q in it", err, want)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ src, want string }{
		"unknown key":        {"dispatch: {hold: 0s}\nextra: 1\n", ":2:1: unknown key extra"},
		"unknown nested key": {"dispatch:\n  hold: 0s\n  holt: 1\n", ":3:3: "},
		"duplicate key":      {"dispatch: {}\ndispatch: {}\n", ":2:1: "},
		"not YAML":           {"a: [\n", "gatehouse.yaml:"},
		"undefined variable": {"secrets: {a: \"${GATEHOUSE_TEST_UNDEFINED}\"}\n", ":1:14: the environment has no variable"},
		"missing file":       {"secrets: {a: \"file:nowhere\"}\n", ":1:14: "},
		"bad duration":       {"dispatch: {hold: -3s}\n", "duration"},
		"bad lease":          {"dispatch: {lease: 1ms}\n", "dispatch.lease"},
		"no backoff":         {"dispatch: {backoff: [5s, 0s]}\n", "dispatch.backoff[1]"},
		"no lease at all":    {"dispatch:\n  lease: 0s\n", "gatehouse.yaml:2:10: "},
		"no run lease":       {"runs:\n  lease: 0s\n", "leave it out"},
		"no model timeout": {"models:\n  m: {type: openai, base_url: \"https://example.com\", timeout: 0s}\n",
			"leave it out"},
		"bad retries":        {"dispatch: {retries: -1}\n", "dispatch.retries"},
		"no workers":         {"dispatch:\n  workers: 0\n", "gatehouse.yaml:2:12: "},
		"no weight":          {"dispatch:\n  tenants:\n    acme: {weight: 0}\n", "gatehouse.yaml:3:20: "},
		"nothing at once":    {"dispatch:\n  tenants:\n    acme: {max_concurrency: 0}\n", "leave the key out"},
		"nothing of anybody": {"dispatch:\n  max_concurrency: \"0\"\n", "gatehouse.yaml:2:20: "},
		"no runs":            {"runs: {max_runs_per_min: 0}\n", "leave the key out"},
		"no writes":          {"runs: {tenants: {acme: {max_writes_per_run: 0}}}\n", "leave the key out"},
		"bad weight":         {"dispatch: {tenants: {acme: {weight: 1001}}}\n", "dispatch.tenants.acme.weight"},
		"bad bound": {"dispatch: {tenants: {acme: {max_concurrency: -1}}}\n",
			"dispatch.tenants.acme.max_concurrency"},
		"bad common bound":   {"dispatch: {max_concurrency: -1}\n", "dispatch.max_concurrency"},
		"bad tenant":         {"dispatch: {tenants: {\"a b\": {weight: 1}}}\n", "cannot name a tenant"},
		"unknown tenant key": {"dispatch:\n  tenants:\n    acme: {wait: 1}\n", ":3:12: "},
		"bad name":           {"connectors: {\"a b\": {type: sql}}\n", "cannot name a connector"},
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

func TestConnectorDecodeIsStrict(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("g.yaml", []byte("connectors:\n  shop:\n    type: sql\n    dns: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	var into struct {
		Type string `yaml:"type"`
		DSN  string `yaml:"dsn"`
	}
	if err := c.Connectors["shop"].Decode(&into); err == nil || !strings.Contains(err.Error(), "g.yaml:4:5") {
		t.Errorf("err = %v, want the place of the unknown key", err)
	}
}

func TestEmptyFile(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "# nothing\n", "{}\n"} {
		if _, err := config.Parse("g.yaml", []byte(src)); err != nil {
			t.Errorf("%q: %v", src, err)
		}
	}
}
