package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestHooks(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("g.yaml",
		[]byte("hooks:\n  rate_limit: {per_second: 5, burst: 20}\n"+
			"  workflows:\n    triage: {rate_limit: {per_second: 0.5}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Hooks{
		RateLimit: config.RateLimit{PerSecond: 5, Burst: 20},
		Workflows: map[string]config.Hook{"triage": {RateLimit: config.RateLimit{PerSecond: 0.5}}},
	}
	if d := cmp.Diff(want, c.Hooks); d != "" {
		t.Error(d)
	}
	for src, want := range map[string]string{
		"hooks: {rate_limit: {per_second: -1}}":                        "hooks.rate_limit.per_second",
		"hooks: {rate_limit: {per_second: .nan}}":                      "hooks.rate_limit.per_second",
		"hooks: {rate_limit: {per_second: 0}}":                         "g.yaml:1:21: per_second: 0 is not allowed",
		"hooks: {rate_limit: {burst: 0}}":                              "0 is not allowed; leave the key out",
		"hooks: {rate_limit: {bursts: 1}}":                             "unknown key bursts",
		"callbacks: {tenants: []}":                                     "callbacks.tenants: the list is empty",
		"channels: {a: {kind: email, tenants: []}}":                    "channels.a.tenants: the list is empty",
		"hooks: {rate_limit: {burst: -1}}":                             "hooks.rate_limit.burst",
		"hooks: {workflows: {\"a b\": {}}}":                            "cannot name a workflow",
		"hooks: {workflows: {a: {rate_limit: {per_second: 1000000}}}}": "hooks.workflows.a.rate_limit.per_second",
		"hooks: {workflows: {a: {rate: 1}}}":                           "g.yaml:1:",
		"hooks: {rate_limits: {}}":                                     "g.yaml:1:",
	} {
		if _, err := config.Parse("g.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", src, err, want)
		}
	}
}
