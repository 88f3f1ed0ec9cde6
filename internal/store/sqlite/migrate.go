package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as Gatehouse's: "GATE".
const applicationID = 0x47415445

// migrate brings the file to the newest version, forward only, each migration
// in a transaction of its own. The caller holds the file's lock. The version is
// SQLite's user_version, which is part of the transaction.
//
// It is not goose: that one speaks database/sql only, and would be the one
// reason to open the file a second way at each start.
func migrate(c *conn, now time.Time) error {
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
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	version, err := c.number(`PRAGMA user_version`)
	if err != nil {
		return err
	}
	newest, err := migrationNumber(names[len(names)-1])
	if err != nil {
		return err
	}
	if version > int64(newest) {
		return newerError(int(version))
	}
	for _, name := range names { // in their order
		n, err := migrationNumber(name)
		if err != nil {
			return err
		}
		if int64(n) <= version {
			continue
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := apply(c, n, string(text), now); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	c.forget() // what reads tables that are no more
	return nil
}

func newerError(version int) error {
	return fmt.Errorf("the file is of version %d, this program knows %d: it was written by a newer Gatehouse", version, SchemaVersion())
}

// migrationNumber is the version that a migration leads to.
func migrationNumber(name string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(name, "migrations/")[:4])
}

func apply(c *conn, version int, text string, now time.Time) (err error) {
	if err := c.script(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if err != nil && !c.autocommit() {
			err = errors.Join(err, c.script(`ROLLBACK`))
		}
	}()
	if err := c.script(text); err != nil {
		return err
	}
	if version == 1 {
		// The default tenant always exists.
		if _, err := c.exec(`INSERT INTO tenant (id, created_at) VALUES (?, ?)`, gatehouse.DefaultTenant, now); err != nil {
			return err
		}
	}
	if version == 12 {
		if err := batchEntries(c); err != nil {
			return err
		}
	}
	if err := c.script(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, version)); err != nil {
		return err
	}
	return c.script(`COMMIT`)
}
