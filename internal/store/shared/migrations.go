package shared

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
)

// BaseVersion is the number of the first migration on both engines. Programs
// from before the first release, 0.1.0, wrote lower versions.
const BaseVersion = 100

// Migration is one schema step: its SQL migrates a store from the previous
// version to Version.
type Migration struct {
	Version int
	Name    string
	SQL     string
}

// Migrations returns the migrations in files, "migrations/NNNN_name.sql", in
// version order.
func Migrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted by name; the numbers have four digits
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
		return 0, fmt.Errorf("%s: the name of a migration must begin with four digits and an underscore", name)
	}
	n, err := strconv.Atoi(base[:4])
	if err != nil {
		return 0, fmt.Errorf("%s: the name of a migration must begin with four digits: %w", name, err)
	}
	return n, nil
}
