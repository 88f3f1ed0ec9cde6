package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// ActivePolicies returns the active policy of each tenant, by the tenant's id; nil for a policy that does not load:
// under it, nothing is allowed. For a tenant without a policy, it returns the configured policy, which EnsurePolicies
// stores at the next start. It is for the process itself, and needs no caller.
func (g *Gate) ActivePolicies(ctx context.Context) (map[string]*policy.Policy, error) {
	out := make(map[string]*policy.Policy)
	err := g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		clear(out)
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			p, version, _, err := g.activePolicy(q.In(t.ID), t.ID)
			if err == nil && version == 0 {
				p, err = policy.Parse(g.config.PolicySource)
			}
			if err != nil {
				return err
			}
			out[t.ID] = p
		}
		return nil
	})
	return out, err
}
