package gate

import (
	"github.com/gatehouse-dev/gatehouse"
)

// enqueue writes the push of an action that policy has approved, in the transaction that
// approves it: an approval without its push is never visible.
func (g *Gate) enqueue(tx gatehouse.Tx, a *gatehouse.Action) error {
	return tx.InsertPush(g.newPush(tx, a))
}

// newPush makes the push of an approved action.
func (g *Gate) newPush(tx gatehouse.Tx, a *gatehouse.Action) *gatehouse.Push {
	now := tx.Now()
	due := now.Add(a.HoldFor.D())
	p := &gatehouse.Push{
		ID: NewID("psh"), Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector,
		IdempotencyKey: a.IdempotencyKey, Digest: a.Digest, Status: gatehouse.PushQueued,
		NotBefore: due, NextAttempt: &due, CreatedAt: now,
	}
	if l, ok := g.targets.(lanes); ok {
		p.Lane = l.Lane(a.Tenant, a.Connector)
	}
	a.Push = p.Summary()
	return p
}

// lanes is an optional ability of Targets: some connectors are served by outside
// workers.
type lanes interface {
	// Lane returns "" for connectors that the dispatcher serves.
	Lane(tenant, connector string) string
}

// checkCeilings locks the ceilings of the action's claims. It fails with ceiling_exceeded when a claim exceeds
// its ceiling.
func checkCeilings(tx gatehouse.Tx, a *gatehouse.Action) error {
	spans := make([]gatehouse.CeilingSpan, len(a.Ceilings))
	for i, c := range a.Ceilings {
		spans[i] = gatehouse.CeilingSpan{Ceiling: c.Ceiling, Scope: c.Scope, Since: tx.Now().Add(-c.Window.D())}
	}
	used, err := tx.LockCeilings(spans...)
	if err != nil {
		return err
	}
	for i, c := range a.Ceilings {
		if used[i].Add(c.Amount).Cmp(c.Limit) > 0 {
			return ceilingExceeded(c, used[i])
		}
	}
	return nil
}

func ceilingExceeded(c gatehouse.CeilingClaim, used gatehouse.Decimal) error {
	return gatehouse.E(gatehouse.CodeCeilingExceeded, "the ceiling %s would be exceeded", c.Ceiling).
		With("ceiling", c.Ceiling).With("scope", c.Scope).
		With("limit", c.Limit).With("used", used).With("amount", c.Amount)
}

// reserve stores the action's claims. It fails with ceiling_exceeded when a claim exceeds its ceiling. Each
// ceiling is locked until the transaction ends, so that two actions never both take the last free amount.
func reserve(tx gatehouse.Tx, a *gatehouse.Action) error {
	excess, err := tx.ReserveCeilings(a.ID, a.Ceilings...)
	if err != nil || excess == nil {
		return err
	}
	return ceilingExceeded(excess.CeilingClaim, excess.Used)
}
