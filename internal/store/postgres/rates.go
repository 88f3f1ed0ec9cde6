package postgres

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// spendRate moves full_at on by the cost, from now where the bucket is full. A
// bucket that lacks more than the most counts as one that lacks the most: a
// clock that fell back does not lock a principal out.
const spendRate = `WITH c AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now)
INSERT INTO rate_spent AS r (tenant, principal_id, full_at) SELECT $1, $2, c.now + $3::bigint FROM c
ON CONFLICT (tenant, principal_id) DO UPDATE
SET full_at = least(greatest(r.full_at, excluded.full_at - $3::bigint), excluded.full_at - $3::bigint + $4::bigint) + $3::bigint
RETURNING full_at - (SELECT now FROM c)`

// SpendRate takes cost out of the bucket of a principal that all replicas share,
// in the time that it takes to fill again, and returns how long it takes from
// now until the bucket is full. most is the time that an empty bucket takes.
func (s *Store) SpendRate(
	ctx context.Context, tenant, principalID string, cost, most time.Duration,
) (lacks time.Duration, err error) {
	err = s.Update(ctx, func(x gatehouse.Tx) error {
		t := x.(walls).in(tenant)
		t.wrote = true
		return t.locked([]query{ask(spendRate, func(r *row) error {
			lacks = time.Duration(r.int()) * time.Microsecond
			return nil
		}, tenant, principalID, cost.Microseconds(), most.Microseconds())})
	})
	return lacks, err
}
