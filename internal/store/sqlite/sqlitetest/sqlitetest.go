// Package sqlitetest creates database files with a store's tables for tests.
package sqlitetest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Template is a database file that tests copy: a copy takes a sixth of the time of the
// migrations.
type Template struct {
	// Make opens a new store with a clock, and closes it.
	Make func(path string, clock func() time.Time) error

	once sync.Once
	file []byte
	err  error
}

// File copies the template into the test's temporary folder.
func (p *Template) File(t testing.TB) (path string) {
	t.Helper()
	p.once.Do(func() { p.file, p.err = p.make() })
	path = filepath.Join(t.TempDir(), "gatehouse.db")
	if err := errors.Join(p.err, os.WriteFile(path, p.file, 0o600)); err != nil {
		t.Fatalf("sqlitetest: %v", err)
	}
	return path
}

func (p *Template) make() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gatehouse-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "gatehouse.db")
	// A store's clock never runs backwards, and a test's clock may begin at any
	// time.
	if err := p.Make(path, func() time.Time { return time.Unix(0, 0) }); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, errors.New("the store has not been closed"))
	}
	return os.ReadFile(path)
}
