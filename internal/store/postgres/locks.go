package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// lockOne is readTx.one for a statement that locks the row; scan reads the row.
func lockOne[T any](t *tx, scan func(shared.Row) (*T, error), sql string, args ...any) (found *T, err error) {
	err = t.lockAndRead([]query{ask(sql, func(r *row) error { found, err = scan(r); return err }, args...)})
	if err == nil && found == nil {
		err = gatehouse.ErrNotFound
	}
	return found, err
}

// LockGrant is FindGrant with a lock on the row.
func (t *tx) LockGrant(id string) (*gatehouse.Grant, error) {
	return lockOne(t, shared.ScanGrant, `
SELECT g.tenant, g.id, g.grantor_id, coalesce(p.name, g.grantor_id), g.agent_id, coalesce(a.name, g.agent_id),
  g.connector, g.fingerprint, g.operation, g.condition, g.level, g.count, g.amounts, g.used, g.used_amounts,
  g.created_at, g.expires_at, g.ended_at, g.ended_by, g.end_reason
FROM action_grant g
LEFT JOIN principal p ON p.tenant = g.tenant AND p.id = g.grantor_id
LEFT JOIN principal a ON a.tenant = g.tenant AND a.id = g.agent_id
WHERE g.tenant = $1 AND g.id = $2 FOR NO KEY UPDATE OF g`, t.tenant, id)
}

// LockMandate is FindMandate with a lock on the row.
func (t *tx) LockMandate(id string) (*gatehouse.Mandate, error) {
	return lockOne(t, shared.ScanMandate,
		`SELECT body FROM mandate WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE`, t.tenant, id)
}

// LockChannelState inserts the row if it is missing, and locks it.
func (t *tx) LockChannelState(channel string) (*gatehouse.ChannelState, error) {
	err := t.Write(`
INSERT INTO channel_state (tenant, channel, failures, last_error) VALUES ($1, $2, 0, '') ON CONFLICT DO NOTHING`,
		t.tenant, channel)
	if err != nil {
		return nil, err
	}
	return lockOne(t, shared.ScanChannelState, `
SELECT tenant, channel, failures, failing_since, flaky, minutes, off_at, last_error, last_ok_at
FROM channel_state WHERE tenant = $1 AND channel = $2 FOR NO KEY UPDATE`, t.tenant, channel)
}

// LockBulkCalls inserts the person's row if it is missing, and locks it.
func (t *tx) LockBulkCalls(person string) ([]time.Time, error) {
	times, err := lockOne(t, shared.ScanBulkCalls, `
INSERT INTO bulk_calls (tenant, person, times) VALUES ($1, $2, '[]')
ON CONFLICT (tenant, person) DO UPDATE SET times = bulk_calls.times RETURNING times`, t.tenant, person)
	if err != nil {
		return nil, err
	}
	return *times, nil
}

// LockBudget serializes the claims on a tenant's budgets.
func (t *tx) LockBudget() error { return t.lockAndRead([]query{lockFor("budget", t.tenant)}) }

// LockFirstPrincipal serializes the creation of a tenant's first principal.
func (t *tx) LockFirstPrincipal() error {
	return t.lockAndRead([]query{lockFor("first principal", t.tenant)})
}
