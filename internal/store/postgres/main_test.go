package postgres

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// template is a migrated database, from which the tests' databases are copied.
var template = pgtest.Template{Prepare: func(t testing.TB, dsn string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Open(ctx, Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	grantGuest(t, dsn)
}}

// database creates a migrated database for one test.
func database(t testing.TB) string {
	t.Helper()
	return template.Copy(t)
}

func statement(t testing.TB, dsn, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, sql, args...); err != nil {
		t.Fatal(err)
	}
}

func openTest(t testing.TB, config Config) *Store {
	t.Helper()
	if config.URL == "" {
		config.URL = database(t)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.maxClosureTime == 0 {
		config.maxClosureTime = 20 * time.Second // so that groups lose no member on a busy machine
	}
	s, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("Close: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("Close waits for %d connections that were not released", s.pool.Stat().AcquiredConns())
		}
	})
	return s
}
