package model

import (
	"flag"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// opener opens replicas on one new, empty database. They use the given clock;
// nil means the wall clock. They are closed when the test ends.
type opener func(t testing.TB, now func() time.Time, replicas int) []gatehouse.Store

// engines lists the engines for the proofs. All engines must show the same
// behaviour. GATEHOUSE_MODEL_ENGINE restricts a run to one of them.
func engines(t testing.TB) map[string]opener {
	all := map[string]opener{
		"sqlite":   openSQLite,
		"postgres": openPostgres(),
	}
	if name := os.Getenv("GATEHOUSE_MODEL_ENGINE"); name != "" {
		if all[name] == nil {
			t.Fatalf("GATEHOUSE_MODEL_ENGINE: there is no engine %q", name)
		}
		t.Logf("on %s alone", name)
		return map[string]opener{name: all[name]}
	}
	return all
}

// openSQLite opens one store per file: its replicas are gates, not stores.
func openSQLite(t testing.TB, now func() time.Time, replicas int) []gatehouse.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{
		Path: migratedfile.New(t), Clock: now, Readers: 2, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	stores := make([]gatehouse.Store, replicas)
	for i := range stores {
		stores[i] = s
	}
	return stores
}

// clock moves only when it is advanced. All engines share it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

// long reports whether the long form was requested.
func long() bool { return os.Getenv("GATEHOUSE_STORM") == "long" }

// TestMain sets the number of rapid's sequences and their approximate length,
// unless the command line does.
func TestMain(m *testing.M) {
	flag.Parse()
	want := map[string]string{"rapid.checks": "24", "rapid.steps": "50"}
	if long() {
		want["rapid.checks"] = "5000"
	}
	flag.Visit(func(f *flag.Flag) { delete(want, f.Name) })
	for name, value := range want {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(pgtest.Main(m))
}
