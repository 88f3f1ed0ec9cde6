package serve

import (
	"github.com/gatehouse-dev/gatehouse/internal/api"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// hookRates are the rates of the workflows with their own rate.
func hookRates(c config.Hooks) map[string]api.HookRate {
	rates := make(map[string]api.HookRate, len(c.Workflows))
	for name, h := range c.Workflows {
		rates[name] = api.HookRate{PerSecond: h.RateLimit.PerSecond, Burst: h.RateLimit.Burst}
	}
	return rates
}
