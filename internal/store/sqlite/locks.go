package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The single writer already excludes all other writers: these methods lock nothing.

// LockGrant is FindGrant.
func (t *tx) LockGrant(id string) (*gatehouse.Grant, error) { return t.FindGrant(id) }

// LockMandate is FindMandate.
func (t *tx) LockMandate(id string) (*gatehouse.Mandate, error) { return t.FindMandate(id) }

// LockChannelState inserts the row if it is missing, and reads it.
func (t *tx) LockChannelState(channel string) (s *gatehouse.ChannelState, err error) {
	err = t.Write(`
INSERT INTO channel_state (tenant, channel, failures, last_error) VALUES ($1, $2, 0, '') ON CONFLICT DO NOTHING`,
		t.tenant, channel)
	if err != nil {
		return nil, err
	}
	err = t.one(`
SELECT tenant, channel, failures, failing_since, flaky, minutes, off_at, last_error, last_ok_at
FROM channel_state WHERE tenant = $1 AND channel = $2`,
		func(r *stmt) (err error) { s, err = shared.ScanChannelState(r); return err }, t.tenant, channel)
	return s, err
}

// LockBulkCalls reads the times of the person's bulk calls.
func (t *tx) LockBulkCalls(person string) ([]time.Time, error) {
	var times *[]time.Time
	err := t.each(`SELECT times FROM bulk_calls WHERE tenant = $1 AND person = $2`,
		func(r *stmt) (err error) { times, err = shared.ScanBulkCalls(r); return err }, t.tenant, person)
	if err != nil || times == nil {
		return nil, err
	}
	return *times, nil
}

// LockBudget does nothing.
func (t *tx) LockBudget() error { return nil }

// LockFirstPrincipal does nothing.
func (t *tx) LockFirstPrincipal() error { return nil }
