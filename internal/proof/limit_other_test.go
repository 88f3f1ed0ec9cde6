//go:build !linux

package proof

import "testing"

const unlimited = 1<<63 - 1

// limitFiles requires prlimit, which only Linux has.
func limitFiles(t testing.TB, _ int, _ uint64) {
	t.Helper()
	t.Fatal("the disk can be made full on Linux only")
}
