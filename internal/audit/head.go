package audit

import (
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
)

// ErrDamaged says that the log contradicts its own hashes, or that required hashes
// are missing. Only a change behind the program's back, or a broken disk, causes
// it.
var ErrDamaged = errors.New("audit: the stored log is damaged")

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

// HeadAt returns the head that the log had at an earlier size, from 0 to the
// present one; any other size is an Error with code invalid.
func HeadAt(tx gatehouse.LogReader, tenant string, size int64) (gatehouse.LogHead, error) {
	if err := inLog(tx, "/size", size, 0); err != nil {
		return gatehouse.LogHead{}, err
	}
	return headAt(tx, tenant, size)
}

func headAt(tx gatehouse.LogReader, tenant string, size int64) (gatehouse.LogHead, error) {
	tree, err := loadTree(tx, tenant, size)
	if err != nil {
		return gatehouse.LogHead{}, err
	}
	return gatehouse.LogHead{Tenant: tenant, Size: size, Root: tree.Root()}, nil
}

// Proof proves that entry index lies in the log of the given size (RFC 6962,
// section 2.1.1). [tlog.CheckRecord] checks it. An index that is not below
// size, or a size beyond the log's, is an Error with code invalid.
func Proof(tx gatehouse.LogReader, tenant string, index, size int64) (tlog.RecordProof, error) {
	if err := inLog(tx, "/size", size, 1); err != nil {
		return nil, err
	}
	if index < 0 || index >= size {
		return nil, invalid("/entry", "must be from 0 to %d, the last entry of a log of size %d", size-1, size)
	}
	return tlog.ProveRecord(size, index, reader(tx, tenant))
}

// Consistency proves that the log at size to begins with the log at size from
// (RFC 6962, section 2.1.2). [tlog.CheckTree] checks it. Sizes other than
// 1 <= from <= to <= the log's are an Error with code invalid.
func Consistency(tx gatehouse.LogReader, tenant string, from, to int64) (tlog.TreeProof, error) {
	if err := inLog(tx, "/to", to, 1); err != nil {
		return nil, err
	}
	if from < 1 || from > to {
		return nil, invalid("/from", "must be from 1 to %d", to)
	}
	return tlog.ProveTree(to, from, reader(tx, tenant))
}

// inLog checks that size lies between least and the size of the log.
func inLog(tx gatehouse.LogReader, pointer string, size, least int64) error {
	have, err := tx.LogSize()
	if err != nil {
		return err
	}
	if have < least {
		return invalid(pointer, "the log is empty")
	}
	if size < least || size > have {
		return invalid(pointer, "must be from %d to %d, the size of the log", least, have)
	}
	return nil
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
