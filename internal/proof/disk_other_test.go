//go:build !linux

package proof

import "testing"

// newDisk requires Linux.
func newDisk(t testing.TB) *disk {
	t.Helper()
	t.Fatal("the disk can be made full on Linux only")
	return nil
}
