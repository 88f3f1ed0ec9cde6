package shared_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestEnginesHaveTheSameMigrations: a number and name mean the same step on both engines, and the
// first step is the base.
func TestEnginesHaveTheSameMigrations(t *testing.T) {
	t.Parallel()
	names := map[string][]string{}
	for _, engine := range []string{"sqlite", "postgres"} {
		files := os.DirFS("../" + engine)
		list, err := shared.Migrations(files)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range list {
			if want := shared.BaseVersion + i; m.Version != want {
				t.Errorf("%s: %s is number %d, want %d", engine, m.Name, m.Version, want)
			}
			names[engine] = append(names[engine], m.Name)
		}
		if newest := shared.NewestMigration(files); newest != list[len(list)-1].Version {
			t.Errorf("%s: the newest version is %d", engine, newest)
		}
	}
	if d := cmp.Diff(names["sqlite"], names["postgres"]); d != "" {
		t.Errorf("migrations of SQLite and of PostgreSQL (-sqlite +postgres):\n%s", d)
	}
}

// TestMigrationNames refuses file names without a valid version.
func TestMigrationNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"base.sql", "100_base.sql", "01000_base.sql", "x100_base.sql"} {
		files := fstest.MapFS{"migrations/" + name: &fstest.MapFile{Data: []byte("SELECT 1")}}
		if list, err := shared.Migrations(files); err == nil {
			t.Errorf("%s was taken as %+v", name, list)
		}
	}
}
