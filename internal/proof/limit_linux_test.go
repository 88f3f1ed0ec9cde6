package proof

import (
	"testing"

	"golang.org/x/sys/unix"
)

const unlimited = unix.RLIM_INFINITY

// limitFiles bounds the size of files that a process can write. This simulates
// a full disk without a special file system or the right to create one.
func limitFiles(t testing.TB, pid int, size uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatalf("prlimit: %v", err)
	}
}
