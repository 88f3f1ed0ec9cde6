package gate

import (
	"github.com/gatehouse-dev/gatehouse"
)

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
