package sqlite

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// batchEntries is the part of the twelfth migration that makes the rows of
// audit_batch, from numbers and hashes as each entry had its own. A log that
// was damaged stays so: an entry that is missing is in no batch, and a hash that
// is missing, or that leaf and tree do not agree on, is all zeros.
func batchEntries(c *conn) error {
	var tenants []string
	err := c.each(`SELECT id FROM tenant UNION SELECT DISTINCT tenant FROM audit_leaf_before WHERE number IS NOT NULL`,
		func(r *stmt) error { tenants = append(tenants, r.text()); return nil })
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if err := (&batching{c: c, tenant: tenant, leaves: []byte{}}).run(); err != nil {
			return err
		}
	}
	return nil
}

// maxNumber is what no log comes to; who forged a higher one gets this.
const maxNumber = 1 << 60

// batching is one tenant's log on its way.
type batching struct {
	c      *conn
	tenant string
	// The batch that is being filled: its first entry, its last row, the
	// leaves' rows, and what the leaves had for their hashes.
	number, last int64
	leaves       []byte
	own          []gatehouse.Hash
}

func (b *batching) run() error {
	err := b.c.each(`SELECT number, seq, hash FROM audit_leaf_before WHERE tenant = ? AND number IS NOT NULL ORDER BY number`, func(r *stmt) error {
		number, row := min(r.int(), maxNumber), r.int()
		if n := int64(len(b.own)); number != b.number+n || n == shared.MaxEntries {
			if err := b.store(shared.LeafPosition(number)); err != nil {
				return err
			}
			b.number = number
		}
		b.leaves = binary.BigEndian.AppendUint64(b.leaves, uint64(row))
		b.own = append(b.own, r.hash())
		b.last = max(b.last, row)
		return nil
	}, b.tenant)
	if err != nil {
		return err
	}
	return b.store(math.MaxInt64)
}

// store stores the batch with the hashes from its own first up to those of the
// next. What stands behind its own is kept as far as it has no gaps: where the
// end of a log was cut off, they tell.
func (b *batching) store(next int64) error {
	position := shared.LeafPosition(b.number)
	hashes := bytes.Repeat([]byte{0}, int(shared.LeafPosition(b.number+int64(len(b.own)))-position)*hashSize)
	err := b.c.each(`SELECT position, hash FROM audit_hash WHERE tenant = ? AND position >= ? AND position < ? ORDER BY position`, func(r *stmt) error {
		at := (r.int() - position) * hashSize
		h := r.hash()
		switch {
		case at < int64(len(hashes)):
			copy(hashes[at:], h[:])
		case at == int64(len(hashes)):
			hashes = append(hashes, h[:]...)
		}
		return nil
	}, b.tenant, position, next)
	if err != nil || len(hashes) == 0 {
		return err
	}
	for i, h := range b.own {
		at := (shared.LeafPosition(b.number+int64(i)) - position) * hashSize
		if h != gatehouse.Hash(hashes[at:at+hashSize]) {
			clear(hashes[at : at+hashSize])
		}
	}
	_, err = b.c.exec(`INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes) VALUES (?, ?, ?, ?, ?, ?)`,
		b.tenant, b.number, position, b.last, b.leaves, hashes)
	b.leaves, b.own = b.leaves[:0], b.own[:0]
	return err
}
