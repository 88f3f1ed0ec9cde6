package model

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// opener opens replicas on one new and empty database. They read the given
// clock; a nil one is the wall's. They are closed when the test ends.
type opener func(t testing.TB, now func() time.Time, replicas int) []gatehouse.Store

// engines lists what the proofs are run on. What is observed on one must be
// observed on all. GATEHOUSE_MODEL_ENGINE names one that is run alone, for who
// needs to know no more.
func engines(t testing.TB) map[string]opener {
	all := map[string]opener{
		"sqlite":   openSQLite,
		"postgres": openPostgres(t),
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

// openSQLite has one store per file: its replicas are gates, not stores.
func openSQLite(t testing.TB, now func() time.Time, replicas int) []gatehouse.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{
		Path: filepath.Join(t.TempDir(), "gatehouse.db"), Clock: now, Readers: 2, Logger: slog.New(slog.DiscardHandler),
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

// clock is a clock that moves only when told. It is shared by all engines.
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

// long reports whether the long form was asked for.
func long() bool { return os.Getenv("GATEHOUSE_STORM") == "long" }

// TestMain sets how many sequences rapid plays, and of about how many steps,
// unless the command line does.
func TestMain(m *testing.M) {
	flag.Parse()
	want := map[string]string{"rapid.checks": "60", "rapid.steps": "50"}
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
