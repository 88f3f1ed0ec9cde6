package shared

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
)

// BaseVersion is the number of the first migration, on both engines. Lower
// versions were written by programs from before the first release, 0.1.0.
const BaseVersion = 100

// Migration is one step of a schema: its SQL brings a store from the version
// before it to Version.
type Migration struct {
	Version int
	Name    string
	SQL     string
}

// Migrations returns the migrations in files, "migrations/NNNN_name.sql", in the
// order of their versions.
func Migrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted, and the numbers have four digits
	if err != nil {
		return nil, err
	}
	list := make([]Migration, len(names))
	for i, name := range names {
		version, err := migrationNumber(name)
		if err != nil {
			return nil, err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		list[i] = Migration{Version: version, Name: name, SQL: string(text)}
	}
	return list, nil
}

// NewestMigration returns the highest version in files.
func NewestMigration(files fs.FS) int {
	names, _ := fs.Glob(files, "migrations/*.sql")
	n, _ := migrationNumber(names[len(names)-1])
	return n
}

func migrationNumber(name string) (int, error) {
	base := path.Base(name)
	if len(base) < 5 || base[4] != '_' {
		return 0, fmt.Errorf("%s: the name of a migration begins with four digits and an underscore", name)
	}
	n, err := strconv.Atoi(base[:4])
	if err != nil {
		return 0, fmt.Errorf("%s: the name of a migration begins with four digits: %w", name, err)
	}
	return n, nil
}
