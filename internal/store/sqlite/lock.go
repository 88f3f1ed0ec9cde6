package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/filelock"
)

// fileLock keeps a second process out. SQLite's own locks would admit it; then
// two writers would each rely on their own clock and batch numbers.
type fileLock struct{ f *os.File }

// ErrInUse is the error of Open while another process has the file open.
var ErrInUse = errors.New("in use by another Gatehouse process")

// acquire takes the lock and waits at most wait for its holder to end.
func acquire(ctx context.Context, path string, wait time.Duration) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	for {
		err := filelock.TryLock(f)
		if err == nil {
			break
		}
		if !errors.Is(err, filelock.ErrLocked) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if !time.Now().Before(deadline) {
			holder, _ := os.ReadFile(path)
			who := strings.TrimSpace(string(holder))
			if who == "" {
				who = "unknown"
			}
			return nil, errors.Join(
				fmt.Errorf("the data folder %s is %w (pid %s): one process at a time may open it", filepath.Dir(path),
					ErrInUse, who),
				f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
	// The pid only informs people: the lock itself ends with the process.
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &fileLock{f}, nil
}

// release releases the lock. It leaves the file: removing it would race with
// the next holder.
func (l *fileLock) release() error {
	if l == nil || l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}
