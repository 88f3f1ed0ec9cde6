package sqlite

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// newFile creates a file in WAL mode, as the store does, and runs a script on
// it.
func newFile(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	c, err := openWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script(script); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOtherVersionsAreRefused: a file from before the first release and a file
// of a newer program are refused with a clear error and not changed.
func TestOtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{
		1:                   "from before 0.1.0",
		21:                  "from before 0.1.0",
		99:                  "from before 0.1.0",
		SchemaVersion() + 1: "newer Gatehouse",
	} {
		path := newFile(t, fmt.Sprintf(`CREATE TABLE action (seq INTEGER PRIMARY KEY, id TEXT NOT NULL) STRICT;
INSERT INTO action (id) VALUES ('act_1'); PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID,
			version))
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := fmt.Sprintf("version %d,", version)
		_, opened := Open(t.Context(), Config{Path: path})
		_, inspected := Inspect(t.Context(), Config{Path: path})
		for doing, err := range map[string]error{"Open": opened, "Inspect": inspected} {
			if err == nil {
				t.Errorf("%s takes version %d", doing, version)
				continue
			}
			for _, part := range []string{want, named, path} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s of version %d does not say %q: %v", doing, version, part, err)
				}
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file of version %d was changed: %v", version, err)
		}
		if left, err := os.Stat(path + "-wal"); err == nil && left.Size() > 0 {
			t.Errorf("version %d: a log of %d bytes is left", version, left.Size())
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

// TestMigrateKeepsTheData migrates a store with data to the version of a later
// program: a failed migration leaves no trace, a successful one keeps the rows,
// and this program then refuses the file.
func TestMigrateKeepsTheData(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, insertTenant("acme"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	c, err := openWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	number := func(sql string) int64 {
		t.Helper()
		n, err := c.number(sql)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	next := SchemaVersion() + 1
	name := fmt.Sprintf("%04d_plan.sql", next)
	const add = `ALTER TABLE tenant ADD COLUMN plan TEXT NOT NULL DEFAULT 'free';`
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	err = migrate(c, with(t, name, add+`INSERT INTO nowhere VALUES (1);`), log)
	if err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a migration that fails: %v", err)
	}
	columns := number(`SELECT count(*) FROM pragma_table_info('tenant') WHERE name = 'plan'`)
	if v := number(`PRAGMA user_version`); v != int64(next-1) || columns != 0 {
		t.Errorf("a migration that failed left version %d and %d columns", v, columns)
	}
	for range 2 { // the second time there is nothing to do
		if err := migrate(c, with(t, name, add+`UPDATE tenant SET plan = 'paid' WHERE id = 'acme';`), log); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(logged.String(), "/"+name); n != 2 { // the one that failed too
		t.Errorf("logged %d times: %s", n, &logged)
	}
	if v := number(`PRAGMA user_version`); v != int64(next) {
		t.Errorf("version %d, want %d", v, next)
	}
	const right = `SELECT count(*) FROM tenant WHERE (id, plan) IN (VALUES ('acme', 'paid'), ('default', 'free'))`
	if n := number(right); n != 2 {
		t.Errorf("%d of 2 tenants are as they should be", n)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: path}); err == nil ||
		!strings.Contains(err.Error(), "newer Gatehouse") {
		t.Errorf("this program opens the file of a later one: %v", err)
	}
}
