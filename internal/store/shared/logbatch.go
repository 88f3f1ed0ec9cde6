package shared

import (
	"fmt"
	"iter"
	"math/bits"

	"github.com/gatehouse-dev/gatehouse"
)

// MaxEntries is the maximum number of entries in a row of audit_batch. It keeps a row at about 20 KiB,
// because a reader of one entry reads the whole row.
const MaxEntries = 256

// HashSize is the size of a tree hash in a row of audit_batch, in bytes.
const HashSize = 32

// LeafPosition returns the position of an entry's leaf hash among the tree hashes of its log, in the
// order in which the hashes are completed. The n entries before it complete 2n - popcount(n) hashes.
func LeafPosition(number int64) int64 { return 2*number - int64(bits.OnesCount64(uint64(number))) }

// LogBatch is a new row of audit_batch: entries of one log that are numbered together.
type LogBatch struct {
	Number   int64   // number of the first entry
	Position int64   // position of the first tree hash
	Rows     []int64 // row numbers of the leaves
	Hashes   []byte  // the tree hashes that the leaves complete, concatenated
}

// LogBatches yields the rows of audit_batch for new leaves of a log that has size entries. hashes are all
// tree hashes that the leaves complete. The hash of a leaf is one of them, and is not stored a second time. All
// batches share their slices: a batch is valid until the next batch is yielded.
func LogBatches(
	tenant string, size int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash,
) iter.Seq2[LogBatch, error] {
	return func(yield func(LogBatch, error) bool) {
		rows, tree := make([]int64, 0, MaxEntries), make([]byte, 0, (2*MaxEntries+64)*HashSize)
		for len(leaves) > 0 {
			part := leaves[:min(len(leaves), MaxEntries)]
			leaves = leaves[len(part):]
			position := LeafPosition(size)
			n := LeafPosition(size+int64(len(part))) - position
			if int64(len(hashes)) < n || len(leaves) == 0 && int64(len(hashes)) != n {
				err := fmt.Errorf("tenant %s: %d tree hashes from position %d do not belong to %d entries from number %d",
					tenant, len(hashes), position, len(part)+len(leaves), size)
				yield(LogBatch{}, err)
				return
			}
			rows, tree = rows[:0], tree[:0]
			for _, l := range part {
				if hashes[LeafPosition(l.Index)-position] != l.LeafHash {
					yield(LogBatch{}, fmt.Errorf("tenant %s: the hash of entry %d differs from its tree hash", tenant, l.Index))
					return
				}
				rows = append(rows, l.Row)
			}
			for i := range hashes[:n] {
				tree = append(tree, hashes[i][:]...)
			}
			if !yield(LogBatch{Number: size, Position: position, Rows: rows, Hashes: tree}, nil) {
				return
			}
			size, hashes = size+int64(len(part)), hashes[n:]
		}
	}
}
