package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// scan runs a query that returns one row.
func scan(t *testing.T, url, sql string, to ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pgtest.AllTenants(url))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(t.Context(), sql).Scan(to...); err != nil {
		t.Fatal(err)
	}
}

// TestOtherVersionsAreRefused: databases from before the first release, or of a newer program,
// are refused and not changed.
func TestOtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{
		1:                   "from before 0.1.0",
		27:                  "from before 0.1.0",
		99:                  "from before 0.1.0",
		SchemaVersion() + 1: "newer Gatehouse",
	} {
		url := pgtest.Database(t)
		statement(t, url, `CREATE TABLE gatehouse_schema (
version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())`)
		statement(t, url, `INSERT INTO gatehouse_schema (version) SELECT generate_series(1, $1::int)`, version)
		const look = `SELECT (SELECT string_agg(relname, ' ' ORDER BY oid) FROM pg_class
			WHERE relnamespace = 'public'::regnamespace),
count(*), max(version), max(applied_at)::text FROM gatehouse_schema`
		var before, after struct {
			tables, at string
			rows, last int
		}
		scan(t, url, look, &before.tables, &before.rows, &before.last, &before.at)
		_, opened := Open(t.Context(), Config{URL: url})
		_, inspected := Inspect(t.Context(), Config{URL: url})
		for doing, err := range map[string]error{"Open": opened, "Inspect": inspected} {
			if err == nil {
				t.Errorf("%s takes version %d", doing, version)
				continue
			}
			for _, part := range []string{want, fmt.Sprintf("the database has schema version %d,", version)} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s of version %d does not say %q: %v", doing, version, part, err)
				}
			}
			if errors.Is(err, ErrNewer) != (version > shared.BaseVersion) {
				t.Errorf("%s of version %d: ErrNewer is wrong for %v", doing, version, err)
			}
		}
		scan(t, url, look, &after.tables, &after.rows, &after.last, &after.at)
		if before != after {
			t.Errorf("the database of version %d was changed: %+v, before %+v", version, after, before)
		}
	}
}

// with returns this program's migrations and one more.
func with(t *testing.T, name, sql string) fs.FS {
	t.Helper()
	files := fstest.MapFS{"migrations/" + name: &fstest.MapFile{Data: []byte(sql)}}
	list, err := shared.Migrations(migrations)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		files[m.Name] = &fstest.MapFile{Data: []byte(m.SQL)}
	}
	return files
}

// TestMigrateKeepsTheData migrates a store with data to the version of a later program. A
// failed migration changes nothing, a successful one keeps the rows, and afterwards this
// program refuses the database.
func TestMigrateKeepsTheData(t *testing.T) {
	t.Parallel()
	url := database(t)
	statement(t, pgtest.AllTenants(url), `INSERT INTO tenant (id, created_at) VALUES ('acme', 1)`)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	next := SchemaVersion() + 1
	name := fmt.Sprintf("%04d_plan.sql", next)
	const add = `ALTER TABLE tenant ADD COLUMN plan TEXT NOT NULL DEFAULT 'free';`
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	err = migrate(t.Context(), config, with(t, name, add+`INSERT INTO nowhere VALUES (1);`), false, log)
	if err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a migration that fails: %v", err)
	}
	var version, n int
	scan(t, url, `SELECT (SELECT max(version) FROM gatehouse_schema),
(SELECT count(*) FROM pg_attribute WHERE attrelid = 'tenant'::regclass AND attname = 'plan')`, &version, &n)
	if version != next-1 || n != 0 {
		t.Errorf("a migration that failed left version %d and %d columns", version, n)
	}
	for range 2 { // the second run finds nothing to do
		files := with(t, name, add+`UPDATE tenant SET plan = 'paid' WHERE id = 'acme';`)
		if err := migrate(t.Context(), config, files, false, log); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(logged.String(), "/"+name); n != 2 { // the one that failed too
		t.Errorf("logged %d times: %s", n, &logged)
	}
	scan(t, url, `SELECT (SELECT max(version) FROM gatehouse_schema),
(SELECT count(*) FROM tenant WHERE (id, plan) IN (('acme', 'paid'), ('default', 'free')))`, &version, &n)
	if version != next || n != 2 {
		t.Errorf("version %d, want %d; %d of 2 tenants are as they should be", version, next, n)
	}
	if _, err := Open(t.Context(), Config{URL: url}); !errors.Is(err, ErrNewer) {
		t.Errorf("this program opens the database of a later one: %v", err)
	}
}
