package postgres

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// leafRow is a leaf without a number. Key is the id under which its entry is listed.
type leafRow struct{ Tenant, Key, Body string }

// appendLeaves stores leaves. One row of audit_waiting holds all leaves of a tenant in this statement. The
// sequencer deletes the row when it numbers the leaves.
var appendLeaves = writes[leafRow](rankLeaf, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS key, ($3::text[])[n] AS body, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
),
leaf AS (
  INSERT INTO audit_leaf (seq, tenant, action_id, body)
  SELECT nextval('audit_leaf_row'), tenant, key, body FROM r
  RETURNING seq, tenant
)
INSERT INTO audit_waiting (first, tenant, leaves)
SELECT min(seq), tenant, array_agg(seq) FROM leaf GROUP BY tenant`)

// AppendLeaf stores a leaf without a number. It fills in time and id if they are missing.
func (t *tx) AppendLeaf(l *gatehouse.Leaf) error {
	r, err := t.leaf(l)
	if err != nil {
		return err
	}
	return appendLeaves.write(t, r)
}

func (t *tx) leaf(l *gatehouse.Leaf) (leafRow, error) {
	if err := t.Owns(l.Tenant); err != nil {
		return leafRow{}, err
	}
	if err := shared.CompleteLeaf(l, t.Now()); err != nil {
		return leafRow{}, err
	}
	return leafRow{l.Tenant, shared.LeafKey(l), shared.LeafBody(l)}, nil
}

// The two statements read the batches that hold the next $3 entries from number $2 on, even if a gap follows $2: from
// the last batch that begins at $2 or before, to $3 numbers beyond the start of the next batch. The bounds are columns
// of a subquery because, under row security, the planner searches an index only by columns of earlier tables in the
// join.
const (
	selectBatches = `SELECT b.number, b.position, b.hashes
FROM (
  SELECT coalesce((SELECT max(number) FROM audit_batch WHERE tenant = $1 AND number <= $2), 0) AS low,
    greatest($2, coalesce((SELECT min(number) FROM audit_batch WHERE tenant = $1 AND number > $2), 0)) + $3 AS high
  OFFSET 0
) e
CROSS JOIN LATERAL (
  SELECT * FROM audit_batch WHERE tenant = $1 AND number >= e.low AND number < e.high ORDER BY number OFFSET 0
) b`
	// The entries come in the order of batches and leaves, and are read only as far as needed;
	// a sort would read all of them.
	selectEntries = `SELECT b.number + u.n - 1, l.body
FROM (
  SELECT coalesce((SELECT max(number) FROM audit_batch WHERE tenant = $1 AND number <= $2), 0) AS low,
    greatest($2, coalesce((SELECT min(number) FROM audit_batch WHERE tenant = $1 AND number > $2), 0)) + $3 AS high
  OFFSET 0
) e
CROSS JOIN LATERAL (
  SELECT * FROM audit_batch WHERE tenant = $1 AND number >= e.low AND number < e.high ORDER BY number OFFSET 0
) b
CROSS JOIN LATERAL unnest(b.leaves) WITH ORDINALITY u (seq, n)
CROSS JOIN LATERAL (SELECT body FROM audit_leaf WHERE tenant = $1 AND seq = u.seq OFFSET 0) l
WHERE b.number + u.n > $2 LIMIT $3`
)

// ListEntries reads the log in order. It leaves out an entry whose leaf is missing: a verifier
// of the log finds the gap.
func (t *readTx) ListEntries(from int64, limit int) (list []*gatehouse.Entry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	type batch struct {
		number, position int64
		hashes           []byte
	}
	var batches []batch
	limit = int(min(int64(limit), math.MaxInt64-max(from, 0))) // the statements add the two
	// A batch stored between the two statements appears only in the second.
	err = t.read(
		ask(selectEntries, func(r *row) error {
			list = append(list, &gatehouse.Entry{Index: r.Int(), Body: r.JSON()})
			return nil
		}, t.tenant, from, limit),
		ask(selectBatches, func(r *row) error {
			batches = append(batches, batch{r.Int(), r.Int(), r.Blob()})
			return nil
		}, t.tenant, from, limit))
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		if i > 0 && list[i-1].Index >= e.Index {
			return nil, fmt.Errorf("postgres: the entry %d of the log came after %d", e.Index, list[i-1].Index)
		}
		for len(batches) > 1 && batches[1].number <= e.Index {
			batches = batches[1:]
		}
		at := (shared.LeafPosition(e.Index) - batches[0].position) * shared.HashSize
		if at >= 0 && at+shared.HashSize <= int64(len(batches[0].hashes)) {
			copy(e.LeafHash[:], batches[0].hashes[at:])
		}
	}
	return list, nil
}

// selectActionEntries finds, for each leaf of the action, the first batch that contains it, among those
// whose row range includes it. Ranges overlap: a leaf committed late has a higher number than its row
// suggests.
const selectActionEntries = `SELECT b.number,
  substr(b.hashes, (gatehouse_leaf_position(b.number) - b.position)::int * 32 + 1, 32), l.body
FROM audit_leaf l CROSS JOIN LATERAL (SELECT number + array_position(leaves, l.seq) - 1 AS number, position, hashes
  FROM audit_batch WHERE tenant = $1 AND last >= l.seq AND first <= l.seq AND l.seq = ANY (leaves)
  ORDER BY last LIMIT 1) b
WHERE l.tenant = $1 AND l.action_id = $2 AND l.action_id <> '' ORDER BY b.number`

// ListActionEntries reads the log entries of one action.
func (t *readTx) ListActionEntries(actionID string) (list []*gatehouse.Entry, err error) {
	if actionID == "" {
		return nil, nil
	}
	err = t.each(selectActionEntries, func(r *row) error {
		list = append(list, &gatehouse.Entry{Index: r.Int(), LeafHash: r.Hash(), Body: r.JSON()})
		return nil
	}, t.tenant, actionID)
	return list, err
}

// LogSize counts the numbered entries.
func (t *readTx) LogSize() (int64, error) {
	return t.number(`SELECT size FROM audit_log WHERE tenant = $1`, t.tenant)
}

// selectHashes reads, for each run of consecutive tree hashes, the part of the run that each batch holds.
// The part begins at the start of the run or of the batch. Batches are found by entry: low is the entry
// that completes the first hash of the run, high is the entry that completes the last hash.
const selectHashes = `SELECT greatest(r.start, b.position),
  substr(b.hashes, (greatest(r.start, b.position) - b.position)::int * 32 + 1,
    greatest(r.stop - greatest(r.start, b.position), 0)::int * 32)
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS r (start, stop, low, high)
CROSS JOIN LATERAL (SELECT coalesce((SELECT max(number) FROM audit_batch WHERE tenant = $1 AND number <= r.low), 0)
  AS number OFFSET 0) e
CROSS JOIN LATERAL (SELECT position, hashes FROM audit_batch
  WHERE tenant = $1 AND number >= e.number AND number <= r.high OFFSET 0) b`

// LogHashes reads tree hashes; ErrNotFound if one is not stored.
func (t *readTx) LogHashes(positions []int64) ([]gatehouse.Hash, error) {
	var start, stop, low, high []int64
	for i, p := range positions {
		entry := completes(p)
		if i > 0 && p == positions[i-1]+1 {
			stop[len(stop)-1], high[len(high)-1] = p+1, entry
			continue
		}
		start, stop, low, high = append(start, p), append(stop, p+1), append(low, entry), append(high, entry)
	}
	stored := make(map[int64]gatehouse.Hash, len(positions))
	err := t.each(selectHashes, func(r *row) error {
		position := r.Int()
		for hashes := r.next(); len(hashes) >= shared.HashSize; hashes = hashes[shared.HashSize:] {
			stored[position] = gatehouse.Hash(hashes[:shared.HashSize])
			position++
		}
		return nil
	}, t.tenant, start, stop, low, high)
	if err != nil {
		return nil, err
	}
	hashes := make([]gatehouse.Hash, len(positions))
	for i, position := range positions {
		h, found := stored[position]
		if !found {
			return nil, gatehouse.ErrNotFound
		}
		hashes[i] = h
	}
	return hashes, nil
}

// completes returns the entry that completes a tree hash.
func completes(position int64) int64 {
	level, n := tlog.SplitStoredHashIndex(position)
	return (n+1)<<level - 1
}

// Rows of audit_waiting are read only as far as needed. Leaves that no longer exist do not
// count, so they do not delay the leaves behind them.
const selectWaiting = `SELECT x.seq, x.tenant, x.action_id, x.body FROM (SELECT l.seq, l.tenant, l.action_id, l.body
  FROM (SELECT first, leaves FROM audit_waiting WHERE first >= $1 ORDER BY first OFFSET 0) w
  CROSS JOIN LATERAL unnest(w.leaves) u (seq)
  CROSS JOIN LATERAL (SELECT * FROM audit_leaf WHERE audit_leaf.seq = u.seq OFFSET 0) l LIMIT $2) x ORDER BY x.seq`

// leafMarks reads the low mark of leafScan (see scanStart): the seq of the first waiting leaf, or the last
// value of the sequence if no leaf waits, minus 1000. Leaves of running transactions have a seq already, but
// are not visible yet.
const leafMarks = `SELECT coalesce((SELECT first FROM audit_waiting ORDER BY first LIMIT 1),
  pg_sequence_last_value('audit_leaf_row'), 0) - 1000`

// UnnumberedLeaves lists the leaves that wait for the sequencer, by row. Rows of concurrent
// transactions appear as these commit: a row that appears late gets a later number. If one
// transaction waited for a lock of another, the rows of the other come first.
func (t *readTx) UnnumberedLeaves(limit int) (list []*gatehouse.PendingLeaf, err error) {
	defer t.AllTenants()()
	from, err := t.scanFrom(&t.s.leafScan)
	if err != nil {
		return nil, err
	}
	err = t.scanRead(&t.s.leafScan, ask(selectWaiting, func(r *row) error {
		list = append(list, &gatehouse.PendingLeaf{Row: r.Int(), Tenant: r.Text(), ActionID: r.Text(), Body: r.JSON()})
		return nil
	}, from[0], limit))
	return list, err
}

const (
	// The row of audit_log is the fence: of two sequencers that expect the same size, one waits
	// for the other and then finds a different size.
	extendLog = `
WITH w AS (
  UPDATE audit_log SET size = size + $2, hashes = hashes + $3 WHERE tenant = $1 AND size = $4
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
	// Leaves that were stored together share a row, whose key is the first leaf. Normally the first leaf
	// is numbered with the others. If the first leaf no longer exists, the statement finds the row by
	// the others. The row's remaining leaves keep waiting.
	takeLeaves = `WITH taken AS (DELETE FROM audit_waiting
  WHERE tenant = $1 AND first = ANY($2::bigint[]) RETURNING leaves),
orphans AS (DELETE FROM audit_waiting
  WHERE tenant = $1 AND first < $4 AND first <> ALL($2::bigint[]) AND leaves && $2::bigint[]
  AND (SELECT count(*) FROM taken CROSS JOIN LATERAL unnest(leaves) u (seq)
    WHERE u.seq IN (SELECT unnest($2::bigint[]))) < $3
  RETURNING leaves),
leaf AS MATERIALIZED (SELECT u.seq, u.seq IN (SELECT unnest($2::bigint[])) AS named
  FROM (SELECT * FROM taken UNION ALL SELECT * FROM orphans) t CROSS JOIN LATERAL unnest(leaves) u (seq)),
rest AS (INSERT INTO audit_waiting (first, tenant, leaves)
  SELECT min(seq), $1, array_agg(seq ORDER BY seq) FROM leaf WHERE NOT named HAVING count(*) > 0)
SELECT CASE WHEN (SELECT count(*) FROM leaf WHERE named) = $3 THEN 0 ELSE gatehouse_refuse('GH001') END`
	insertBatch = `INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes)
VALUES ($1, $2, $3, $4, $5, $6)`
)

// NumberLeaves appends to a tenant's log if the log still has the size for which numbers and
// hashes were computed. The leaves are in the order of their rows.
func (t *tx) NumberLeaves(expectedSize int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	if expectedSize == 0 {
		if err := t.Write(`INSERT INTO audit_log (tenant, size, hashes) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`,
			t.tenant); err != nil {
			return err
		}
	}
	if err := t.Write(extendLog, t.tenant, len(leaves), len(hashes), expectedSize); err != nil || len(leaves) == 0 {
		return err
	}
	rows := make([]int64, len(leaves))
	for i, l := range leaves {
		if l.Index != expectedSize+int64(i) || i > 0 && l.Row <= rows[i-1] {
			return gatehouse.ErrConflict
		}
		rows[i] = l.Row
	}
	if err := t.Write(takeLeaves, t.tenant, rows, len(rows), rows[len(rows)-1]); err != nil {
		return err
	}
	for b, err := range shared.LogBatches(t.tenant, expectedSize, leaves, hashes) {
		if err != nil {
			// If the log has changed its size, the answer is a conflict instead.
			return cmp.Or(t.read(), fmt.Errorf("postgres: %w", err))
		}
		err = t.Write(insertBatch, t.tenant, b.Number, b.Position, b.Rows[len(b.Rows)-1], slices.Clone(b.Rows),
			slices.Clone(b.Hashes))
		if err != nil {
			return err
		}
	}
	return nil
}
