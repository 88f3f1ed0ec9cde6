package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
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
	want(term.CheckOK, "schema version", func(l *ConfigChecker) { l.folder(t.Context(), dir) })
	want(term.CheckNote, "gatehouse serve migrates it to 101", func(l *ConfigChecker) { l.version("a store", 100, 101) })
}

// TestConfigCheckReadsTheMasterKey: config check uses the master key of the data folder as serve does, which ignores it
// when the store is a database.
func TestConfigCheckReadsTheMasterKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "gatehouse.yaml"), []byte(`
secrets: {CRM: "store:crm-token"}
channels: {mail: {kind: email, smtp: "localhost:25", from: a@example.com, bounces: bounce@example.com}}
`), 0o600))
	key := func(text string) { must(t, os.WriteFile(filepath.Join(dir, masterKeyFile), []byte(text), 0o600)) }
	key(ring.NewMasterKey())
	const missing = "bounces needs a master key"
	for url, want := range map[DatabaseURL]bool{"": false, "postgres://127.0.0.1:1/none?sslmode=disable": true} {
		g, out, _ := termtest.New(t)
		c := &CheckCommand{DataFlags: DataFlags{Data: dir}, DatabaseURL: url, Offline: true}
		must(t, c.Run(g))
		if strings.Contains(out.String(), missing) != want {
			t.Errorf("with the database %q:\n%s", url, out)
		}
	}
	key("")
	cfg, err := config.Load(filepath.Join(dir, "gatehouse.yaml"))
	must(t, err)
	l := &ConfigChecker{}
	l.OpenSecrets(t.Context(), cfg, dir, "postgres://127.0.0.1:1/none?sslmode=disable")
	if len(l.Checks) != 1 || strings.Contains(l.Checks[0].Detail, masterKeyFile) {
		t.Errorf("an unused master key with a database: %+v", l.Checks)
	}
}
