package shared

import (
	"fmt"
	"iter"
	"math/bits"

	"github.com/gatehouse-dev/gatehouse"
)

// MaxEntries is the maximum number of entries in a row of audit_batch. It keeps
// a row, which must be read whole to find one entry, at about 20 KiB.
const MaxEntries = 256

// HashSize is the size of a tree hash in such a row, in bytes.
const HashSize = 32

// LeafPosition returns the position of an entry's hash among the tree hashes of
// its log: the n entries before it complete 2n - popcount(n) hashes.
func LeafPosition(number int64) int64 { return 2*number - int64(bits.OnesCount64(uint64(number))) }

// LogBatch is a new row of audit_batch: entries of one log that are numbered
// together.
type LogBatch struct {
	Number   int64   // of the first entry
	Position int64   // of the first tree hash
	Rows     []int64 // row numbers of the leaves
	Hashes   []byte  // the tree hashes that these leaves complete, concatenated
}

// LogBatches yields the rows for entries that follow a log of the given size,
// with the tree hashes that they complete. The hash of a leaf is stored only as
// a tree hash. All batches share their slices: a batch is valid until the next
// one.
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
				yield(LogBatch{}, fmt.Errorf("%d tree hashes from %d on are not those of the entries from %d on of tenant %s",
					len(hashes), position, size, tenant))
				return
			}
			rows, tree = rows[:0], tree[:0]
			for _, l := range part {
				if hashes[LeafPosition(l.Index)-position] != l.LeafHash {
					yield(LogBatch{}, fmt.Errorf("the hash of entry %d of tenant %s differs from its leaf in the "+
						"tree", l.Index, tenant))
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
