package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// template is a migrated database, from which the tests' databases are copied.
var template struct {
	sync.Mutex
	url   string
	count atomic.Int64
}

// database creates a migrated database for one test.
func database(t testing.TB) string {
	t.Helper()
	template.Lock()
	defer template.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if template.url == "" {
		dsn := pgtest.Database(t)
		s, err := Open(ctx, Config{URL: dsn})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		welcome(t, dsn)
		template.url = dsn
	}
	u, err := url.Parse(template.url)
	if err != nil {
		t.Fatal(err)
	}
	from := u.Path[1:]
	to := fmt.Sprintf("%s_%d", from, template.count.Add(1))
	u.Path = "/postgres"
	admin := u.String()
	statement(t, admin, `CREATE DATABASE `+to+` TEMPLATE `+from+` STRATEGY FILE_COPY`)
	t.Cleanup(func() { statement(t, pgtest.Superuser(admin), `DROP DATABASE `+to+` WITH (FORCE)`) })
	u.Path = "/" + to
	return u.String()
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

// ownCluster is a server that a test may stop or configure.
func ownCluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	c, err := pgtest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func openTest(t testing.TB, config Config) *Store {
	t.Helper()
	if config.URL == "" {
		config.URL = database(t)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}
