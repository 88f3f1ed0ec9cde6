package proof

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// diskSize is enough for the store and a few thousand actions.
const diskSize = "size=24m"

// newDisk creates a small file system if permitted, as for root. Otherwise it
// uses a folder, in which the files of the server are limited to their present
// size.
//
// Only the test's own thread and the servers that it starts see the file
// system: it disappears with them, however the test ends.
func newDisk(t testing.TB) *disk {
	t.Helper()
	dir := t.TempDir()
	runtime.LockOSThread() // forever: the thread ends with the test
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("gatehouse-proof", dir, "tmpfs", 0, diskSize)
	}
	if err != nil {
		t.Logf("no file system of its own (%v): the server's files are held to their size", err)
		return &disk{dir: dir, fill: heldToSize(dir),
			free: func(t testing.TB, s *server) { limitFiles(t, s.pid(), unlimited) }}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	return &disk{
		dir: dir, real: true,
		fill: func(t testing.TB, _ *server) {
			t.Helper()
			f, err := os.OpenFile(ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			block := make([]byte, 64<<10)
			for err == nil {
				_, err = f.Write(block)
			}
			if err := errors.Join(f.Close(), unless(err, syscall.ENOSPC)); err != nil {
				t.Fatal(err)
			}
		},
		free: func(t testing.TB, _ *server) {
			t.Helper()
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// heldToSize prevents files in a folder from growing beyond the largest
// existing one.
func heldToSize(dir string) func(testing.TB, *server) {
	return func(t testing.TB, s *server) {
		t.Helper()
		largest := int64(0)
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				largest = max(largest, info.Size())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		limitFiles(t, s.pid(), uint64(largest))
	}
}
