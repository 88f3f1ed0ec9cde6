package postgres

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ends are the ends of the due buckets after the time of the first page; the
// last one has none.
var ends = [shared.Buckets]time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 1 << 62}

// A page out of a thin cell is looked for among the next stretch of the inbox
// first; when it is not full then, up to thin rows are rather sorted than looked
// for any further.
const (
	stretch = 500
	thin    = 1000
)

// The walk goes through the cells (due bucket and risk) in their order, and
// stops where the page is full. A LATERAL with a LIMIT can only be run row by
// row, so the order of the cells is that of the result. Of a cell it knows two
// orders, by expiry (due) and by age (old), of which only those rows are read that
// something asks for, in the order that they have. The ways to a cell's page, in
// turn:
//
//   - a cell that is no larger than a page is read by expiry, and sorted;
//   - else what of it is among the next stretch by age, where that fills the
//     page, or is all there is;
//   - else it is thin: read by expiry, and sorted, when that is not many rows,
//     which the index alone can tell;
//   - else it is looked for by age, however far it is.
//
// Each index is named by an order that no other one has, which is why risk stands
// in bounds and in ORDER BY: equal to a value, the order is by expiry or by id alone,
// which other indexes have. There is no end to the rows by expiry but their
// number: the server ends a scan by the first column of a bound of two only, and
// an empty cell would read all of its risk.
const (
	walkCells = `SELECT x.bucket, x.risk, x.at, x.seq, x.id, ` + size + ` FROM (SELECT k.bucket, k.risk, n.at, s.seq, s.id
FROM (SELECT %s AS at OFFSET 0) n
CROSS JOIN LATERAL (SELECT bucket, risk, after,
    CASE WHEN bucket = 0 THEN n.at ELSE greatest(n.at, coalesce(?::bigint, n.at) + low) END AS low,
    CASE WHEN high IS NULL THEN 9223372036854775807 ELSE coalesce(?::bigint, n.at) + high END AS high
  FROM unnest(?::int[], ?::int[], ?::bigint[], ?::bigint[], ?::text[]) AS c (bucket, risk, low, high, after) OFFSET 0) k
CROSS JOIN LATERAL (
  WITH due AS MATERIALIZED (SELECT seq, tenant, id, risk, expires_at, action_type, proposer_id FROM action
    WHERE tenant = $1 AND status = 'pending' AND (risk, expires_at) > (k.risk, k.low) AND risk <= k.risk
    ORDER BY risk, expires_at LIMIT ?),
  old AS MATERIALIZED (SELECT seq, tenant, id, risk, expires_at, action_type, proposer_id FROM action
    WHERE tenant = $1 AND status = 'pending' AND (risk, id) > (k.risk, k.after) AND risk <= k.risk
    ORDER BY risk, id LIMIT ?),
  near AS MATERIALIZED (SELECT a.seq, a.id FROM old a WHERE a.expires_at > k.low AND a.expires_at <= k.high AND `
	walkWays = ` LIMIT ?),
  way AS MATERIALIZED (SELECT CASE
    WHEN (SELECT count(*) FROM (SELECT expires_at FROM due LIMIT ?) f WHERE expires_at <= k.high) <= ? THEN ?::bigint
    WHEN (SELECT count(*) FROM near) = ? OR (SELECT count(*) FROM old) < ? THEN 0
    WHEN coalesce((SELECT expires_at FROM action
      WHERE tenant = $1 AND status = 'pending' AND (risk, expires_at) > (k.risk, k.low) AND risk <= k.risk
      ORDER BY risk, expires_at OFFSET ? LIMIT 1) > k.high, true) THEN ?::bigint
    ELSE -1 END AS due)
  (SELECT a.seq, a.id FROM (SELECT * FROM due LIMIT greatest((SELECT way.due FROM way), 0)) a
    WHERE a.expires_at <= k.high AND a.id > k.after AND `
	walkOld = ` ORDER BY a.id LIMIT ?)
  UNION ALL
  (SELECT near.seq, near.id FROM near WHERE (SELECT way.due FROM way) = 0)
  UNION ALL
  (SELECT a.seq, a.id FROM action a WHERE (SELECT way.due FROM way) < 0 AND a.status = 'pending'
    AND (a.risk, a.id) > (k.risk, k.after) AND a.risk <= k.risk AND a.expires_at > k.low AND a.expires_at <= k.high AND `
	walkEnd = ` ORDER BY a.risk, a.id LIMIT ?)
) s LIMIT ?) x`
)

// urgent walks the due buckets from the cursor's on; within one the risks, the
// highest first; within one of those the actions, the oldest first. It returns
// the time that the buckets are relative to.
func (t *readTx) urgent(c condition, only gatehouse.RiskLevel, from shared.Cursor, limit int) (rows []place, asOf int64, err error) {
	var buckets, risks []int32
	var lows []int64
	var highs []*int64
	var afters []string
	for b := from.Bucket; b < len(ends); b++ {
		var low int64
		var high *int64
		if b > 0 {
			low = ends[b-1].Microseconds()
		}
		if b < len(ends)-1 {
			end := ends[b].Microseconds()
			high = &end
		}
		for risk := gatehouse.L5; risk >= gatehouse.L1; risk-- {
			after := ""
			if only != 0 && risk != only {
				continue
			}
			if from.ID != "" && b == from.Bucket {
				switch cmp.Compare(int(risk), from.Risk) {
				case 1:
					continue
				case 0:
					after = from.ID
				}
			}
			buckets, risks, afters = append(buckets, int32(b)), append(risks, int32(risk)), append(afters, after)
			lows, highs = append(lows, low), append(highs, high)
		}
	}
	var start any
	if from.AsOf != 0 {
		start = from.AsOf
	}
	where := c.sql()
	now, high := t.nowIfKnown()
	few, far := max(thin, limit), stretch
	if c.one {
		few, far = limit, 0
	}
	sql := fmt.Sprintf(walkCells, c.place(clock, now, high))
	sql = c.place(sql, start, start, buckets, risks, lows, highs, afters, few+1, far) + where +
		c.place(walkWays, limit, limit+1, limit, limit+1, limit, far, few, few+1) + where +
		c.place(walkOld, limit) + where + c.place(walkEnd, limit, limit)
	asOf = from.AsOf
	err = t.each(sql, func(r *row) error {
		p := place{bucket: int(r.int()), risk: int(r.int())}
		if at := r.int(); asOf == 0 {
			asOf = at
		}
		p.seq, p.id, p.size = r.int(), r.text(), r.int()
		if n := len(rows); n > 0 && !rows[n-1].before(p) {
			return fmt.Errorf("postgres: the walk of the inbox came to %v after %v", p, rows[n-1])
		}
		rows = append(rows, p)
		return nil
	}, c.args...)
	return rows, asOf, err
}

// before is the order of the inbox.
func (p place) before(q place) bool {
	return cmp.Or(cmp.Compare(p.bucket, q.bucket), cmp.Compare(q.risk, p.risk), cmp.Compare(p.id, q.id)) < 0
}
