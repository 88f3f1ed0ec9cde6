package audit

import (
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
)

// ErrDamaged says that the log contradicts its own hashes, or that required hashes
// are missing. Only a change behind the program's back, or a broken disk, causes
// it.
var ErrDamaged = errors.New("the log is damaged")

// Head returns size and root of a tenant's log according to its stored hashes. It
// reads a logarithmic number of hashes and no entries; [Check] compares the hashes
// with the entries.
func Head(tx gatehouse.LogReader, tenant string) (gatehouse.LogHead, error) {
	size, err := tx.LogSize()
	if err != nil {
		return gatehouse.LogHead{}, err
	}
	return headAt(tx, tenant, size)
}

// headAt returns the head that the log had at a size, at most the present one.
func headAt(tx gatehouse.LogReader, tenant string, size int64) (gatehouse.LogHead, error) {
	tree, err := loadTree(tx, tenant, size)
	if err != nil {
		return gatehouse.LogHead{}, err
	}
	return gatehouse.LogHead{Tenant: tenant, Size: size, Root: tree.Root()}, nil
}

// ProveEntry proves that an entry lies in the log of the given size, 0 for the
// present one (RFC 6962, section 2.1.1). [tlog.CheckRecord] checks it. An entry that
// is not below size, or a size beyond the log's, is an Error with code invalid.
func ProveEntry(tx gatehouse.LogReader, tenant string, entry, size int64) (*gatehouse.EntryProof, error) {
	size, err := sizeIn(tx, "/query/size", size)
	if err != nil {
		return nil, err
	}
	if entry < 0 || entry >= size {
		return nil, invalid("/query/entry", "must be from 0 to %d, the last entry of a log of size %d", size-1, size)
	}
	head, err := headAt(tx, tenant, size)
	if err != nil {
		return nil, err
	}
	leaf, err := readHashes(tx, tenant, []int64{tlog.StoredHashIndex(0, entry)})
	if err != nil {
		return nil, err
	}
	proof, err := tlog.ProveRecord(size, entry, reader(tx, tenant))
	return &gatehouse.EntryProof{Entry: entry, Size: size, Root: head.Root, LeafHash: leaf[0], Hashes: hashes(proof)}, err
}

// ProveGrowth proves that the log at size to, 0 for the present one, begins with
// the log at size from (RFC 6962, section 2.1.2). [tlog.CheckTree] checks it. Sizes
// other than 1 <= from <= to <= the log's are an Error with code invalid.
func ProveGrowth(tx gatehouse.LogReader, tenant string, from, to int64) (*gatehouse.GrowthProof, error) {
	to, err := sizeIn(tx, "/query/to", to)
	if err != nil {
		return nil, err
	}
	if from < 1 || from > to {
		return nil, invalid("/query/from", "must be from 1 to %d", to)
	}
	before, err := headAt(tx, tenant, from)
	if err != nil {
		return nil, err
	}
	after, err := headAt(tx, tenant, to)
	if err != nil {
		return nil, err
	}
	proof, err := tlog.ProveTree(to, from, reader(tx, tenant))
	return &gatehouse.GrowthProof{
		From: from, To: to, FromRoot: before.Root, ToRoot: after.Root, Hashes: hashes(proof),
	}, err
}

// sizeIn returns a size of the log, the present one for 0, and refuses a size that the log
// has not reached.
func sizeIn(tx gatehouse.LogReader, pointer string, size int64) (int64, error) {
	have, err := tx.LogSize()
	switch {
	case err != nil:
		return 0, err
	case have == 0:
		return 0, invalid(pointer, "the log is empty")
	case size == 0:
		return have, nil
	case size < 0 || size > have:
		return 0, invalid(pointer, "must be from 1 to %d, the size of the log", have)
	}
	return size, nil
}

// hashes returns a proof of tlog, never nil.
func hashes(proof []tlog.Hash) []gatehouse.Hash {
	out := make([]gatehouse.Hash, len(proof))
	for i, h := range proof {
		out[i] = gatehouse.Hash(h)
	}
	return out
}

func invalid(pointer, format string, args ...any) error {
	var v gatehouse.Violations
	v.Add(pointer, format, args...)
	return v.Err()
}

// reader makes a tenant's stored hashes available to tlog.
func reader(tx gatehouse.LogReader, tenant string) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes, err := readHashes(tx, tenant, indexes)
		if err != nil {
			return nil, err
		}
		out := make([]tlog.Hash, len(hashes))
		for i, h := range hashes {
			out[i] = tlog.Hash(h)
		}
		return out, nil
	})
}
