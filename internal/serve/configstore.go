package serve

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// database checks that a PostgreSQL database answers, and the versions of the server
// and the tables. It changes nothing.
func (l *ConfigChecker) database(ctx context.Context, url string) {
	if l.Offline {
		l.add("store", term.CheckOK, "not called")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := postgres.Probe(ctx, url)
	if err != nil {
		l.add("store", term.CheckFail, "the database does not answer: %v", err)
		return
	}
	l.version("PostgreSQL "+found.Server, found.Schema, postgres.SchemaVersion())
}

// folder checks the database file of a data folder.
func (l *ConfigChecker) folder(ctx context.Context, data string) {
	path := filepath.Join(data, DatabaseFile)
	version, err := sqlite.FileVersion(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.add("store", term.CheckNote, "there is no %s yet: gatehouse init makes it", path)
	case err != nil:
		l.add("store", term.CheckFail, "%v", err)
	default:
		l.version(path, version, sqlite.SchemaVersion())
	}
}

// version compares the tables' version with this program's; 0 means no tables.
func (l *ConfigChecker) version(what string, found, known int) {
	switch {
	case found == 0:
		l.add("store", term.CheckNote, "%s answers and has no tables yet: gatehouse serve makes them", what)
	case found > known:
		l.add("store", term.CheckFail, "%s has schema version %d, this program knows versions up to %d: a newer Gatehouse "+
			"wrote it", what, found, known)
	case found < shared.BaseVersion:
		l.add("store", term.CheckFail, "%s has schema version %d, from before 0.1.0: this program does not read it", what,
			found)
	case found < known:
		l.add("store", term.CheckNote, "%s has schema version %d: gatehouse serve migrates it to %d when it starts",
			what, found, known)
	default:
		l.add("store", term.CheckOK, "%s, schema version %d", what, found)
	}
}
