package model

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// openPostgres opens databases that are copies of a migrated template. Its
// replicas are stores with their own connections.
func openPostgres(top testing.TB) opener {
	var mu sync.Mutex
	var template string
	copies := 0
	database := func(t testing.TB) string {
		mu.Lock()
		defer mu.Unlock()
		if template == "" {
			template = pgtest.Database(top)
			s, err := postgres.Open(context.Background(), postgres.Config{URL: template, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		u, err := url.Parse(template)
		if err != nil {
			t.Fatal(err)
		}
		from := u.Path[1:]
		copies++
		name := fmt.Sprintf("%s_%d", from, copies)
		u.Path = "/postgres"
		admin := u.String()
		statement(t, admin, "CREATE DATABASE "+name+" TEMPLATE "+from)
		t.Cleanup(func() { statement(t, pgtest.Superuser(admin), "DROP DATABASE "+name+" WITH (FORCE)") })
		u.Path = "/" + name
		return u.String()
	}
	return func(t testing.TB, now func() time.Time, replicas int) []gatehouse.Store {
		t.Helper()
		dsn := database(t)
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

func statement(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
