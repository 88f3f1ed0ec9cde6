package config

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// Hooks bounds the webhooks that begin runs. Nobody there has a key, so that
// deliveries are counted by the address that they come from.
type Hooks struct {
	// RateLimit is what one address may deliver to one workflow; 50 a second with bursts
	// of 200 by default. To all workflows it may deliver four times the greatest rate.
	RateLimit RateLimit `yaml:"rate_limit"`
	// Workflows sets rates of single workflows, by name, in every tenant.
	Workflows map[string]Hook `yaml:"workflows"`
}

// Hook is what one workflow takes.
type Hook struct {
	// RateLimit is what one address may deliver to this workflow.
	RateLimit RateLimit `yaml:"rate_limit"`
}

// maxHookRate and maxHookBurst bound what can be set.
const (
	maxHookRate  = 100_000
	maxHookBurst = 1_000_000
)

func (h *Hooks) validate(path string) error {
	if why := h.RateLimit.problem(); why != "" {
		return fmt.Errorf("%s: hooks.rate_limit.%s", path, why)
	}
	for name, one := range h.Workflows {
		if !gatehouse.ValidName(name) {
			return fmt.Errorf("%s: hooks.workflows: %s cannot name a workflow", path, gatehouse.Quote(name))
		}
		if why := one.RateLimit.problem(); why != "" {
			return fmt.Errorf("%s: hooks.workflows.%s.rate_limit.%s", path, name, why)
		}
	}
	return nil
}

func (r RateLimit) problem() string {
	switch {
	case r.PerSecond < 0 || r.PerSecond > maxHookRate:
		return fmt.Sprintf("per_second: must be more than 0, at most %d", maxHookRate)
	case r.Burst < 0 || r.Burst > maxHookBurst:
		return fmt.Sprintf("burst: must be 1 to %d", maxHookBurst)
	}
	return ""
}
