package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
)

// LeafHash returns the hash that commits to a leaf: SHA-256(0x00 || body), the
// record hash of RFC 6962, section 2.1.
func LeafHash(body gatehouse.JSON) gatehouse.Hash {
	h, _ := leafHash(body, nil)
	return h
}

// leafHash is LeafHash with a buffer to reuse. It returns the buffer, which may
// have grown.
func leafHash(body gatehouse.JSON, buf []byte) (gatehouse.Hash, []byte) {
	buf = append(append(buf[:0], 0), body...)
	return sha256.Sum256(buf), buf
}

// Tree is the right edge of a Merkle tree: just enough to append to it and to know
// its root, in memory logarithmic in its size. The zero Tree is empty. A Tree must
// not be copied.
type Tree struct {
	size int64
	// edge holds the roots of the complete subtrees, one for each 1 in the
	// binary form of size, the largest first.
	edge []gatehouse.Hash
}

// Size returns the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Append adds a leaf. It appends to stored the hashes that the leaf completes, in
// the order of their storage indexes: the leaf's own, then those of the subtrees
// that end with this leaf. It returns the extended slice.
func (t *Tree) Append(leaf gatehouse.Hash, stored []gatehouse.Hash) []gatehouse.Hash {
	stored = append(stored, leaf)
	h := leaf
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.edge) - 1
		h = nodeHash(t.edge[last], h)
		t.edge = t.edge[:last]
		stored = append(stored, h)
	}
	t.edge = append(t.edge, h)
	t.size++
	return stored
}

// Root returns the tree's hash; the hash of the empty tree is SHA-256 of nothing.
func (t *Tree) Root() gatehouse.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = nodeHash(t.edge[i], h)
	}
	return h
}

func nodeHash(left, right gatehouse.Hash) gatehouse.Hash {
	return gatehouse.Hash(tlog.NodeHash(tlog.Hash(left), tlog.Hash(right)))
}

// loadTree reads the tree of a tenant's log at a size, which must not exceed
// the log's, with one read of stored hashes.
func loadTree(r gatehouse.LogReader, tenant string, size int64) (*Tree, error) {
	edge, err := readHashes(r, tenant, edgeIndexes(size))
	if err != nil {
		return nil, err
	}
	return &Tree{size: size, edge: edge}, nil
}

// edgeIndexes returns the storage indexes of the complete subtrees that make
// up a tree of this size, the largest subtree first.
func edgeIndexes(size int64) []int64 {
	var indexes []int64
	for level := 62; level >= 0; level-- {
		if size>>level&1 == 1 {
			indexes = append(indexes, tlog.StoredHashIndex(level, size>>level-1))
		}
	}
	return indexes
}

// readHashes reads all of the given stored hashes, or fails.
func readHashes(r gatehouse.LogReader, tenant string, indexes []int64) ([]gatehouse.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	hashes, err := r.LogHashes(indexes)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, fmt.Errorf("audit: tenant %s: of %d tree hashes, one is not stored: %w", tenant, len(indexes),
			ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: read %d tree hashes of tenant %s: %w", len(indexes), tenant, err)
	}
	if len(hashes) != len(indexes) {
		return nil, fmt.Errorf("audit: tenant %s: %d tree hashes of %d are stored: %w", tenant, len(hashes), len(indexes),
			ErrDamaged)
	}
	return hashes, nil
}
