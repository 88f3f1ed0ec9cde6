package serve

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// engineConfig is the dispatcher's configuration, with defaults for absent values.
func engineConfig(d config.Dispatch) dispatch.Config {
	c := dispatch.DefaultConfig()
	if d.Retries != nil {
		c.Retries = *d.Retries
	}
	c.Patience = d.Patience.D()
	if len(d.Backoff) > 0 {
		c.Backoff = nil
		for _, b := range d.Backoff {
			c.Backoff = append(c.Backoff, b.D())
		}
	}
	if d.Lease != 0 {
		c.Lease = d.Lease.D()
	}
	if d.Workers != 0 {
		c.Workers, c.Batch = int(d.Workers), int(d.Workers)
	}
	c.Breaker = dispatch.Breaker{Failures: 10, Open: d.Breaker.Open.D(), Longest: d.Breaker.Longest.D()}
	if d.Breaker.Failures != nil {
		c.Breaker.Failures = *d.Breaker.Failures
	}
	c.Default.MaxConcurrency = int(d.MaxConcurrency)
	c.Tenants = make(map[string]dispatch.Tenant, len(d.Tenants))
	for name, t := range d.Tenants {
		c.Tenants[name] = dispatch.Tenant{Weight: int(t.Weight),
			MaxConcurrency: int(cmp.Or(t.MaxConcurrency, d.MaxConcurrency))}
	}
	return c
}
