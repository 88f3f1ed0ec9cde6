package serve

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
	"github.com/gatehouse-dev/gatehouse/internal/llm"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// newRuns wires the runs of a gate with the configured limits, models and
// webhooks.
func newRuns(g *gate.Gate, cfg *config.Config) (*runs.Runs, error) {
	c := runs.Config{Limits: func(tenant string) runs.Limits { return runLimits(cfg.Runs.Of(tenant)) },
		Lease:   cfg.Runs.Lease.D(),
		Workers: func(tool string) gatehouse.WorkerNames { return cfg.Runs.Tools[tool].Workers }}
	if len(cfg.Models) > 0 {
		models, err := newModels(cfg)
		if err != nil {
			return nil, err
		}
		c.Models = models
	}
	c.Hooks = hook.NewVerifier(cfg.Secret)
	return runs.New(g, c), nil
}

func runLimits(b config.RunBounds) runs.Limits {
	l := runs.Limits{MaxConcurrency: int(b.MaxConcurrency), MaxRunsPerMin: int(b.MaxRunsPerMin),
		MaxWritesPerRun: int(b.MaxWritesPerRun)}
	if b.Budget != nil {
		l.Budget = &runs.Budget{Amount: b.Budget.Amount, Currency: b.Budget.Currency, Window: b.Budget.Window.D()}
	}
	return l
}

func newModels(cfg *config.Config) (*llm.Registry, error) {
	configs := make(map[string]llm.Config, len(cfg.Models))
	for name, m := range cfg.Models {
		c := llm.Config{
			Type: m.Type, BaseURL: m.BaseURL, Tenants: m.Tenants, AllowPrivate: m.AllowPrivate, Timeout: m.Timeout.D(),
			MaxTokensField: m.MaxTokensField, Prices: make(map[string]llm.Price, len(m.Prices)),
		}
		for model, p := range m.Prices {
			c.Prices[model] = llm.Price(p)
		}
		if m.Key != "" {
			key, err := cfg.Secret(m.Key)
			if err != nil {
				return nil, err
			}
			c.Key = key
		}
		configs[name] = c
	}
	return llm.NewRegistry(configs)
}

func runtimeConfig(r *config.Runs, owner string) runs.RuntimeConfig {
	return runs.RuntimeConfig{
		Workers: int(r.Workers), Owner: owner,
		Weights: func(tenant, workspace string) (ofTenant, ofWorkspace int) {
			return r.Weight(tenant, ""), r.Weight(tenant, workspace)
		},
	}
}
