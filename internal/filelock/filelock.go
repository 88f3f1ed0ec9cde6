// Package filelock locks files between processes, and between the open files of one process. A lock ends when
// its file is closed, and so also with its process.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked says that the file is locked elsewhere.
var ErrLocked = errors.New("held by another process")

// Lock locks a file, and waits for its turn.
func Lock(f *os.File) error { return lock(f, true) }

// TryLock locks a file, or returns ErrLocked.
func TryLock(f *os.File) error { return lock(f, false) }
