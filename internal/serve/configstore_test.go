package serve

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestConfigCheckLooksAtTheStore: the check reports whether the store answers and its version, and
// migrates nothing.
func TestConfigCheckLooksAtTheStore(t *testing.T) {
	t.Parallel()
	want := func(result, words string, look func(*ConfigChecker)) {
		t.Helper()
		l := &ConfigChecker{}
		look(l)
		if len(l.Checks) != 1 || l.Checks[0].Result != result || !strings.Contains(l.Checks[0].Detail, words) {
			t.Errorf("%+v, want %s: %s", l.Checks, result, words)
		}
	}
	dsn := pgtest.Database(t)
	database := func(l *ConfigChecker) { l.database(t.Context(), dsn) }
	want(term.CheckNote, "has no tables yet", database)
	want(term.CheckNote, "has no tables yet", database) // the first check created none
	s := migrated.Open(t, dsn, nil)
	must(t, s.Close())
	want(term.CheckOK, "PostgreSQL 1", database)
	c, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`DELETE FROM gatehouse_schema`)
	exec(`INSERT INTO gatehouse_schema (version) VALUES (27)`)
	want(term.CheckFail, "from before 0.1.0", database)
	exec(`INSERT INTO gatehouse_schema (version) VALUES (1000)`)
	want(term.CheckFail, "a newer Gatehouse wrote it", database)
	want(term.CheckFail, "does not answer", func(l *ConfigChecker) {
		l.database(t.Context(),
			"postgres://127.0.0.1:1/none?sslmode=disable")
	})
	want(term.CheckOK, "not called", func(l *ConfigChecker) { l.Offline = true; l.database(t.Context(), dsn) })

	dir := t.TempDir()
	want(term.CheckNote, "gatehouse init makes it", func(l *ConfigChecker) { l.folder(t.Context(), dir) })
	n, err := Open(t.Context(), dir, &config.Config{}, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, n.Close())
	want(term.CheckOK, "of version", func(l *ConfigChecker) { l.folder(t.Context(), dir) })
	want(term.CheckNote, "gatehouse serve migrates it to 101", func(l *ConfigChecker) { l.version("a store", 100, 101) })
}
