package config

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// Hooks sets how webhooks are received: those that begin runs, and those that report
// changed targets. Senders have no key, so deliveries are counted by the address that
// they come from.
type Hooks struct {
	// RateLimit is what one address may deliver to one workflow or source, by default 50 a second with
	// bursts of 200. To all of them together, an address may deliver four times the greatest rate.
	RateLimit RateLimit `yaml:"rate_limit"`
	// Workflows sets rates of individual workflows, in every tenant.
	Workflows map[string]Hook `yaml:"workflows"`
	// Targets are sources that report changed targets at /api/v1/hooks/targets/NAME.
	Targets map[string]TargetSource `yaml:"targets"`
}

// TargetSource is a system that reports changes of one connector's entities.
type TargetSource struct {
	// Tenant is the tenant whose proposals are marked; default if absent.
	Tenant string `yaml:"tenant"`
	// Connector is the connector that changes the entities.
	Connector string `yaml:"connector"`
	// Kind is how reports are signed: generic (Standard Webhooks, the default), github or
	// servicenow.
	Kind string `yaml:"kind"`
	// Secret is the signing secret's name. It may have several lines; the key of any line may sign.
	Secret string `yaml:"secret"`
	// EntityType is the JSON pointer of the entity's type, or the type itself, without a slash at its beginning.
	EntityType string `yaml:"entity_type"`
	// EntityRef is the JSON pointer of the entity's key.
	EntityRef string `yaml:"entity_ref"`
	// Version is the JSON pointer of the new version. Without it, a report marks all proposals on the
	// entity.
	Version string `yaml:"version"`
}

// Hook configures the webhooks of one workflow.
type Hook struct {
	// RateLimit is what one address may deliver to this workflow.
	RateLimit RateLimit `yaml:"rate_limit"`
}

// maxRate and maxBurst bound every configured rate limit, also the one at the top of the file.
const (
	maxRate  = 100_000
	maxBurst = 1_000_000
)

func (h *Hooks) validate(path string) error {
	if why := h.RateLimit.problem(); why != "" {
		return fmt.Errorf("%s: hooks.rate_limit.%s", path, why)
	}
	for name, one := range sorted(h.Workflows) {
		if !gatehouse.ValidName(name) {
			return fmt.Errorf("%s: hooks.workflows: %s cannot name a workflow", path, gatehouse.Quote(name))
		}
		if why := one.RateLimit.problem(); why != "" {
			return fmt.Errorf("%s: hooks.workflows.%s.rate_limit.%s", path, name, why)
		}
	}
	return nil
}

// validateTargets checks the sources of reports, and the things that they name.
func (c *Config) validateTargets() error {
	for name, s := range sorted(c.Hooks.Targets) {
		fail := func(key, format string, args ...any) error {
			return fmt.Errorf("%s: hooks.targets.%s.%s: %s", c.file, name, key, fmt.Sprintf(format, args...))
		}
		if !gatehouse.ValidName(name) {
			return fmt.Errorf("%s: hooks.targets: %s cannot name a source", c.file, gatehouse.Quote(name))
		}
		if s.Tenant == "" {
			s.Tenant = gatehouse.DefaultTenant
		}
		if s.Kind == "" {
			s.Kind = "generic"
		}
		c.Hooks.Targets[name] = s
		if !gatehouse.ValidName(s.Tenant) {
			return fail("tenant", "%s cannot name a tenant", gatehouse.Quote(s.Tenant))
		}
		if s.Kind != "generic" && s.Kind != "github" && s.Kind != "servicenow" {
			return fail("kind", "must be generic, github or servicenow")
		}
		entry, known := c.Connectors[s.Connector]
		if !known {
			return fail("connector", "connectors has no entry named %s", gatehouse.Quote(s.Connector))
		}
		if !entry.Serves(s.Tenant) {
			return fail("connector", "%s does not list the tenant %s", gatehouse.Quote(s.Connector), gatehouse.Quote(s.Tenant))
		}
		if c.Secrets[s.Secret] == "" {
			return fail("secret", "%s", c.noSecret(s.Secret))
		}
		if s.EntityType == "" {
			return fail("entity_type", "is required")
		}
		pointers := map[string]string{"entity_ref": s.EntityRef, "version": s.Version}
		for key, p := range sorted(pointers) {
			if !strings.HasPrefix(p, "/") && (key == "entity_ref" || p != "") {
				return fail(key, "must be a JSON pointer such as /record/id")
			}
		}
	}
	return nil
}

// writtenRate distinguishes a written 0 from an absent key, which is nil.
type writtenRate struct {
	PerSecond *float64 `yaml:"per_second"`
	Burst     *Count   `yaml:"burst"`
}

// UnmarshalYAML reads numbers that are not 0, as [Count] does.
func (r *RateLimit) UnmarshalYAML(node *yaml.Node) error {
	var given writtenRate
	if err := node.Load(&given, yaml.WithKnownFields()); err != nil {
		return err
	}
	if given.PerSecond != nil {
		if r.PerSecond = *given.PerSecond; r.PerSecond == 0 {
			return errors.New("per_second: 0 is not allowed; leave the key out for the default")
		}
	}
	if given.Burst != nil {
		r.Burst = int(*given.Burst)
	}
	return nil
}

func (r RateLimit) problem() string {
	switch {
	case math.IsNaN(r.PerSecond) || r.PerSecond < 0 || r.PerSecond > maxRate:
		return fmt.Sprintf("per_second: must be more than 0, at most %d", maxRate)
	case r.Burst < 0 || r.Burst > maxBurst:
		return fmt.Sprintf("burst: must be 1 to %d", maxBurst)
	}
	return ""
}
