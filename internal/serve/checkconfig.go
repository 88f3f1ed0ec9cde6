package serve

import (
	"context"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

const (
	// configurationMaxAge is how long a result is reused, so that repeated requests
	// do not call targets and providers more often.
	configurationMaxAge = 15 * time.Second
	connectorCheck      = "connector "
)

// ownConfiguration checks the server's own configuration, for operators without
// access to its file and network.
type ownConfiguration struct {
	// stored has the configuration with the connectors of the store.
	stored *storeConnectors
	// checking is the lock of results; waiting for it ends with the caller's context.
	checking chan struct{}
	at       time.Time
	found    []term.Check
}

func newOwnConfiguration(stored *storeConnectors) *ownConfiguration {
	return &ownConfiguration{stored: stored, checking: make(chan struct{}, 1)}
}

// results returns the checks and their time, at most configurationMaxAge ago. The checks continue when
// the caller's context ends, because other callers use the results.
func (o *ownConfiguration) results(ctx context.Context) (time.Time, []term.Check, error) {
	select {
	case o.checking <- struct{}{}:
		defer func() { <-o.checking }()
	case <-ctx.Done():
		return time.Time{}, nil, ctx.Err()
	}
	if o.at.IsZero() || time.Since(o.at) >= configurationMaxAge {
		l := &ConfigChecker{serving: true, stored: o.stored.secrets}
		l.All(context.WithoutCancel(ctx), o.stored.config())
		l.replica(o.stored.state.Load())
		o.at, o.found = time.Now(), l.Checks
	}
	return o.at, o.found, nil
}

// visibleTo reports whether people of a tenant may see a check. The check of a connector is shown to
// the tenants that it serves, all others to the default tenant, whose administrators run the
// server.
func (o *ownConfiguration) visibleTo(tenant string, c term.Check) bool {
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
	at, found, err := c.own.results(ctx)
	if err != nil {
		return nil, err
	}
	out := &gatehouse.ConfigurationCheck{At: at.UTC(), Checks: []gatehouse.ConfigurationFinding{}}
	for _, one := range found {
		if c.own.visibleTo(caller.Principal.Tenant, one) {
			out.Checks = append(out.Checks, gatehouse.ConfigurationFinding(one))
		}
	}
	return out, nil
}
