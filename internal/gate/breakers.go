package gate

import (
	"context"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// ListBreakers implements [gatehouse.DispatchService].
func (g *Gate) ListBreakers(ctx context.Context) (out []gatehouse.BreakerState, err error) {
	err = g.View(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		out, err = g.breakers(tx, c.Principal.Tenant, g.ReadsAs(c.Principal))
		return err
	})
	return out, err
}

// breakers returns the breakers of a tenant. It counts at most one page of waiting
// pushes. Unless readBy is "", it leaves out the causes, which may describe the calls of others.
func (g *Gate) breakers(tx pushFacts, tenant, readBy string) ([]gatehouse.BreakerState, error) {
	page, err := tx.ListPushes(gatehouse.PushFilter{
		Status: gatehouse.PushQueued, Limit: gatehouse.MaxLimit, ReadBy: readBy,
	})
	if err != nil {
		return nil, err
	}

	states := make(map[string]gatehouse.BreakerState)
	if connectors, ok := g.targets.(ConnectorLister); ok {
		for _, name := range connectors.Names(tenant) {
			if !OwnConnector(name) {
				states[name] = gatehouse.BreakerState{Connector: name, State: gatehouse.BreakerClosed}
			}
		}
	}
	if lister, ok := g.drainer.(BreakerLister); ok {
		for _, b := range lister.Breakers(tenant) {
			if _, known := states[b.Connector]; known {
				states[b.Connector] = b
			}
		}
	}

	for _, p := range page.Items {
		b, known := states[p.Connector]
		if p.ErrorCode != gatehouse.CodeBreakerOpen || !known {
			continue
		}
		b.Waiting++
		// If this replica's breaker is closed (no Since) and the push still has to
		// wait, the breaker of another replica is open.
		if b.Since == nil && p.NextAttempt != nil && p.NextAttempt.After(tx.Now()) {
			b.State = gatehouse.BreakerOpen
			if b.NextTrialAt == nil || p.NextAttempt.Before(*b.NextTrialAt) {
				b.NextTrialAt, b.Cause = p.NextAttempt, p.LastError
			}
		}
		states[p.Connector] = b
	}

	out := make([]gatehouse.BreakerState, 0, len(states))
	for _, name := range slices.Sorted(maps.Keys(states)) {
		b := states[name]
		if readBy != "" {
			b.Cause = ""
		}
		out = append(out, b)
	}
	return out, nil
}

// OpenBreakers lists, by tenant, the breakers that are not closed. It is for the
// operator of the server, and needs no caller.
func (g *Gate) OpenBreakers(ctx context.Context) (map[string][]gatehouse.BreakerState, error) {
	out := make(map[string][]gatehouse.BreakerState)
	err := g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		clear(out)
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			all, err := g.breakers(q.In(t.ID), t.ID, "")
			if err != nil {
				return err
			}
			for _, b := range all {
				if b.State != gatehouse.BreakerClosed {
					out[t.ID] = append(out[t.ID], b)
				}
			}
		}
		return nil
	})
	return out, err
}
