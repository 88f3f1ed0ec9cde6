package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	leafColumns  = `INSERT INTO audit_leaf (tenant, action_id, body) `
	appendLeaf   = leafColumns + `VALUES ($1, $2, $3)`
	appendLeaves = leafColumns + `SELECT $1, $2, $3 FROM u ORDER BY n`
)

// AppendLeaf stores a leaf, unnumbered. It fills in time and id where they are
// missing.
func (t *tx) AppendLeaf(l *gatehouse.Leaf) error {
	if err := shared.CompleteLeaf(l, t.Now()); err != nil {
		return err
	}
	return t.write(appendLeaf, l.Tenant, shared.LeafKey(l), shared.LeafBody(l))
}

func (t *readTx) entries(sql string, args ...any) (list []*gatehouse.Entry, err error) {
	err = t.each(sql, func(r *row) error {
		list = append(list, &gatehouse.Entry{Index: r.int(), LeafHash: r.hash(), Body: r.json()})
		return nil
	}, args...)
	return list, err
}

// ListEntries reads the log in its order.
func (t *readTx) ListEntries(tenant string, from int64, limit int) ([]*gatehouse.Entry, error) {
	return t.entries(`SELECT number, hash, body FROM audit_leaf WHERE tenant = $1 AND number >= $2 ORDER BY number LIMIT $3`,
		tenant, from, limit)
}

// ListActionEntries reads what the log says of one action.
func (t *readTx) ListActionEntries(tenant, actionID string) ([]*gatehouse.Entry, error) {
	if actionID == "" {
		return nil, nil
	}
	return t.entries(`SELECT number, hash, body FROM audit_leaf
WHERE tenant = $1 AND action_id = $2 AND action_id <> '' AND number IS NOT NULL ORDER BY number`, tenant, actionID)
}

// LogSize counts the numbered entries.
func (t *readTx) LogSize(tenant string) (int64, error) {
	return t.number(`SELECT size FROM audit_log WHERE tenant = $1`, tenant)
}

// LogHashes reads tree hashes; one that is not stored is ErrNotFound.
func (t *readTx) LogHashes(tenant string, indexes []int64) ([]gatehouse.Hash, error) {
	stored := make(map[int64]gatehouse.Hash, len(indexes))
	err := t.each(`SELECT position, hash FROM audit_hash WHERE tenant = $1 AND position = ANY($2)`, func(r *row) error {
		position := r.int()
		stored[position] = r.hash()
		return nil
	}, tenant, indexes)
	if err != nil {
		return nil, err
	}
	hashes := make([]gatehouse.Hash, len(indexes))
	for i, position := range indexes {
		h, found := stored[position]
		if !found {
			return nil, gatehouse.ErrNotFound
		}
		hashes[i] = h
	}
	return hashes, nil
}

// UnnumberedLeaves lists what waits for the sequencer, by row. Rows of
// transactions that ran side by side appear as these commit: one that comes
// late gets a later number. Of two transactions of which one waited for the
// other, by a lock, the rows are in that order.
func (t *readTx) UnnumberedLeaves(limit int) (list []*gatehouse.PendingLeaf, err error) {
	err = t.each(`SELECT seq, tenant, action_id, body FROM audit_leaf WHERE number IS NULL ORDER BY seq LIMIT $1`,
		func(r *row) error {
			list = append(list, &gatehouse.PendingLeaf{Row: r.int(), Tenant: r.text(), ActionID: r.text(), Body: r.json()})
			return nil
		}, limit)
	return list, err
}

const (
	// The row of the log is the fence: of two sequencers that count on the same
	// size, one waits for the other and then finds another size.
	extendLog = `WITH w AS (UPDATE audit_log SET size = size + $2, hashes = hashes + $3 WHERE tenant = $1 AND size = $4
  RETURNING hashes - $3 AS first),
h AS (INSERT INTO audit_hash (tenant, position, hash)
  SELECT $1, w.first + u.place - 1, u.hash FROM w, unnest($5::bytea[]) WITH ORDINALITY AS u (hash, place))
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
	// All leaves in one, each by its key: since nothing here says that they have
	// no number yet, the server cannot go by the index of those that wait, which
	// it would read all of while its statistics say that nothing does. One that
	// has a number is refused by a trigger. The LIMIT is as in rows.
	numberLeaves = `WITH w AS (UPDATE audit_leaf SET number = u.number, hash = u.hash
  FROM (SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS u (leaf, number, hash) LIMIT $5) u
  WHERE seq = u.leaf AND tenant = $1 RETURNING 1)
SELECT CASE WHEN (SELECT count(*) FROM w) = $5 THEN 0 ELSE gatehouse_refuse('GH001') END`
)

// NumberLeaves appends to a tenant's log, when it still has the size on which
// the numbers and hashes were computed.
func (t *tx) NumberLeaves(tenant string, expectedSize int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	treeHashes := make([][]byte, len(hashes))
	for i := range hashes {
		treeHashes[i] = hashes[i][:]
	}
	if expectedSize == 0 {
		if err := t.write(`INSERT INTO audit_log (tenant, size, hashes) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`, tenant); err != nil {
			return err
		}
	}
	if err := t.write(extendLog, tenant, len(leaves), len(hashes), expectedSize, treeHashes); err != nil {
		return err
	}
	seqs, numbers, leafHashes := make([]int64, len(leaves)), make([]int64, len(leaves)), make([][]byte, len(leaves))
	for i, l := range leaves {
		if l.Index != expectedSize+int64(i) {
			return gatehouse.ErrConflict
		}
		seqs[i], numbers[i], leafHashes[i] = l.Row, l.Index, l.LeafHash[:]
	}
	return t.write(numberLeaves, tenant, seqs, numbers, leafHashes, len(leaves))
}
