package model

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// openPostgres opens databases. Its replicas are stores with their own connections.
func openPostgres() opener {
	return func(t testing.TB, now func() time.Time, replicas int) []gatehouse.Store {
		t.Helper()
		dsn := migrated.Database(t)
		stores := make([]gatehouse.Store, replicas)
		for i := range stores {
			s, err := postgres.Open(context.Background(), postgres.Config{
				URL: dsn, Clock: now, MaxConns: 6, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			stores[i] = s
		}
		return stores
	}
}
