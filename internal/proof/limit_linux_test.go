package proof

import (
	"testing"

	"golang.org/x/sys/unix"
)

const unlimited = unix.RLIM_INFINITY

// limitFiles bounds the size of files that a process can write, which is how a
// disk gets full without a file system of a size, or a right to make one.
func limitFiles(t testing.TB, pid int, size uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatalf("prlimit: %v", err)
	}
}
