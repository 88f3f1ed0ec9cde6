package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// AppendLeaf stores a leaf, unnumbered. It fills in time and id where they are
// missing.
func (t *tx) AppendLeaf(l *gatehouse.Leaf) error {
	if err := shared.CompleteLeaf(l, t.at); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO audit_leaf (tenant, action_id, body) VALUES (?, ?, ?)`, l.Tenant, shared.LeafKey(l), shared.LeafBody(l))
	return err
}

func (t *readTx) entries(sql string, args ...any) (list []*gatehouse.Entry, err error) {
	err = t.each(sql, func(r *stmt) error {
		list = append(list, &gatehouse.Entry{Index: r.int(), LeafHash: r.hash(), Body: r.json()})
		return nil
	}, args...)
	return list, err
}

// ListEntries reads the log in its order.
func (t *readTx) ListEntries(tenant string, from int64, limit int) ([]*gatehouse.Entry, error) {
	return t.entries(`SELECT number, hash, body FROM audit_leaf WHERE tenant = ? AND number >= ? ORDER BY number LIMIT ?`, tenant, from, limit)
}

// ListActionEntries reads what the log says of one action.
func (t *readTx) ListActionEntries(tenant, actionID string) ([]*gatehouse.Entry, error) {
	if actionID == "" {
		return nil, nil
	}
	return t.entries(`SELECT number, hash, body FROM audit_leaf
WHERE tenant = ? AND action_id = ? AND action_id <> '' AND number IS NOT NULL ORDER BY number`, tenant, actionID)
}

// LogSize counts the numbered entries.
func (t *readTx) LogSize(tenant string) (int64, error) {
	return t.number(`SELECT size FROM audit_log WHERE tenant = ?`, tenant)
}

// LogHashes reads tree hashes; one that is not stored is ErrNotFound.
func (t *readTx) LogHashes(tenant string, indexes []int64) ([]gatehouse.Hash, error) {
	hashes := make([]gatehouse.Hash, 0, len(indexes))
	for _, i := range indexes {
		err := t.one(`SELECT hash FROM audit_hash WHERE tenant = ? AND position = ?`,
			func(r *stmt) error { hashes = append(hashes, r.hash()); return nil }, tenant, i)
		if err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// UnnumberedLeaves lists what waits for the sequencer. Rows are written by one
// connection, so the order of their numbers is the order of their commits.
func (t *readTx) UnnumberedLeaves(limit int) (list []*gatehouse.PendingLeaf, err error) {
	err = t.each(`SELECT seq, tenant, action_id, body FROM audit_leaf
WHERE seq > (SELECT numbered FROM meta WHERE id = 1) AND number IS NULL ORDER BY seq LIMIT ?`,
		func(r *stmt) error {
			list = append(list, &gatehouse.PendingLeaf{Row: r.int(), Tenant: r.text(), ActionID: r.text(), Body: r.json()})
			return nil
		}, limit)
	return list, err
}

// NumberLeaves appends to a tenant's log, when it still has the size on which
// the numbers and hashes were computed.
func (t *tx) NumberLeaves(tenant string, expectedSize int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	if expectedSize == 0 {
		if _, err := t.exec(`INSERT INTO audit_log (tenant, size, hashes) VALUES (?, 0, 0) ON CONFLICT DO NOTHING`, tenant); err != nil {
			return err
		}
	}
	position, err := t.number(`SELECT hashes FROM audit_log WHERE tenant = ?`, tenant)
	if err != nil {
		return err
	}
	err = t.guarded(`UPDATE audit_log SET size = size + ?, hashes = hashes + ? WHERE tenant = ? AND size = ?`,
		len(leaves), len(hashes), tenant, expectedSize)
	if err != nil {
		return err
	}
	for i, l := range leaves {
		if l.Index != expectedSize+int64(i) {
			return gatehouse.ErrConflict
		}
		err := t.guarded(`UPDATE OR ROLLBACK audit_leaf SET number = ?, hash = ? WHERE seq = ? AND tenant = ? AND number IS NULL`,
			l.Index, l.LeafHash[:], l.Row, tenant)
		if err != nil {
			return err
		}
	}
	if err := t.insertHashes(tenant, position, hashes); err != nil {
		return err
	}
	_, err = t.exec(markNumbered)
	return err
}

const (
	insertHash   = `INSERT INTO audit_hash (tenant, position, hash) VALUES (?, ?, ?)`
	insertHashes = `INSERT INTO audit_hash (tenant, position, hash) VALUES (?1, ?2, ?3), (?1, ?2 + 1, ?4), (?1, ?2 + 2, ?5),
  (?1, ?2 + 3, ?6), (?1, ?2 + 4, ?7), (?1, ?2 + 5, ?8), (?1, ?2 + 6, ?9), (?1, ?2 + 7, ?10)`
)

// insertHashes stores tree hashes, eight at a time as long as there are as many.
func (t *tx) insertHashes(tenant string, position int64, hashes []gatehouse.Hash) error {
	for ; len(hashes) >= 8; position, hashes = position+8, hashes[8:] {
		_, err := t.exec(insertHashes, tenant, position, hashes[0][:], hashes[1][:], hashes[2][:], hashes[3][:],
			hashes[4][:], hashes[5][:], hashes[6][:], hashes[7][:])
		if err != nil {
			return err
		}
	}
	for i := range hashes {
		if _, err := t.exec(insertHash, tenant, position+int64(i), hashes[i][:]); err != nil {
			return err
		}
	}
	return nil
}

// markNumbered moves the mark up to where the first leaf waits.
const markNumbered = `UPDATE meta SET numbered = coalesce(
  (SELECT l.seq - 1 FROM audit_leaf l WHERE l.seq > meta.numbered AND l.number IS NULL ORDER BY l.seq LIMIT 1),
  (SELECT max(l.seq) FROM audit_leaf l), numbered) WHERE id = 1`
