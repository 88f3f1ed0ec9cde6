// Package migrated gives tests databases that have a store's tables.
package migrated

import (
	"context"
	"log/slog"
	"testing"

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
