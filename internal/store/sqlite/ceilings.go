package sqlite

import (
	"encoding/json"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ReserveCeilings stores claims and replaces earlier claims of the same
// action, ceiling and scope. Amounts are stored in millionths, rounded away
// from zero, so a sum is never too low.
func (t *tx) ReserveCeilings(actionID string, claims ...gatehouse.CeilingClaim) error {
	for _, c := range claims {
		amount, err := c.Amount.Micros()
		if err != nil {
			return err
		}
		err = t.found(`
INSERT INTO ceiling_claim (action_seq, ceiling, scope, tenant, amount, reserved_at, counted_at)
SELECT seq, ?, ?, tenant, ?, ?, ? FROM action WHERE tenant = ? AND id = ?
ON CONFLICT (action_seq, ceiling, scope) DO UPDATE
SET amount = excluded.amount, reserved_at = excluded.reserved_at, counted_at = excluded.counted_at, released_at = NULL`,
			c.Ceiling, c.Scope, amount, t.at, c.CountedAt(t.at), t.tenant, actionID)
		if err != nil {
			return err
		}
	}
	return nil
}

// LockCeilings is CeilingUses: the writer's transaction is the lock.
func (t *tx) LockCeilings(spans ...gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	if len(spans) == 0 {
		return nil, nil
	}
	return t.CeilingUses(spans)
}

// ListCeilingUse sums by scope. An overflowing sum is an error.
func (t *readTx) ListCeilingUse(
	ceiling, scope string,
	since time.Time,
	limit int,
) (list []gatehouse.CeilingUse, err error) {
	err = t.each(`SELECT scope, sum(amount) FROM ceiling_sum
WHERE tenant = ? AND ceiling = ? AND (? = '' OR scope = ?) AND counted_at > ?
GROUP BY scope ORDER BY sum(amount) DESC, scope LIMIT ?`,
		func(r *stmt) error {
			list = append(list, gatehouse.CeilingUse{Scope: r.Text(), Used: gatehouse.DecimalFromMicros(r.Int())})
			return nil
		}, t.tenant, ceiling, scope, scope, since, limit)
	return list, err
}

// CeilingUses returns the sum of each span. An overflowing sum is an error.
func (t *readTx) CeilingUses(spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	rows := make([][3]any, len(spans))
	for i, s := range spans {
		rows[i] = [3]any{s.Ceiling, s.Scope, s.Since.UnixMicro()}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	used := make([]gatehouse.Decimal, 0, len(spans))
	err = t.each(`SELECT coalesce((SELECT sum(amount) FROM ceiling_sum
  WHERE tenant = ? AND ceiling = u.value ->> 0 AND scope = u.value ->> 1 AND counted_at > u.value ->> 2), 0)
FROM json_each(?) u ORDER BY u.key`,
		func(r *stmt) error {
			used = append(used, gatehouse.DecimalFromMicros(r.Int()))
			return nil
		}, t.tenant, string(list))
	return used, err
}

// ReleaseCeilings releases the claims of an action.
func (t *tx) ReleaseCeilings(actionID string) error {
	_, err := t.exec(`UPDATE ceiling_claim SET released_at = ?
WHERE action_seq = (SELECT seq FROM action WHERE tenant = ? AND id = ?) AND released_at IS NULL`,
		t.at, t.tenant, actionID)
	return err
}
