package serve

import (
	"github.com/gatehouse-dev/gatehouse/internal/api"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// hookRates are the rates of workflows that have one of their own.
func hookRates(c config.Hooks) map[string]api.HookRate {
	rates := make(map[string]api.HookRate, len(c.Workflows))
	for name, h := range c.Workflows {
		rates[name] = api.HookRate{PerSecond: h.RateLimit.PerSecond, Burst: h.RateLimit.Burst}
	}
	return rates
}
