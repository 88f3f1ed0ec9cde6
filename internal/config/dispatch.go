package config

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// Count is a whole number other than 0. An absent key means the default, or no
// bound. A written 0 is refused, because its author may mean "none at all".
type Count int

// UnmarshalYAML reads a number that is not 0.
func (c *Count) UnmarshalYAML(node *yaml.Node) error {
	var n int
	if err := node.Load(&n); err != nil {
		return err
	}
	if n == 0 {
		return errors.New("0 is not allowed; leave the key out for the default")
	}
	*c = Count(n)
	return nil
}

// Dispatch sets how approved changes are carried out.
type Dispatch struct {
	// Hold is how long an approved action waits, unless a rule says otherwise; 10s by default
	// for L1 to L3 decided by people, else 0s.
	Hold *gatehouse.Duration `yaml:"hold"`
	// Retries is how many calls follow a failed one; 3 by default.
	Retries *int `yaml:"retries"`
	// Patience adds retries for class A when Retries are used up: until this long after the push was first due, or
	// until key_retention if that is shorter. The waits continue as in Backoff. 0s by default, for none.
	Patience gatehouse.Span `yaml:"patience"`
	// Backoff are the waits before retries; the last one repeats.
	Backoff []gatehouse.Duration `yaml:"backoff"`
	// Lease is how long a worker may hold a push; 60s by default, at least 1s.
	Lease gatehouse.Span `yaml:"lease"`
	// Workers is the number of calls under way; 16 by default.
	Workers Count `yaml:"workers"`
	// MaxConcurrency bounds a tenant's pushes under way, over all replicas, which need the
	// same value.
	MaxConcurrency Count `yaml:"max_concurrency"`
	// Breaker stops the calls of a connector that keeps failing.
	Breaker Breaker `yaml:"breaker"`
	// Tenants sets shares and bounds of single tenants.
	Tenants map[string]DispatchTenant `yaml:"tenants"`
}

// Breaker sets when the calls of a connector are suspended for a while. Approved changes for the
// connector then wait, and use up no attempt. Each replica counts the failures of its own calls.
type Breaker struct {
	// Failures is how many calls in a row must fail; 10 by default, 0 for no breaker.
	Failures *int `yaml:"failures"`
	// Open is the pause before a trial call; 30s by default.
	Open gatehouse.Span `yaml:"open"`
	// Longest bounds that pause, which each failed trial doubles; 5m by default.
	Longest gatehouse.Span `yaml:"longest"`
}

// DispatchTenant sets one tenant's share of the dispatchers, and its bound.
type DispatchTenant struct {
	// Weight is its share of the claims, 1 to 1000; 1 by default.
	Weight Count `yaml:"weight"`
	// MaxConcurrency is the tenant's own bound.
	MaxConcurrency Count `yaml:"max_concurrency"`
}

// maxWeight is the largest weight of a tenant.
const maxWeight = 1000

func (d *Dispatch) validate(path string) error {
	switch {
	case d.Retries != nil && (*d.Retries < 0 || *d.Retries > 100):
		return fmt.Errorf("%s: dispatch.retries: must be 0 to 100", path)
	case d.Patience < 0 || d.Patience.D() > gatehouse.MaxExpiry:
		return fmt.Errorf("%s: dispatch.patience: must be at most 365d", path)
	case d.Lease != 0 && d.Lease.D() < time.Second:
		return fmt.Errorf("%s: dispatch.lease: must be at least 1s", path)
	case d.Workers < 0 || d.Workers > 1024:
		return fmt.Errorf("%s: dispatch.workers: must be 1 to 1024", path)
	case d.Hold != nil && d.Hold.D() > gatehouse.MaxExpiry:
		return fmt.Errorf("%s: dispatch.hold: must be at most 365d", path)
	case d.Breaker.Failures != nil && (*d.Breaker.Failures < 0 || *d.Breaker.Failures > 10_000):
		return fmt.Errorf("%s: dispatch.breaker.failures: must be 0 to 10000", path)
	case d.Breaker.Open != 0 && d.Breaker.Open.D() < time.Second || d.Breaker.Open.D() > 24*time.Hour:
		return fmt.Errorf("%s: dispatch.breaker.open: must be 1s to 24h", path)
	case d.Breaker.Longest != 0 && d.Breaker.Longest.D() < cmp.Or(d.Breaker.Open.D(), 30*time.Second) ||
		d.Breaker.Longest.D() > 24*time.Hour:
		return fmt.Errorf("%s: dispatch.breaker.longest: must be at least as long as open, and at most 24h", path)
	case d.MaxConcurrency < 0:
		return fmt.Errorf("%s: dispatch.max_concurrency: must be at least 1", path)
	}
	for i, wait := range d.Backoff {
		if wait <= 0 || wait.D() > gatehouse.MaxExpiry {
			return fmt.Errorf("%s: dispatch.backoff[%d]: must be more than 0s, and at most 365d", path, i)
		}
	}
	for name, t := range sorted(d.Tenants) {
		switch {
		case !gatehouse.ValidName(name):
			return fmt.Errorf("%s: dispatch.tenants: %s cannot name a tenant", path, gatehouse.Quote(name))
		case t.Weight < 0 || t.Weight > maxWeight:
			return fmt.Errorf("%s: dispatch.tenants.%s.weight: must be 1 to %d", path, name, maxWeight)
		case t.MaxConcurrency < 0:
			return fmt.Errorf("%s: dispatch.tenants.%s.max_concurrency: must be at least 1", path, name)
		}
	}
	return nil
}
