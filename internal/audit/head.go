package audit

import (
	"errors"

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

// headAt is Head for an earlier size, or the present one.
func headAt(tx gatehouse.LogReader, tenant string, size int64) (gatehouse.LogHead, error) {
	tree, err := loadTree(tx, tenant, size)
	if err != nil {
		return gatehouse.LogHead{}, err
	}
	return gatehouse.LogHead{Tenant: tenant, Size: size, Root: tree.Root()}, nil
}
