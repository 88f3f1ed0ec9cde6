package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// ActivePolicies returns the active policy of each tenant, by the tenant's id. It
// leaves out tenants whose policy does not load, since nothing is allowed there. It
// is for the process itself, and needs no caller.
func (g *Gate) ActivePolicies(ctx context.Context) (map[string]*policy.Policy, error) {
	out := make(map[string]*policy.Policy)
	err := g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		clear(out)
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			p, _, _, err := g.activePolicy(q.In(t.ID), t.ID)
			if err != nil {
				return err
			}
			if p != nil {
				out[t.ID] = p
			}
		}
		return nil
	})
	return out, err
}
