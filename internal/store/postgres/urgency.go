package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ends are the ends of the due buckets after the time of the first page; the
// last one has none.
var ends = [shared.Buckets]time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 1 << 62}

// smallBucket is how many rows of a due bucket and risk are rather sorted than
// looked for along the inbox index.
const smallBucket = 200

// urgent walks the due buckets from the cursor's on, a round trip each; within
// one the risks, the highest first; within one of those the actions, the
// oldest first.
func (t *readTx) urgent(c condition, only gatehouse.RiskLevel, from shared.Cursor, limit int) (rows []place, err error) {
	asOf := time.UnixMicro(from.AsOf)
	for b := from.Bucket; b < len(ends) && len(rows) < limit; b++ {
		low, high := t.Now(), time.UnixMicro(1<<62)
		if b > 0 && asOf.Add(ends[b-1]).After(low) {
			low = asOf.Add(ends[b-1])
		}
		if b < len(ends)-1 {
			high = asOf.Add(ends[b])
		}
		if !low.Before(high) {
			continue
		}
		var risks []query
		for risk := int(gatehouse.L5); risk >= int(gatehouse.L1); risk-- {
			if only != 0 && risk != int(only) {
				continue
			}
			here := c.copy()
			if b == from.Bucket && from.ID != "" {
				if risk > from.Risk {
					continue
				}
				if risk == from.Risk {
					here.add("a.id > ?", from.ID)
				}
			}
			risks = append(risks, bucket(here, risk, low, high, limit, func(r *row) error {
				if len(rows) < limit {
					rows = append(rows, place{seq: r.int(), id: r.text(), bucket: b, risk: risk})
				}
				return nil
			}))
		}
		if len(risks) == 0 {
			continue
		}
		if err := t.read(risks...); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// bucket reads the actions of one due bucket and risk. A small bucket is read
// by expiry and sorted; out of a large one they are picked by age, and the sum
// keeps the planner from sorting it after all.
func bucket(c condition, risk int, low, high time.Time, limit int, fn func(*row) error) query {
	sql := c.place(`WITH due AS MATERIALIZED (SELECT seq, tenant, id, risk, action_type, proposer_id FROM action
  WHERE tenant = $1 AND status = 'pending' AND risk = ? AND expires_at > ? AND expires_at <= ? LIMIT ?),
size AS MATERIALIZED (SELECT count(*) AS n FROM due)
`, risk, low, high, smallBucket+1)
	where := c.sql()
	sql += `(SELECT a.seq, a.id FROM due a WHERE (SELECT n FROM size) <= ` + c.place(`? AND `, smallBucket) + where +
		c.place(` ORDER BY a.id LIMIT ?)`, limit)
	sql += `
UNION ALL (SELECT a.seq, a.id FROM action a WHERE (SELECT n FROM size) > ` + c.place(`? AND `, smallBucket) + where +
		c.place(` AND a.status = 'pending' AND a.risk = ? AND a.expires_at + 0 > ? AND a.expires_at + 0 <= ? ORDER BY a.id LIMIT ?)`,
			risk, low, high, limit)
	return ask(sql, fn, c.args...)
}
