package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Runs sets how workflows are executed. A workflow can also set limits of its own; both these limits and the
// bounds of the tenant apply to a run.
type Runs struct {
	// Workers is the number of steps under way in this process; 16 by default.
	Workers Count `yaml:"workers"`
	// Lease is how long a worker may hold a step, 1s to 1h; 60s by default.
	Lease gatehouse.Span `yaml:"lease"`
	// Tools restricts the workers of single tools: of steps with `uses: worker.TOOL`.
	Tools map[string]RunTool `yaml:"tools"`
	// RunBounds are the bounds of every tenant; a bound that the tenant itself sets replaces the one here.
	RunBounds `yaml:",inline"`
	// Tenants sets shares and bounds of single tenants.
	Tenants map[string]RunTenant `yaml:"tenants"`
}

// RunTool sets the workers of one tool.
type RunTool struct {
	// Workers are the names or ids of the principals that may lease the tool's steps, of all tenants. Steps of other
	// tools are for every principal with the role worker.
	Workers []string `yaml:"workers"`
}

// RunBounds bounds what a tenant's runs may do; an absent key sets no bound.
type RunBounds struct {
	// MaxConcurrency bounds a tenant's steps under way, over all replicas.
	MaxConcurrency Count `yaml:"max_concurrency"`
	// MaxRunsPerMin bounds the runs that a tenant starts in a minute; more wait.
	MaxRunsPerMin Count `yaml:"max_runs_per_min"`
	// MaxWritesPerRun bounds the actions that one run proposes.
	MaxWritesPerRun Count `yaml:"max_writes_per_run"`
	// Budget bounds what a tenant's model calls cost.
	Budget *Budget `yaml:"budget"`
}

// Budget is an amount within a window of time that ends now.
type Budget struct {
	// Amount is the most that calls cost within the window.
	Amount gatehouse.Decimal `yaml:"amount"`
	// Currency is an ISO 4217 code.
	Currency string `yaml:"currency"`
	// Window is a sliding time span, such as 24h.
	Window gatehouse.Duration `yaml:"window"`
}

// RunTenant sets one tenant's share and bounds.
type RunTenant struct {
	// Weight is its share of the claims, 1 to 1000; 1 by default.
	Weight    Count `yaml:"weight"`
	RunBounds `yaml:",inline"`
	// Workspaces sets the shares of the tenant's workspaces.
	Workspaces map[string]RunWorkspace `yaml:"workspaces"`
}

// RunWorkspace sets one workspace's part of its tenant's share.
type RunWorkspace struct {
	// Weight is 1 to 1000; 1 by default.
	Weight Count `yaml:"weight"`
}

// Of returns the bounds of a tenant: its own, and the common ones for those that
// it does not set.
func (r *Runs) Of(tenant string) RunBounds {
	own := r.Tenants[tenant].RunBounds
	if own.MaxConcurrency == 0 {
		own.MaxConcurrency = r.MaxConcurrency
	}
	if own.MaxRunsPerMin == 0 {
		own.MaxRunsPerMin = r.MaxRunsPerMin
	}
	if own.MaxWritesPerRun == 0 {
		own.MaxWritesPerRun = r.MaxWritesPerRun
	}
	if own.Budget == nil {
		own.Budget = r.Budget
	}
	return own
}

// Weight returns the weight of a tenant, or of one of its workspaces.
func (r *Runs) Weight(tenant, workspace string) int {
	t := r.Tenants[tenant]
	if workspace == "" {
		return max(int(t.Weight), 1)
	}
	return max(int(t.Workspaces[workspace].Weight), 1)
}

func (r *Runs) validate(path string) error {
	fail := func(key, format string, args ...any) error {
		return fmt.Errorf("%s: runs.%s: %s", path, key, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Workers < 0 || r.Workers > 1024:
		return fail("workers", "must be 1 to 1024")
	case r.Lease != 0 && (r.Lease.D() < gatehouse.MinStepLease || r.Lease.D() > gatehouse.MaxStepLease):
		return fail("lease", "must be 1s to 1h")
	}
	if key, why := r.problem(); why != "" {
		return fail(key, "%s", why)
	}
	for name, t := range sorted(r.Tools) {
		if !gatehouse.ValidName(name) {
			return fail("tools", "%s cannot name a tool", gatehouse.Quote(name))
		}
		if tool, ok := strings.CutPrefix(name, "worker."); ok {
			return fail("tools", "the tool of `uses: %s` is %s", name, tool)
		}
		if t.Workers == nil {
			t.Workers = []string{}
		}
		if err := gatehouse.WorkerNames(t.Workers).Validate(); err != nil {
			return fail("tools."+name+".workers", "%v", err)
		}
	}
	for name, t := range sorted(r.Tenants) {
		if !gatehouse.ValidName(name) {
			return fail("tenants", "%s cannot name a tenant", gatehouse.Quote(name))
		}
		if t.Weight < 0 || t.Weight > maxWeight {
			return fail("tenants."+name+".weight", "must be 1 to %d", maxWeight)
		}
		if key, why := t.problem(); why != "" {
			return fail("tenants."+name+"."+key, "%s", why)
		}
		for workspace, w := range sorted(t.Workspaces) {
			if !gatehouse.ValidName(workspace) {
				return fail("tenants."+name+".workspaces", "%s cannot name a workspace", gatehouse.Quote(workspace))
			}
			if w.Weight < 0 || w.Weight > maxWeight {
				return fail("tenants."+name+".workspaces."+workspace+".weight", "must be 1 to %d", maxWeight)
			}
		}
	}
	return nil
}

func (b *RunBounds) problem() (key, why string) {
	const least = "must be at least 1"
	switch {
	case b.MaxConcurrency < 0:
		return "max_concurrency", least
	case b.MaxRunsPerMin < 0:
		return "max_runs_per_min", least
	case b.MaxWritesPerRun < 0:
		return "max_writes_per_run", least
	case b.Budget == nil:
		return "", ""
	case b.Budget.Amount.Sign() <= 0: // also if absent
		return "budget.amount", "must be more than 0"
	case !gatehouse.ValidCurrency(b.Budget.Currency):
		return "budget.currency", "must be a code such as USD"
	case b.Budget.Window.D() < time.Minute || b.Budget.Window.D() > gatehouse.MaxExpiry:
		return "budget.window", "must be 1m to 365d"
	}
	return "", ""
}
