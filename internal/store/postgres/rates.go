package postgres

import (
	"context"
	"time"
)

// spendRate adds the cost to full_at, or to now if the bucket is full. A bucket that lacks more
// than the maximum counts as lacking the maximum, so that a clock that fell back does not lock a
// principal out.
const spendRate = `WITH c AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now)
INSERT INTO rate_spent AS r (tenant, principal_id, full_at) SELECT $1, $2, c.now + $3::bigint FROM c
ON CONFLICT (tenant, principal_id) DO UPDATE
SET full_at = least(greatest(r.full_at, excluded.full_at - $3::bigint),
  excluded.full_at - $3::bigint + $4::bigint) + $3::bigint
RETURNING full_at - (SELECT now FROM c)`

// SpendRate takes cost from a principal's bucket, which all replicas share. cost is the time that refilling it
// takes. The result is the time from now until the bucket is full again; most is the time that refilling an
// empty bucket takes.
func (s *Store) SpendRate(
	ctx context.Context, tenant, principalID string, cost, most time.Duration,
) (lacks time.Duration, err error) {
	err = s.update(ctx, tenant, func(t *tx) error {
		t.wrote = true
		return t.lockAndRead([]query{ask(spendRate, func(r *row) error {
			lacks = time.Duration(r.Int()) * time.Microsecond
			return nil
		}, tenant, principalID, cost.Microseconds(), most.Microseconds())})
	})
	return lacks, err
}
