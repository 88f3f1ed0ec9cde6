// Package migratedfile gives tests SQLite files that have a store's tables.
package migratedfile

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest"
)

var template = sqlitetest.Template{Make: func(path string, clock func() time.Time) error {
	s, err := sqlite.Open(context.Background(), sqlite.Config{
		Path: path, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return s.Close()
}}

// New returns the path of a new file in the test's temporary folder.
func New(t testing.TB) (path string) {
	t.Helper()
	return template.File(t)
}

// Open opens the store of a file until the test ends. A nil clock is time.Now.
func Open(t testing.TB, path string, clock func() time.Time) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
