package gate

import (
	"context"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// PolicyUsage returns how much of each ceiling of the active policy is used.
func (g *Gate) PolicyUsage(ctx context.Context) (list []*gatehouse.CeilingAccount, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = g.ceilingAccounts(tx, c.Principal.Tenant, g.ReadsAs(c.Principal), gatehouse.MaxCeilingAccounts)
		return err
	})
	return usecase.OrEmpty(list), err
}

// LevelNames maps levels to the names that the active policy gives them.
func (g *Gate) LevelNames(ctx context.Context) (names map[gatehouse.RiskLevel]string, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		names = make(map[gatehouse.RiskLevel]string)
		active, _, _, err := g.activePolicy(tx, c.Principal.Tenant)
		if err != nil || active == nil {
			return err
		}
		for level := gatehouse.L1; level <= gatehouse.L5; level++ {
			if name := active.LevelName(level); name != "" {
				names[level] = name
			}
		}
		return nil
	})
	return names, err
}

// RejectReasons returns the reasons for a rejection that the active policy offers.
func (g *Gate) RejectReasons(ctx context.Context) (reasons []string, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		reasons = nil
		active, _, _, err := g.activePolicy(tx, c.Principal.Tenant)
		if err != nil || active == nil {
			return err
		}
		reasons = active.RejectReasons()
		return nil
	})
	return reasons, err
}

// ceilingAccounts lists up to limit accounts of each ceiling, the fullest first. Unless only is "", it leaves out the
// accounts of agents with another id, and those of targets. An unused ceiling has one account without a scope.
func (g *Gate) ceilingAccounts(
	tx policyFacts, tenant, only string, limit int,
) (list []*gatehouse.CeilingAccount, err error) {
	active, _, _, err := g.activePolicy(tx, tenant)
	if err != nil || active == nil {
		return nil, err
	}
	names := make(map[string]string)
	for _, ceiling := range active.Ceilings() {
		if only != "" && policy.PerTarget(ceiling.Per) {
			continue
		}
		scope := policy.AgentScope(ceiling.Per, only)
		uses, err := tx.ListCeilingUse(ceiling.Ceiling, scope, tx.Now().Add(-ceiling.Window.D()), limit)
		if err != nil {
			return nil, err
		}
		if only != "" { // an earlier policy may have had this ceiling per agent or target
			uses = slices.DeleteFunc(uses, func(use gatehouse.CeilingUse) bool {
				return !policy.ScopeOpenTo(only, ceiling.Per, use.Scope)
			})
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
				if a.Name, err = nameOf(tx, agent, names); err != nil {
					return nil, err
				}
			}
			list = append(list, &a)
		}
	}
	return list, nil
}

// nameOf returns the name of a principal, "" when it does not exist; known caches
// the names.
func nameOf(tx gatehouse.IdentityReader, id string, known map[string]string) (string, error) {
	if name, ok := known[id]; ok {
		return name, nil
	}
	p, err := tx.FindPrincipal(id)
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

// readExcesses sets Exceeds on the pending actions of a list. It needs one statement, or none
// when no pending action claims a ceiling. It reads slightly later than the list: an action that
// was decided in between counts as used. The actions are of one tenant.
func (g *Gate) readExcesses(ctx context.Context, actions []*gatehouse.Action) error {
	if len(actionsWithClaims(actions)) == 0 {
		return nil
	}
	return g.Store.View(ctx, actions[0].Tenant, func(tx gatehouse.ReadTx) error { return exceeds(tx, actions...) })
}

// actionsWithClaims returns the pending actions that claim a ceiling when approved.
func actionsWithClaims(actions []*gatehouse.Action) (list []*gatehouse.Action) {
	for _, a := range actions {
		if a.Status == gatehouse.StatusPending && len(a.Ceilings) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// exceeds sets Exceeds on the pending actions of one tenant: the ceilings that have no room now
// for their claims. Each action is judged as if it alone were approved.
func exceeds(tx policyFacts, actions ...*gatehouse.Action) error {
	list := actionsWithClaims(actions)
	if len(list) == 0 {
		return nil
	}
	var spans []gatehouse.CeilingSpan
	places := make(map[gatehouse.CeilingSpan]int)
	now := tx.Now()
	span := func(c gatehouse.CeilingClaim) gatehouse.CeilingSpan {
		return gatehouse.CeilingSpan{Ceiling: c.Ceiling, Scope: c.Scope, Since: now.Add(-c.Window.D())}
	}
	for _, a := range list {
		for _, c := range a.Ceilings {
			if _, known := places[span(c)]; !known {
				places[span(c)] = len(spans)
				spans = append(spans, span(c))
			}
		}
	}
	used, err := tx.CeilingUses(spans)
	if err != nil {
		return err
	}
	for _, a := range list {
		a.Exceeds = nil
		for _, c := range a.Ceilings {
			use := used[places[span(c)]]
			if use.Add(c.Amount).Cmp(c.Limit) > 0 {
				a.Exceeds = append(a.Exceeds, gatehouse.CeilingExcess{
					CeilingClaim: c, Used: use, Left: gatehouse.CeilingLeft(c.Limit, use),
					Never: c.Amount.Cmp(c.Limit) > 0,
				})
			}
		}
	}
	return nil
}

// FullestCeilings lists, for each tenant, the fullest account of each ceiling of
// its active policy, for metrics. It needs no caller.
func (g *Gate) FullestCeilings(ctx context.Context, maxTenants int) (map[string][]*gatehouse.CeilingAccount, error) {
	out := make(map[string][]*gatehouse.CeilingAccount)
	err := g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		clear(out)
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants[:min(len(tenants), maxTenants)] {
			if out[t.ID], err = g.ceilingAccounts(q.In(t.ID), t.ID, "", 1); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}
