package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// A cell holds the pending actions of one risk in one due bucket. A thin cell holds few of all pending actions of its
// risk. To fill a page from such a cell, the query first scans a stretch of the pending actions of the risk by age:
// firstStretch pages for the first page of the cell, stretch pages for later ones. If the stretch does not fill the
// page, the query sorts up to thin rows of the cell rather than scan further.
const (
	firstStretch = 10
	stretch      = 4
	thin         = 1000
)

// The query visits the cells in order and stops when the page is full. A
// LATERAL with a LIMIT can only run row by row, so the order of the cells is the order of the
// result. It can read a cell in two orders, by expiry (due) and by age (old), and reads each
// only as far as needed. The ways to fill the page from a cell, in order:
//
//   - An earlier page began the cell, so the cell may well exceed this page: take its rows
//     among the next stretch by age, if they fill the page.
//   - The cell is no larger than a page: read it by expiry and sort.
//   - Take its rows among the next stretch by age, if they fill the page or are all there are.
//   - The cell is thin: read it by expiry and sort, if that takes few rows.
//   - Otherwise scan by age, however far that goes. The index contains the expiry, so a skipped
//     row costs no more than its index entry. The cursor marks the cell as large, so later
//     pages begin here at once.
//
// Each index is selected by an order that no other index has. Therefore risk is in the bounds and
// in ORDER BY: with risk equal to a value, the order would be by expiry or by id alone, which other
// indexes have too. The scan by expiry is bounded only by its number of rows: of a two-column
// bound, only the first column ends a scan, so for an empty cell the server would read all rows of
// that risk.
const (
	// The columns of a cell by expiry: those of the index, and those that filters need in
	// addition.
	dueColumns  = `tenant, id, expires_at`
	dueFiltered = dueColumns + `, seq, risk, action_type, proposer_id`

	walkFrom  = `SELECT n.at, k.bucket, s.large, s.place FROM (SELECT `
	walkCells = ` AS at OFFSET 0) n
CROSS JOIN LATERAL (SELECT bucket, risk, after, stretch, large,
    CASE WHEN bucket = 0 THEN n.at ELSE greatest(n.at, coalesce(?::bigint, n.at) + low) END AS low,
    CASE WHEN high IS NULL THEN 9223372036854775807 ELSE coalesce(?::bigint, n.at) + high END AS high
  FROM unnest(?::int[], ?::int[], ?::bigint[], ?::bigint[], ?::text[], ?::int[], ?::bool[])
    AS c (bucket, risk, low, high, after, stretch, large) OFFSET 0) k
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

// urgent makes w list actions by due bucket, from the cursor's bucket on, then by risk, highest first, then by age,
// oldest first.
func (t *readTx) urgent(w *pageScan, only gatehouse.RiskLevel, from shared.Cursor) {
	var buckets, risks []int32
	var lows []int64
	var highs []*int64
	var afters []string
	var stretches []int32
	var large []bool
	for b := from.Bucket; b < len(shared.BucketEnds); b++ {
		var low int64
		var high *int64
		if b > 0 {
			low = shared.BucketEnds[b-1].Microseconds()
		}
		if b < len(shared.BucketEnds)-1 {
			end := shared.BucketEnds[b].Microseconds()
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
	w.positions = b.String()
	w.before = func(p, q pagePosition) bool {
		return cmp.Or(cmp.Compare(p.bucket, q.bucket), cmp.Compare(q.risk, p.risk), cmp.Compare(p.id, q.id)) < 0
	}
}
