package serve

import (
	"github.com/gatehouse-dev/gatehouse/internal/app"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
	"github.com/gatehouse-dev/gatehouse/internal/llm"
	"github.com/gatehouse-dev/gatehouse/internal/runtime"
)

// newRuns wires the runs of a gate: limits, models and webhooks as the
// configuration has them.
func newRuns(gate *app.Gate, cfg *config.Config) (*app.Runs, error) {
	c := app.RunsConfig{Limits: func(tenant string) app.RunLimits { return runLimits(cfg.Runs.Of(tenant)) }, Lease: cfg.Runs.Lease.D()}
	if len(cfg.Models) > 0 {
		models, err := newModels(cfg)
		if err != nil {
			return nil, err
		}
		c.Models = models
	}
	c.Hooks = hook.NewVerifier(cfg.Secret)
	return app.NewRuns(gate, c), nil
}

func runLimits(b config.RunBounds) app.RunLimits {
	l := app.RunLimits{MaxConcurrency: int(b.MaxConcurrency), MaxRunsPerMin: int(b.MaxRunsPerMin), MaxWritesPerRun: int(b.MaxWritesPerRun)}
	if b.Budget != nil {
		l.Budget = &app.Budget{Amount: b.Budget.Amount, Currency: b.Budget.Currency, Window: b.Budget.Window.D()}
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

func runtimeConfig(r *config.Runs, owner string) runtime.Config {
	return runtime.Config{
		Workers: int(r.Workers), Owner: owner,
		Weights: func(tenant, workspace string) (ofTenant, ofWorkspace int) {
			return r.Weight(tenant, ""), r.Weight(tenant, workspace)
		},
	}
}
