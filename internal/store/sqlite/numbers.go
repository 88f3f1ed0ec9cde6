package sqlite

import (
	"encoding/binary"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// NumberLeaves appends to a tenant's log if the log still has the size on which
// the numbers and hashes were computed. The leaves must be the next unnumbered
// leaves in the order of their rows, because a leaf has a number if its row is not
// after the last numbered row of its tenant.
func (t *tx) NumberLeaves(expectedSize int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	if expectedSize == 0 {
		if _, err := t.exec(`INSERT INTO audit_log (tenant, size, hashes) VALUES (?, 0, 0) ON CONFLICT DO NOTHING`,
			t.tenant); err != nil {
			return err
		}
	}
	err := t.guarded(`UPDATE audit_log SET size = size + ?, hashes = hashes + ? WHERE tenant = ? AND size = ?`,
		len(leaves), len(hashes), t.tenant, expectedSize)
	if err != nil || len(leaves) == 0 {
		return err
	}
	for i, l := range leaves {
		if l.Index != expectedSize+int64(i) {
			return gatehouse.ErrConflict
		}
	}
	w := &t.waiting
	if err := w.read(t, leaves[len(leaves)-1].Row); err != nil {
		return err
	}
	if !w.take(t.tenant, leaves) {
		return gatehouse.ErrConflict
	}
	if err := t.insertBatches(t.tenant, expectedSize, leaves, hashes); err != nil {
		return err
	}
	return w.mark(t)
}

// insertBatches stores numbers and hashes in rows of audit_batch.
func (t *tx) insertBatches(tenant string, size int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	rows := make([]byte, 0, shared.MaxEntries*rowSize)
	for b, err := range shared.LogBatches(tenant, size, leaves, hashes) {
		if err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
		rows = rows[:0]
		for _, row := range b.Rows {
			rows = binary.BigEndian.AppendUint64(rows, uint64(row))
		}
		_, err = t.exec(`INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes) VALUES (?, ?, ?, ?, ?, ?)`,
			tenant, b.Number, b.Position, b.Rows[len(b.Rows)-1], rows, b.Hashes)
		if err != nil {
			return err
		}
	}
	return nil
}

// unnumbered holds the unnumbered leaves that the numbering transaction has
// read so far: those up to row number to.
type unnumbered struct {
	to int64
	of map[string]*queue // by tenant
}

type queue struct {
	last int64 // row of the tenant's last leaf that was numbered before this transaction
	rows []int64
}

// read reads further leaves, up to row number to.
func (w *unnumbered) read(t *tx, to int64) (err error) {
	if w.of == nil {
		w.of = make(map[string]*queue)
		if w.to, err = t.number(`SELECT numbered FROM meta WHERE id = 1`); err != nil {
			return err
		}
	}
	if to <= w.to {
		return nil
	}
	return t.each(`SELECT seq, tenant FROM audit_leaf WHERE seq > ? AND seq <= ? ORDER BY seq`, func(r *stmt) error {
		row, tenant := r.Int(), r.raw()
		q := w.of[string(tenant)]
		if q == nil {
			q = &queue{}
			w.of[string(tenant)] = q
			if q.last, err = t.c.number(`SELECT max(last) FROM audit_batch WHERE tenant = ?`, string(tenant)); err != nil {
				return err
			}
		}
		if row > q.last {
			q.rows = append(q.rows, row)
		}
		w.to = row
		return nil
	}, w.to, to)
}

// take removes leaves from the tenant's queue and reports whether they were
// next in order.
func (w *unnumbered) take(tenant string, leaves []*gatehouse.NumberedLeaf) bool {
	q := w.of[tenant]
	if q == nil || len(q.rows) < len(leaves) {
		return false
	}
	for i, l := range leaves {
		if q.rows[i] != l.Row {
			return false
		}
	}
	q.rows = q.rows[len(leaves):]
	return true
}

// mark advances the stored mark to just before the first unnumbered leaf.
func (w *unnumbered) mark(t *tx) error {
	first := w.to + 1
	for _, q := range w.of {
		if len(q.rows) > 0 {
			first = min(first, q.rows[0])
		}
	}
	_, err := t.exec(`UPDATE meta SET numbered = ? WHERE id = 1`, first-1)
	return err
}
