package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// ActivePolicies returns the active policy of each tenant, by its id; a tenant
// whose policy does not load is left out, since nothing is allowed there. It is
// for the process itself, and asks for no caller.
func (g *Gate) ActivePolicies(ctx context.Context) (map[string]*policy.Policy, error) {
	out := make(map[string]*policy.Policy)
	err := g.store.View(ctx, func(tx gatehouse.ReadTx) error {
		clear(out)
		tenants, err := tx.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			p, _, _, err := g.activePolicy(tx, t.ID)
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
