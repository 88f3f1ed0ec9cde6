package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// AppendLeaf stores a leaf without a number. It fills in a missing time and id.
func (t *tx) AppendLeaf(l *gatehouse.Leaf) error {
	if err := t.Owns(l.Tenant); err != nil {
		return err
	}
	if err := shared.CompleteLeaf(l, t.at); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO audit_leaf (tenant, action_id, body) VALUES (?, ?, ?)`, l.Tenant, shared.LeafKey(l),
		shared.LeafBody(l))
	return err
}

// storedBatch is a row of audit_batch: entries of one log that were numbered
// together.
type storedBatch struct {
	number   int64  // of the first entry
	position int64  // of the first tree hash
	leaves   []byte // row numbers of the leaves, eight bytes each, as stored
	hashes   []byte // the tree hashes that these leaves complete, concatenated
}

// rowSize is the size of a row number in a batch, in bytes.
const rowSize = 8

// scanBatch reads a batch. Its blobs are valid only while the row is current.
func scanBatch(r *stmt) storedBatch {
	return storedBatch{number: r.Int(), position: r.Int(), leaves: r.raw(), hashes: r.raw()}
}

func (b *storedBatch) size() int { return len(b.leaves) / rowSize }

// row returns the row number of the leaf at index i of the batch.
func (b *storedBatch) row(i int) int64 { return int64(binary.BigEndian.Uint64(b.leaves[i*rowSize:])) }

// hash returns the tree hash at a position. A missing hash is all zeros, which
// no body hashes to.
func (b *storedBatch) hash(position int64) (h gatehouse.Hash, found bool) {
	at := (position - b.position) * shared.HashSize
	if at < 0 || at+shared.HashSize > int64(len(b.hashes)) {
		return h, false
	}
	copy(h[:], b.hashes[at:])
	return h, true
}

// entry returns the entry at index i of the batch, without its body.
func (b *storedBatch) entry(i int) *gatehouse.Entry {
	e := &gatehouse.Entry{Index: b.number + int64(i)}
	e.LeafHash, _ = b.hash(shared.LeafPosition(e.Index))
	return e
}

// keep copies the blobs so that the batch outlives the row.
func (b *storedBatch) keep() *storedBatch {
	return &storedBatch{b.number, b.position, bytes.Clone(b.leaves), bytes.Clone(b.hashes)}
}

// ListEntries reads the log in order. An entry whose leaf is missing is left
// out; verification of the log reports the gap.
func (t *readTx) ListEntries(from int64, limit int) (list []*gatehouse.Entry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = t.each(`SELECT number, position, leaves, hashes FROM audit_batch
  WHERE tenant = ? AND number >= coalesce((SELECT max(number) FROM audit_batch
  WHERE tenant = ?1 AND number <= ?2), 0) ORDER BY number`,
		func(r *stmt) error {
			b := scanBatch(r)
			for i := max(0, int(min(from-b.number, int64(b.size())))); i < b.size(); i++ {
				e := b.entry(i)
				found, err := t.c.first(`SELECT body FROM audit_leaf WHERE seq = ? AND tenant = ?`,
					func(r *stmt) error { e.Body = r.JSON(); return nil }, b.row(i), t.tenant)
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
		}, t.tenant, from)
	return list, unlessEnough(err)
}

// ListActionEntries reads the log entries of one action.
func (t *readTx) ListActionEntries(actionID string) (list []*gatehouse.Entry, err error) {
	if actionID == "" {
		return nil, nil
	}
	var in *storedBatch
	err = t.each(`SELECT seq, body FROM audit_leaf WHERE tenant = ? AND action_id = ? AND action_id <> '' ORDER BY seq`,
		func(r *stmt) error {
			row, body := r.Int(), r.JSON()
			i := -1
			if in != nil {
				i = in.place(row)
			}
			if i < 0 {
				in = nil
				_, err := t.c.first(`SELECT number, position, leaves, hashes FROM audit_batch
  WHERE tenant = ? AND last >= ? ORDER BY last LIMIT 1`, func(r *stmt) error {
					b := scanBatch(r)
					in = b.keep()
					return nil
				}, t.tenant, row)
				if err != nil {
					return err
				}
				if in == nil {
					return errEnough // this leaf and all later ones are not numbered yet
				}
				if i = in.place(row); i < 0 {
					return nil
				}
			}
			e := in.entry(i)
			e.Body = body
			list = append(list, e)
			return nil
		}, t.tenant, actionID)
	return list, unlessEnough(err)
}

// place returns the index of a leaf in the batch, -1 if the batch does not have it.
func (b *storedBatch) place(row int64) int {
	i := sort.Search(b.size(), func(i int) bool { return b.row(i) >= row })
	if i < b.size() && b.row(i) == row {
		return i
	}
	return -1
}

// unlessEnough drops the error that stops a walk on purpose.
func unlessEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// LogSize counts the numbered entries.
func (t *readTx) LogSize() (int64, error) {
	return t.number(`SELECT size FROM audit_log WHERE tenant = ?`, t.tenant)
}

// LogHashes reads tree hashes; a missing one fails with ErrNotFound. Consecutive
// positions of the same batch are read together.
func (t *readTx) LogHashes(positions []int64) ([]gatehouse.Hash, error) {
	hashes := make([]gatehouse.Hash, 0, len(positions))
	for len(hashes) < len(positions) {
		before := len(hashes)
		err := t.one(`SELECT number, position, leaves, hashes FROM audit_batch
  WHERE tenant = ? AND position <= ? ORDER BY position DESC LIMIT 1`, func(r *stmt) error {
			b := scanBatch(r)
			for len(hashes) < len(positions) {
				h, found := b.hash(positions[len(hashes)])
				if !found {
					break
				}
				hashes = append(hashes, h)
			}
			return nil
		}, t.tenant, positions[before])
		if err != nil {
			return nil, err
		}
		if len(hashes) == before {
			return nil, gatehouse.ErrNotFound
		}
	}
	return hashes, nil
}

// UnnumberedLeaves lists the leaves that wait for the sequencer. One connection writes all rows, so row numbers are in
// commit order, and a tenant's leaves are numbered in that order. So a leaf without a number has a higher row number
// than the last numbered leaf of its tenant.
func (t *readTx) UnnumberedLeaves(limit int) (list []*gatehouse.PendingLeaf, err error) {
	err = t.each(`SELECT l.seq, l.tenant, l.action_id, l.body FROM audit_leaf l
WHERE l.seq > (SELECT numbered FROM meta WHERE id = 1)
  AND l.seq > coalesce((SELECT max(b.last) FROM audit_batch b WHERE b.tenant = l.tenant), 0)
ORDER BY l.seq LIMIT ?`,
		func(r *stmt) error {
			list = append(list, &gatehouse.PendingLeaf{Row: r.Int(), Tenant: r.Text(), ActionID: r.Text(),
				Body: r.JSON()})
			return nil
		}, limit)
	return list, err
}
