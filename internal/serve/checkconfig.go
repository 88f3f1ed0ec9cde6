package serve

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

const (
	// configurationStands is how long a result is reused, so that repeated requests
	// do not call targets and providers more often.
	configurationStands = 15 * time.Second
	connectorCheck      = "connector "
)

// ownConfiguration checks the server's own configuration, for operators without
// access to its file and network.
type ownConfiguration struct {
	// stored has the configuration with the connectors of the store.
	stored *storeConnectors
	mu     sync.Mutex
	at     time.Time
	found  []term.Check
}

// results returns the checks and their time, at most configurationStands ago. The checks continue when
// the caller's context ends, because other callers use the results.
func (o *ownConfiguration) results(ctx context.Context) (time.Time, []term.Check) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at.IsZero() || time.Since(o.at) >= configurationStands {
		l := &ConfigChecker{stored: o.stored.secrets}
		l.All(context.WithoutCancel(ctx), o.stored.config())
		l.replica(o.stored.state.Load())
		o.at, o.found = time.Now(), l.Checks
	}
	return o.at, o.found
}

// visibleTo reports whether people of a tenant may see a check. The check of a connector is shown to
// the tenants that it serves, all others to the default tenant, whose administrators run the
// server. The check "open" is shown to nobody: it uses the first policy. At its start, a server logs
// the changes that its active policies leave ungated.
func (o *ownConfiguration) visibleTo(tenant string, c term.Check) bool {
	if c.Name == "open" {
		return false
	}
	name, ok := strings.CutPrefix(c.Name, connectorCheck)
	if !ok {
		return tenant == gatehouse.DefaultTenant
	}
	target := dispatch.Target{Tenants: o.stored.config().Connectors[name].Tenants}
	return target.Serves(tenant)
}

// CheckConfiguration implements [gatehouse.CheckService].
func (c *StoreChecker) CheckConfiguration(ctx context.Context) (*gatehouse.ConfigurationCheck, error) {
	caller, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if !caller.Principal.Has(gatehouse.RoleOperator) {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "this needs the role %s", gatehouse.RoleOperator)
	}
	at, found := c.own.results(ctx)
	out := &gatehouse.ConfigurationCheck{At: at.UTC(), Checks: []gatehouse.ConfigurationFinding{}}
	for _, one := range found {
		if c.own.visibleTo(caller.Principal.Tenant, one) {
			out.Checks = append(out.Checks, gatehouse.ConfigurationFinding(one))
		}
	}
	return out, nil
}
