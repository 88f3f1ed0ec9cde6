package app

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// PolicyUsage tells how full the ceilings of the active policy are.
func (g *Gate) PolicyUsage(ctx context.Context) (list []*gatehouse.CeilingAccount, err error) {
	err = g.view(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = g.accounts(tx, c.Principal.Tenant, gatehouse.MaxCeilingAccounts)
		if err != nil || g.readsAs(c.Principal) == "" {
			return err
		}
		own := list[:0]
		for _, a := range list {
			if agent, _ := policy.SplitScope(a.Per, a.Scope); agent == "" || agent == c.Principal.ID {
				own = append(own, a)
			}
		}
		list = own
		return nil
	})
	return orEmpty(list), err
}

// accounts lists up to most accounts of each ceiling, the fullest first; a ceiling
// of which nothing is used has one without a scope.
func (g *Gate) accounts(tx gatehouse.ReadTx, tenant string, most int) (list []*gatehouse.CeilingAccount, err error) {
	active, _, _, err := g.activePolicy(tx, tenant)
	if err != nil || active == nil {
		return nil, err
	}
	names := make(map[string]string)
	for _, ceiling := range active.Ceilings() {
		uses, err := tx.ListCeilingUse(tenant, ceiling.Ceiling, "", tx.Now().Add(-ceiling.Window.D()), most)
		if err != nil {
			return nil, err
		}
		if len(uses) == 0 {
			list = append(list, &ceiling)
		}
		for _, use := range uses {
			a := ceiling
			a.Scope, a.Used, a.Left = use.Scope, use.Used, gatehouse.CeilingLeft(ceiling.Limit, use.Used)
			agent, currency := policy.SplitScope(ceiling.Per, use.Scope)
			if currency != "" {
				a.Currency = currency
			}
			if agent != "" {
				if a.Name, err = nameOf(tx, tenant, agent, names); err != nil {
					return nil, err
				}
			}
			list = append(list, &a)
		}
	}
	return list, nil
}

// nameOf is the name of a principal, "" for one that is not found; known keeps
// those that were looked up.
func nameOf(tx gatehouse.ReadTx, tenant, id string, known map[string]string) (string, error) {
	if name, ok := known[id]; ok {
		return name, nil
	}
	p, err := tx.FindPrincipal(tenant, id)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		known[id] = ""
	case err != nil:
		return "", err
	default:
		known[id] = p.Name
	}
	return known[id], nil
}

// exceeds lists the ceilings that a pending action does not fit into now.
func exceeds(tx gatehouse.ReadTx, a *gatehouse.Action) (list []gatehouse.CeilingExcess, err error) {
	if a.Status != gatehouse.StatusPending {
		return nil, nil
	}
	for _, c := range a.Ceilings {
		uses, err := tx.ListCeilingUse(a.Tenant, c.Ceiling, c.Scope, tx.Now().Add(-c.Window.D()), 1)
		if err != nil {
			return nil, err
		}
		used := gatehouse.Decimal("0")
		if len(uses) > 0 {
			used = uses[0].Used
		}
		if used.Add(c.Amount).Cmp(c.Limit) > 0 {
			list = append(list, gatehouse.CeilingExcess{
				CeilingClaim: c, Used: used, Left: gatehouse.CeilingLeft(c.Limit, used), Never: c.Amount.Cmp(c.Limit) > 0,
			})
		}
	}
	return list, nil
}

// FullestCeilings lists, for each tenant, the fullest account of each ceiling of
// its active policy: what metrics show. It asks for nobody.
func (g *Gate) FullestCeilings(ctx context.Context, maxTenants int) (map[string][]*gatehouse.CeilingAccount, error) {
	out := make(map[string][]*gatehouse.CeilingAccount)
	err := g.store.View(ctx, func(tx gatehouse.ReadTx) error {
		clear(out)
		tenants, err := tx.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants[:min(len(tenants), maxTenants)] {
			if out[t.ID], err = g.accounts(tx, t.ID, 1); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}
