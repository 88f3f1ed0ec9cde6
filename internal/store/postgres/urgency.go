package postgres

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ends are the ends of the due buckets after the time of the first page; the
// last one has none.
var ends = [shared.Buckets]time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 1 << 62}

// A page out of a thin cell is looked for among the next stretch of the inbox
// first, as many pages, for a cell's first page and for those after it; when it is
// not full then, up to thin rows are rather sorted than looked for any further.
const (
	firstStretch = 10
	stretch      = 4
	thin         = 1000
)

// The walk goes through the cells (due bucket and risk) in their order, and
// stops where the page is full. A LATERAL with a LIMIT can only be run row by
// row, so the order of the cells is that of the result. Of a cell it knows two
// orders, by expiry (due) and by age (old), of which only those rows are read that
// something asks for, in the order that they have. The ways to a cell's page, in
// turn:
//
//   - a cell that an earlier page began may well have more than this one takes: what
//     of it is among the next stretch by age, where that fills the page;
//   - a cell that is no larger than a page is read by expiry, and sorted;
//   - else what of it is among the next stretch by age, where that fills the
//     page, or is all there is;
//   - else it is thin: read by expiry, and sorted, when that is not many rows;
//   - else it is looked for by age, however far it is. The index has the expiry,
//     so what is passed costs no more than that; and the cursor says that the
//     cell is large, so the pages after it come to this way at once.
//
// Each index is named by an order that no other one has, which is why risk stands
// in bounds and in ORDER BY: equal to a value, the order is by expiry or by id alone,
// which other indexes have. There is no end to the rows by expiry but their
// number: the server ends a scan by the first column of a bound of two only, and
// an empty cell would read all of its risk.
const (
	// Of a cell by expiry: what the index has, and what filters besides ask for.
	dueColumns  = `tenant, id, expires_at`
	dueFiltered = dueColumns + `, seq, risk, action_type, proposer_id`

	walkFrom  = `SELECT n.at, k.bucket, s.large, s.place FROM (SELECT `
	walkCells = ` AS at OFFSET 0) n
CROSS JOIN LATERAL (SELECT bucket, risk, after, stretch, large,
    CASE WHEN bucket = 0 THEN n.at ELSE greatest(n.at, coalesce(?::bigint, n.at) + low) END AS low,
    CASE WHEN high IS NULL THEN 9223372036854775807 ELSE coalesce(?::bigint, n.at) + high END AS high
  FROM unnest(?::int[], ?::int[], ?::bigint[], ?::bigint[], ?::text[], ?::int[], ?::bool[]) AS c (bucket, risk, low, high, after, stretch, large) OFFSET 0) k
CROSS JOIN LATERAL (
  WITH due AS MATERIALIZED (SELECT `
	walkDue = ` FROM action
    WHERE tenant = $1 AND status = 'pending' AND (risk, expires_at) > (k.risk, k.low) AND risk <= k.risk
    ORDER BY risk, expires_at LIMIT ?),
  old AS MATERIALIZED (SELECT ctid AS place, seq, tenant, id, risk, expires_at, action_type, proposer_id FROM action
    WHERE tenant = $1 AND status = 'pending' AND (risk, id) > (k.risk, k.after) AND risk <= k.risk
    ORDER BY risk, id LIMIT k.stretch),
  near AS MATERIALIZED (SELECT a.place FROM old a WHERE a.expires_at > k.low AND a.expires_at <= k.high AND `
	walkWays = ` LIMIT ?),
  way AS MATERIALIZED (SELECT CASE WHEN k.large THEN -1
    WHEN k.after <> '' AND (SELECT count(*) FROM near) = ? THEN 0
    WHEN (SELECT count(*) FROM (SELECT expires_at FROM due LIMIT ?) f WHERE expires_at <= k.high) <= ? THEN ?::bigint
    WHEN (SELECT count(*) FROM near) = ? OR (SELECT count(*) FROM old) < k.stretch THEN 0
    WHEN coalesce((SELECT expires_at FROM due OFFSET ?) > k.high, true) THEN ?::bigint
    ELSE -1 END AS due)
  (SELECT (SELECT ctid FROM action WHERE tenant = $1 AND action.id = d.id) AS place, false AS large
    FROM (SELECT a.id FROM (SELECT * FROM due LIMIT greatest((SELECT way.due FROM way), 0)) a
    WHERE a.expires_at <= k.high AND a.id > k.after AND `
	walkOld = ` ORDER BY a.id LIMIT ?) d)
  UNION ALL
  (SELECT near.place, false FROM near WHERE (SELECT way.due FROM way) = 0)
  UNION ALL
  (SELECT a.ctid, true FROM action a WHERE (SELECT way.due FROM way) < 0 AND a.status = 'pending'
    AND (a.risk, a.id) > (k.risk, k.after) AND a.risk <= k.risk AND a.expires_at > k.low AND a.expires_at <= k.high AND `
	walkEnd = ` ORDER BY a.risk, a.id LIMIT ?)
) s LIMIT ?`
)

// urgent walks the due buckets from the cursor's on; within one the risks, the
// highest first; within one of those the actions, the oldest first.
func (t *readTx) urgent(w *walk, only gatehouse.RiskLevel, from shared.Cursor) {
	var buckets, risks []int32
	var lows []int64
	var highs []*int64
	var afters []string
	var stretches []int32
	var large []bool
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
			after, pages, known := "", firstStretch, false
			if only != 0 && risk != only {
				continue
			}
			if from.ID != "" && b == from.Bucket {
				switch cmp.Compare(int(risk), from.Risk) {
				case 1:
					continue
				case 0:
					after, pages, known = from.ID, stretch, from.Seq > 0
				}
			}
			buckets, risks, afters = append(buckets, int32(b)), append(risks, int32(risk)), append(afters, after)
			if w.one {
				pages = 0
			}
			lows, highs = append(lows, low), append(highs, high)
			stretches, large = append(stretches, int32(pages*w.limit)), append(large, known)
		}
	}
	var start any
	if from.AsOf != 0 {
		start = from.AsOf
	}
	where, limit := w.sql(), w.limit
	now, high := t.nowIfKnown()
	few := max(thin, limit)
	if w.one {
		few = limit
	}
	columns := dueColumns
	if len(w.where) > 1 {
		columns = dueFiltered
	}
	w.args = slices.Grow(w.args, 32)
	var b strings.Builder
	b.Grow(2560)
	part := func(before, sql string, args ...any) {
		b.WriteString(before)
		w.write(&b, sql, args...)
	}
	part(walkFrom, clock, now, high)
	part("", walkCells, start, start, buckets, risks, lows, highs, afters, stretches, large)
	part(columns, walkDue, few+1)
	part(where, walkWays, limit, limit, limit+1, limit, limit+1, limit, few, few+1)
	part(where, walkOld, limit)
	part(where, walkEnd, limit, limit)
	w.places = b.String()
	w.before = func(p, q place) bool {
		return cmp.Or(cmp.Compare(p.bucket, q.bucket), cmp.Compare(q.risk, p.risk), cmp.Compare(p.id, q.id)) < 0
	}
}
