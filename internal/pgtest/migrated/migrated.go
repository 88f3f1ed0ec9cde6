// Package migrated gives tests databases that have a store's tables.
package migrated

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

var template = pgtest.Template{Prepare: func(t testing.TB, dsn string) {
	s, err := postgres.Open(context.Background(), postgres.Config{URL: dsn, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}}

// Database is [pgtest.Database] with a store's tables. It is dropped after the test.
func Database(t testing.TB) string {
	t.Helper()
	return template.Copy(t)
}

// Open opens the store of a database until the test ends. If clock is nil, the store uses the server's clock.
func Open(t testing.TB, dsn string, clock func() time.Time) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{
		URL: dsn, MaxConns: 4, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
