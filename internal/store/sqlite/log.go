package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"

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

// logBatch is a row of audit_batch: entries of one log that were numbered
// together.
type logBatch struct {
	number   int64  // of the first entry
	position int64  // of the first tree hash
	leaves   []byte // the rows of the leaves, eight bytes each, as stored
	hashes   []byte // the tree hashes that they complete, one after another
}

const (
	rowSize  = 8
	hashSize = shared.HashSize
	batchOf  = `SELECT number, position, leaves, hashes FROM audit_batch WHERE tenant = ? `
)

// scanBatch reads a batch whose blobs live as long as the row does.
func scanBatch(r *stmt) logBatch {
	return logBatch{number: r.int(), position: r.int(), leaves: r.raw(), hashes: r.raw()}
}

func (b *logBatch) size() int { return len(b.leaves) / rowSize }

// row is the leaf at a place in the batch.
func (b *logBatch) row(i int) int64 { return int64(binary.BigEndian.Uint64(b.leaves[i*rowSize:])) }

// hash is a tree hash by its position. One that is not stored is all zeros,
// which no body gives.
func (b *logBatch) hash(position int64) (h gatehouse.Hash, found bool) {
	at := (position - b.position) * hashSize
	if at < 0 || at+hashSize > int64(len(b.hashes)) {
		return h, false
	}
	copy(h[:], b.hashes[at:])
	return h, true
}

// entry is the one at a place in the batch, without its body.
func (b *logBatch) entry(i int) *gatehouse.Entry {
	e := &gatehouse.Entry{Index: b.number + int64(i)}
	e.LeafHash, _ = b.hash(shared.LeafPosition(e.Index))
	return e
}

// keep copies what else would go with the row.
func (b *logBatch) keep() *logBatch {
	return &logBatch{b.number, b.position, bytes.Clone(b.leaves), bytes.Clone(b.hashes)}
}

// ListEntries reads the log in its order. An entry whose leaf is not there is
// left out: whoever verifies the log finds the gap.
func (t *readTx) ListEntries(tenant string, from int64, limit int) (list []*gatehouse.Entry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = t.each(batchOf+`AND number >= coalesce((SELECT max(number) FROM audit_batch WHERE tenant = ?1 AND number <= ?2), 0) ORDER BY number`,
		func(r *stmt) error {
			b := scanBatch(r)
			for i := max(0, int(min(from-b.number, int64(b.size())))); i < b.size(); i++ {
				e := b.entry(i)
				found, err := t.c.first(`SELECT body FROM audit_leaf WHERE seq = ? AND tenant = ?`,
					func(r *stmt) error { e.Body = r.json(); return nil }, b.row(i), tenant)
				if err != nil {
					return err
				}
				if !found {
					continue
				}
				if list = append(list, e); len(list) == limit {
					return errEnough
				}
			}
			return nil
		}, tenant, from)
	return list, unlessEnough(err)
}

// ListActionEntries reads what the log says of one action.
func (t *readTx) ListActionEntries(tenant, actionID string) (list []*gatehouse.Entry, err error) {
	if actionID == "" {
		return nil, nil
	}
	var in *logBatch
	err = t.each(`SELECT seq, body FROM audit_leaf WHERE tenant = ? AND action_id = ? AND action_id <> '' ORDER BY seq`, func(r *stmt) error {
		row, body := r.int(), r.json()
		i := -1
		if in != nil {
			i = in.place(row)
		}
		if i < 0 {
			in = nil
			_, err := t.c.first(batchOf+`AND last >= ? ORDER BY last LIMIT 1`, func(r *stmt) error {
				b := scanBatch(r)
				in = b.keep()
				return nil
			}, tenant, row)
			if err != nil {
				return err
			}
			if in == nil {
				return errEnough // it waits for its number, and all after it
			}
			if i = in.place(row); i < 0 {
				return nil
			}
		}
		e := in.entry(i)
		e.Body = body
		list = append(list, e)
		return nil
	}, tenant, actionID)
	return list, unlessEnough(err)
}

// place is where a leaf stands in the batch, -1 where it does not.
func (b *logBatch) place(row int64) int {
	i := sort.Search(b.size(), func(i int) bool { return b.row(i) >= row })
	if i < b.size() && b.row(i) == row {
		return i
	}
	return -1
}

// unlessEnough is nil where a walk was ended on purpose.
func unlessEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// LogSize counts the numbered entries.
func (t *readTx) LogSize(tenant string) (int64, error) {
	return t.number(`SELECT size FROM audit_log WHERE tenant = ?`, tenant)
}

// LogHashes reads tree hashes; one that is not stored is ErrNotFound. Those of
// one batch that are asked for one after another are read together.
func (t *readTx) LogHashes(tenant string, positions []int64) ([]gatehouse.Hash, error) {
	hashes := make([]gatehouse.Hash, 0, len(positions))
	for len(hashes) < len(positions) {
		before := len(hashes)
		err := t.one(batchOf+`AND position <= ? ORDER BY position DESC LIMIT 1`, func(r *stmt) error {
			b := scanBatch(r)
			for len(hashes) < len(positions) {
				h, found := b.hash(positions[len(hashes)])
				if !found {
					break
				}
				hashes = append(hashes, h)
			}
			return nil
		}, tenant, positions[before])
		if err != nil {
			return nil, err
		}
		if len(hashes) == before {
			return nil, gatehouse.ErrNotFound
		}
	}
	return hashes, nil
}

// UnnumberedLeaves lists what waits for the sequencer. Rows are written by one
// connection, so the order of their numbers is the order of their commits, and
// those of a tenant get theirs in that order: what waits is behind the last.
func (t *readTx) UnnumberedLeaves(limit int) (list []*gatehouse.PendingLeaf, err error) {
	err = t.each(`SELECT l.seq, l.tenant, l.action_id, l.body FROM audit_leaf l
WHERE l.seq > (SELECT numbered FROM meta WHERE id = 1) AND l.seq > coalesce((SELECT max(b.last) FROM audit_batch b WHERE b.tenant = l.tenant), 0)
ORDER BY l.seq LIMIT ?`,
		func(r *stmt) error {
			list = append(list, &gatehouse.PendingLeaf{Row: r.int(), Tenant: r.text(), ActionID: r.text(), Body: r.json()})
			return nil
		}, limit)
	return list, err
}
