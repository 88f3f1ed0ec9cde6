package serve

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

const (
	// configurationStands is how long a look at what the configuration names is
	// told again: whoever asks, targets and providers are called no more often.
	configurationStands = 15 * time.Second
	connectorCheck      = "connector "
)

// ownConfiguration looks at what a server's own configuration names, for
// operators who have neither its file nor its network.
type ownConfiguration struct {
	config *config.Config
	// secrets are those of the store; nil for none.
	secrets *storeSecrets
	mu      sync.Mutex
	at      time.Time
	found   []term.Check
}

// look returns what was found, now or a moment ago. The caller may go: what was
// begun is for others as well.
func (o *ownConfiguration) look(ctx context.Context) (time.Time, []term.Check) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at.IsZero() || time.Since(o.at) >= configurationStands {
		l := &Looker{stored: o.secrets}
		l.All(context.WithoutCancel(ctx), o.config)
		o.at, o.found = time.Now(), l.Checks
	}
	return o.at, o.found
}

// tells reports whether people of a tenant hear of a check. A connector is of the
// tenants that it serves; the rest is of the one whose administrators run the
// server. What the first policy leaves open is none of it: doctor speaks of a
// server that has an active one.
func (o *ownConfiguration) tells(tenant string, c term.Check) bool {
	if c.Name == "open" {
		return false
	}
	name, ok := strings.CutPrefix(c.Name, connectorCheck)
	if !ok {
		return tenant == gatehouse.DefaultTenant
	}
	target := dispatch.Target{Tenants: o.config.Connectors[name].Tenants}
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
	at, found := c.own.look(ctx)
	out := &gatehouse.ConfigurationCheck{At: at.UTC(), Checks: []gatehouse.ConfigurationFinding{}}
	for _, one := range found {
		if c.own.tells(caller.Principal.Tenant, one) {
			out.Checks = append(out.Checks, gatehouse.ConfigurationFinding(one))
		}
	}
	return out, nil
}
