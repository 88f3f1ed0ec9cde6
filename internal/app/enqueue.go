package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// enqueue writes the push of an approved action, in the transaction that
// approves it: an approval without its push is never visible.
func (g *Gate) enqueue(tx gatehouse.Tx, a *gatehouse.Action) error {
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
	if err := tx.InsertPush(p); err != nil {
		return err
	}
	a.Push = p.Summary()
	return nil
}

// lanes is what targets are besides where some are worked on from outside.
type lanes interface {
	// Lane is "" for what the dispatcher carries out.
	Lane(tenant, connector string) string
}

// checkCeilings fails with ceiling_exceeded when a claim would pass its limit.
func checkCeilings(tx gatehouse.Tx, a *gatehouse.Action) error {
	for _, c := range a.Ceilings {
		used, err := tx.CeilingUsed(a.Tenant, c.Ceiling, c.Scope, tx.Now().Add(-c.Window.D()))
		if err != nil {
			return err
		}
		if used.Add(c.Amount).Cmp(c.Limit) > 0 {
			return ceilingExceeded(c, used)
		}
	}
	return nil
}

func ceilingExceeded(c gatehouse.CeilingClaim, used gatehouse.Decimal) error {
	return gatehouse.E(gatehouse.CodeCeilingExceeded, "the ceiling %s would be passed", c.Ceiling).
		With("ceiling", c.Ceiling).With("scope", c.Scope).
		With("limit", c.Limit).With("used", used).With("amount", c.Amount)
}

// fullCeiling tells, without a lock, that a claim of an action does not fit now; nil
// where each fits, and where the store is near and tells it as fast in a transaction.
func (g *Gate) fullCeiling(ctx context.Context, a *gatehouse.Action) (full, err error) {
	if !g.distant() || len(a.Ceilings) == 0 {
		return nil, nil
	}
	asked := *a
	if err := g.readExcesses(ctx, []*gatehouse.Action{&asked}); err != nil || len(asked.Exceeds) == 0 {
		return nil, err
	}
	return ceilingExceeded(asked.Exceeds[0].CeilingClaim, asked.Exceeds[0].Used), nil
}

// reserve takes what an action claims. The check locks each ceiling until the
// transaction ends, so that two of them never both fit in the last place.
func reserve(tx gatehouse.Tx, a *gatehouse.Action) error {
	if err := checkCeilings(tx, a); err != nil {
		return err
	}
	for _, c := range a.Ceilings {
		if err := tx.ReserveCeiling(a.Tenant, a.ID, c); err != nil {
			return err
		}
	}
	return nil
}
