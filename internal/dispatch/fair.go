package dispatch

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/lease"
)

// Tenant configures one tenant's share of the dispatchers.
type Tenant struct {
	// Weight is the tenant's share of the claims while others have due pushes
	// too: with weights 3 and 1, three claims in four. 1 by default.
	Weight int
	// MaxConcurrency bounds the tenant's pushes in picking and sent, except those of external workers, over all
	// dispatchers on the store; 0 means no bound.
	MaxConcurrency int
}

// fair divides claims between tenants; see [lease.Fair].
type fair struct {
	settings func(tenant string) Tenant
	// bounded says that some tenant has a MaxConcurrency.
	bounded bool
	tenants lease.Fair
	// looks keeps the last tenant that a claim considered.
	looks lease.Cursor[string]
}

func newFair(c *Config) *fair {
	f := &fair{settings: c.tenant, bounded: c.Default.MaxConcurrency > 0}
	for _, t := range c.Tenants {
		f.bounded = f.bounded || t.MaxConcurrency > 0
	}
	return f
}

// share distributes n claims over the tenants with due pushes. full lists the
// tenants that get none because they have reached their bound. share changes no
// state: the claim may fail, or find less.
func (f *fair) share(due []gatehouse.DueTenant, n int) (shares []gatehouse.PushShare, full []string) {
	queues := make([]lease.Queue, 0, len(due))
	for _, d := range due {
		most := f.settings(d.Tenant).MaxConcurrency
		left := lease.Room(most, d.InFlight, d.Due)
		if left == 0 {
			full = append(full, d.Tenant)
			continue
		}
		shares = append(shares, gatehouse.PushShare{Tenant: d.Tenant, Most: most})
		queues = append(queues, lease.Queue{Path: f.path(d.Tenant), Limit: left})
	}
	f.tenants.Divide(n, queues)
	for i, q := range queues {
		shares[i].Limit = q.Given
	}
	return slices.DeleteFunc(shares, func(s gatehouse.PushShare) bool { return s.Limit == 0 }), full
}

func (f *fair) path(tenant string) []lease.Part {
	return []lease.Part{{Name: tenant, Weight: f.settings(tenant).Weight}}
}

// claimed charges the claimed pushes to their tenants.
func (f *fair) claimed(pushes []*gatehouse.Push) {
	queues := make([]lease.Queue, len(pushes))
	for i, p := range pushes {
		queues[i] = lease.Queue{Path: f.path(p.Tenant), Given: 1}
	}
	f.tenants.Charge(queues)
}

// recordConsidered records the last tenant that a claim considered.
func (f *fair) recordConsidered(due []gatehouse.DueTenant) {
	last := ""
	if len(due) > 0 {
		last = due[len(due)-1].Tenant
	}
	f.looks.Scanned(len(due), last)
}
