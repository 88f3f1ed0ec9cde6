package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as Gatehouse's: "GATE".
const applicationID = 0x47415445

// migrate brings the file to the newest version in files, forward only, each
// migration in its own transaction. It refuses, and does not change, a database that
// is newer than files or older than the first release. The caller holds the
// file's lock. Each migration of a file that has data is logged, since it may
// take long. The version is SQLite's user_version, which is part of the
// transaction.
//
// goose is not used: it needs database/sql, so each start would open the file a
// second time just for goose.
func migrate(c *conn, files fs.FS, log *slog.Logger) error {
	id, err := c.number(`PRAGMA application_id`)
	if err != nil {
		return err
	}
	tables, err := c.number(`SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return err
	}
	if id != applicationID && (id != 0 || tables != 0) {
		return errors.New("this file is another program's database")
	}
	version, err := c.number(`PRAGMA user_version`)
	if err != nil {
		return err
	}
	if version > int64(shared.NewestMigration(files)) {
		return newerError(int(version))
	}
	if version > 0 && version < shared.BaseVersion {
		return olderError(int(version))
	}
	list, err := shared.Migrations(files)
	if err != nil {
		return err
	}
	for _, m := range list {
		if int64(m.Version) <= version {
			continue
		}
		if version > 0 {
			log.Info("migrating the store", "migration", m.Name)
		}
		if err := apply(c, m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	c.forget() // drops statements that were prepared against the old tables
	return nil
}

func newerError(version int) error {
	return fmt.Errorf("the file has schema version %d, this program knows versions up to %d: it was written by a newer "+
		"Gatehouse", version, SchemaVersion())
}

// olderError is the error for a file older than the first release.
func olderError(version int) error {
	return fmt.Errorf("the file has schema version %d, written by a Gatehouse from before 0.1.0, "+
		"which this program does not read: start with a new data folder, "+
		"or export what you need with the program that wrote it", version)
}

func apply(c *conn, m shared.Migration) (err error) {
	if err := c.script(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if err != nil && !c.autocommit() {
			err = errors.Join(err, c.script(`ROLLBACK`))
		}
	}()
	if err := c.script(m.SQL); err != nil {
		return err
	}
	mark := fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, m.Version)
	if err := c.script(mark); err != nil {
		return err
	}
	return c.script(`COMMIT`)
}
