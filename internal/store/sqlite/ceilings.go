package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ReserveCeilings stores the claims of an action if each fits under its limit: the writer's transaction
// is the lock.
func (t *tx) ReserveCeilings(actionID string, claims ...gatehouse.CeilingClaim) (*gatehouse.CeilingExcess, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	list, err := shared.ClaimsAt(t.at, claims)
	if err != nil {
		return nil, err
	}
	seq, err := t.rowOf(t.tenant, actionID)
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, gatehouse.ErrNotFound
	}
	for i, c := range list {
		used, err := t.used(account{t.tenant, c.Ceiling, c.Scope}, c.Since)
		if err != nil {
			return nil, err
		}
		if !c.Fits(used) {
			return shared.ExcessOf(claims[i], used), nil
		}
	}
	if err := t.releaseClaims(seq); err != nil {
		return nil, err
	}
	text, latest := shared.EncodeClaims(list)
	_, err = t.exec(`
INSERT INTO ceiling_claim (action_seq, tenant, claims, counted_at, reserved_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (action_seq) DO UPDATE
SET claims = excluded.claims, counted_at = excluded.counted_at, reserved_at = excluded.reserved_at,
  released_at = NULL`, seq, t.tenant, text, latest, t.at)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		t.count(c, c.Amount)
	}
	return nil, nil
}

// ReleaseCeilings releases the claims of an action.
func (t *tx) ReleaseCeilings(actionID string) error {
	seq, err := t.rowOf(t.tenant, actionID)
	if err != nil {
		return err
	}
	return t.releaseClaims(seq)
}

// releaseClaims releases the claims of the action in row seq.
func (t *tx) releaseClaims(seq int64) error {
	var held string
	err := t.each(`UPDATE ceiling_claim SET released_at = ? WHERE action_seq = ? AND released_at IS NULL
RETURNING claims`, func(r *stmt) error { held = r.Text(); return nil }, t.at, seq)
	if err != nil || held == "" {
		return err
	}
	list, err := shared.DecodeClaims(held)
	for _, c := range list {
		t.count(c, -c.Amount)
	}
	return err
}

// LockCeilings is CeilingUses: the writer's transaction is the lock.
func (t *tx) LockCeilings(spans ...gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	return t.CeilingUses(spans)
}

// CeilingUses returns the sum of each span, with the changes of this batch.
func (t *tx) CeilingUses(spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	list := make([]gatehouse.Decimal, len(spans))
	for i, s := range spans {
		used, err := t.used(account{t.tenant, s.Ceiling, s.Scope}, s.Since.UnixMicro())
		if err != nil {
			return nil, err
		}
		list[i] = gatehouse.DecimalFromMicros(used)
	}
	return list, nil
}

// ListCeilingUse stores the changes of this batch first.
func (t *tx) ListCeilingUse(
	ceiling, scope string, since time.Time, limit int,
) ([]gatehouse.CeilingUse, error) {
	if err := t.w.sums.store(t.c); err != nil {
		return nil, err
	}
	return t.readTx.ListCeilingUse(ceiling, scope, since, limit)
}

// ListCeilingUse sums by scope. An overflowing sum is an error.
func (t *readTx) ListCeilingUse(
	ceiling, scope string,
	since time.Time,
	limit int,
) (list []gatehouse.CeilingUse, err error) {
	err = t.each(`SELECT scope, sum(amount) FROM ceiling_sum
WHERE tenant = ?1 AND ceiling = ?2 AND counted_at > ?4
  AND (?3 = '' OR scope = ?3 OR substr(scope, 1, length(?3) + 1) = ?3 || '/')
GROUP BY scope HAVING sum(amount) > 0 ORDER BY sum(amount) DESC, scope LIMIT ?5`,
		func(r *stmt) error {
			list = append(list, gatehouse.CeilingUse{Scope: r.Text(), Used: gatehouse.DecimalFromMicros(r.Int())})
			return nil
		}, t.tenant, ceiling, scope, since, limit)
	return list, err
}

// CeilingUses returns the sum of each span. An overflowing sum is an error.
func (t *readTx) CeilingUses(spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	used := make([]gatehouse.Decimal, 0, len(spans))
	for _, s := range spans {
		n, err := t.number(`SELECT coalesce(sum(amount), 0) FROM ceiling_sum
WHERE tenant = ? AND ceiling = ? AND scope = ? AND counted_at > ?`, t.tenant, s.Ceiling, s.Scope, s.Since)
		if err != nil {
			return nil, err
		}
		used = append(used, gatehouse.DecimalFromMicros(n))
	}
	return used, nil
}
