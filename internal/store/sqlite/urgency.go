package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// smallBucket is the number of actions with the same due bucket and risk level
// below which sorting them is cheaper than a walk along the index action_inbox.
// At this number, both cost about the same with 100,000 pending actions.
const smallBucket = 500

// urgent walks the due buckets from the cursor on. Within a bucket, the highest
// risk level comes first; within a level, the oldest action. Expired actions are
// left out. only is the only risk level to list; 0 lists all.
func (t *readTx) urgent(
	c condition, only gatehouse.RiskLevel, from shared.Cursor, limit int,
) (rows []place, err error) {
	asOf := time.UnixMicro(from.AsOf)
	for b := from.Bucket; b < len(shared.BucketEnds); b++ {
		low, high := t.at, time.UnixMicro(1<<62)
		if b > 0 && asOf.Add(shared.BucketEnds[b-1]).After(low) {
			low = asOf.Add(shared.BucketEnds[b-1])
		}
		if b < len(shared.BucketEnds)-1 {
			high = asOf.Add(shared.BucketEnds[b])
		}
		if !low.Before(high) {
			continue
		}
		for risk := int(gatehouse.L5); risk >= int(gatehouse.L1); risk-- {
			if only != 0 && risk != int(only) {
				continue
			}
			here := c
			if b == from.Bucket && from.ID != "" {
				if risk > from.Risk {
					continue
				}
				if risk == from.Risk {
					here = c.with("a.id > ?", from.ID)
				}
			}
			if rows, err = t.bucket(rows, here, b, risk, low, high, limit); err != nil || len(rows) >= limit {
				return rows, err
			}
		}
	}
	return rows, nil
}

// bucket reads the actions of one due bucket and risk. A small bucket is read
// by expiry and sorted; a large one is read in order of age. The first argument
// of a condition is the tenant.
func (t *readTx) bucket(rows []place, c condition, bucket, risk int, low, high time.Time, limit int) ([]place, error) {
	n, err := t.number(`SELECT count(*) FROM (SELECT 1 FROM action INDEXED BY action_due
WHERE tenant = ? AND status = 'pending' AND risk = ? AND expires_at > ? AND expires_at <= ? LIMIT ?)`,
		c.args[0], risk, low, high, smallBucket)
	if err != nil || n == 0 {
		return rows, err
	}
	index := "action_inbox"
	if n < smallBucket {
		index = "action_due"
	}
	c = c.with("a.status = 'pending' AND a.risk = ? AND a.expires_at > ? AND a.expires_at <= ?", risk, low, high)
	err = t.each(`SELECT a.seq, a.id FROM action a INDEXED BY `+index+` WHERE `+c.sql()+` ORDER BY a.id LIMIT ?`,
		func(r *stmt) error {
			rows = append(rows, place{seq: r.Int(), id: r.Text(), bucket: bucket, risk: risk})
			return nil
		}, append(c.args, limit-len(rows))...)
	return rows, err
}
