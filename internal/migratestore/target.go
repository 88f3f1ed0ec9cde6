package migratestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// Tables that exist only during a copy, besides [postgres.MoveTable].
const (
	progressTable = "gatehouse_move_progress"
	keysTable     = "gatehouse_move_keys"
)

// queueTable holds the leaves that wait for numbers. A folder has no such table: there, the leaves after the last
// numbered one wait.
const queueTable = "audit_waiting"

// lockKey is the advisory lock of the copying process: "MOVE".
const lockKey = 0x4d4f5645

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// connect opens the working connection and takes the lock that allows only one
// copy into this database.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgurl.Parse(url)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	config.RuntimeParams["application_name"] = "gatehouse migrate-store"
	// A killed earlier call may have left a server session that holds locks.
	config.RuntimeParams["lock_timeout"] = "10s"
	config.RuntimeParams[postgres.TenantSetting] = postgres.AllTenants
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("the database: %w", err)
	}
	if _, err := c.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lockKey)); err != nil {
		var e *pgconn.PgError
		if errors.As(err, &e) && e.Code == "55P03" {
			err = gatehouse.E(gatehouse.CodeAlreadyExists, "another migrate-store is at work on this database")
		}
		return nil, fmt.Errorf("the database: %w", errors.Join(err, hangUp(c)))
	}
	return c, nil
}

// hangUp closes a connection, even after the context has ended.
func hangUp(c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.Close(ctx)
}

// state is the progress of a database.
type state string

const (
	stateBlank    state = "blank"    // no tables
	stateEmpty    state = "empty"    // Gatehouse's tables, empty
	stateBegun    state = "begun"    // part of a folder
	stateFinished state = "finished" // a complete folder, possibly served since
	stateOther    state = "other"    // other data
)

// standing describes the present state of a database.
type standing struct {
	state
	detail string // what it holds, for other data
	// Of a copy that has begun:
	sourceVersion, targetVersion int
	clock, batch                 int64
	summary                      string
}

func readStanding(ctx context.Context, db querier) (s standing, err error) {
	var ours, moved, begun bool
	err = db.QueryRow(ctx,
		`SELECT to_regclass('gatehouse_schema') IS NOT NULL, to_regclass('`+postgres.MoveTable+`') IS NOT NULL,
to_regclass('`+progressTable+`') IS NOT NULL`).Scan(&ours, &moved, &begun)
	if err != nil {
		return s, err
	}
	if moved && !begun { // the copy is finished, or the database is only marked
		err = db.QueryRow(ctx,
			`SELECT EXISTS (SELECT 1 FROM `+postgres.MoveTable+` WHERE finished_at IS NOT NULL)`).Scan(&moved)
		if err != nil {
			return s, err
		}
	}
	if moved {
		var finished bool
		err = db.QueryRow(ctx,
			`SELECT source_version, target_version, source_clock, source_batch, finished_at IS NOT NULL, summary FROM `+
				postgres.MoveTable).
			Scan(&s.sourceVersion, &s.targetVersion, &s.clock, &s.batch, &finished, &s.summary)
		s.state = stateBegun
		if finished {
			s.state = stateFinished
		}
		return s, err
	}
	found, _, err := postgresCatalog(ctx, db)
	delete(found, postgres.MoveTable)
	switch {
	case err != nil:
		return s, err
	case len(found) == 0:
		return standing{state: stateBlank}, nil
	case !ours:
		return standing{state: stateOther, detail: "tables of another program"}, nil
	}
	for name := range found {
		if postgresOnly[name] {
			continue
		}
		// The default tenant exists from the start.
		own := ""
		if name == "tenant" {
			own = ` WHERE id <> 'default'`
		}
		var filled bool
		if err := db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+quoted(name)+own+`)`).Scan(&filled); err != nil {
			return s, err
		}
		if filled {
			return standing{state: stateOther, detail: "rows in the table " + name}, nil
		}
	}
	return standing{state: stateEmpty}, nil
}

// mark keeps servers away from a database that is still empty, possibly without
// tables: a server would create tables and begin to use it.
func mark(ctx context.Context, c *pgx.Conn, s *source, versions [2]int) error {
	err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if err := postgres.RefuseElsewhere(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+postgres.MoveTable+` (id INTEGER PRIMARY KEY CHECK (id = 1),
  source_version INTEGER NOT NULL, target_version INTEGER NOT NULL,
  source_clock BIGINT NOT NULL, source_batch BIGINT NOT NULL,
  started_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), finished_at TIMESTAMPTZ,
  summary TEXT NOT NULL DEFAULT '')`)
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM `+postgres.MoveTable) // left by an earlier call that ended before begin
		}
		if err == nil {
			_, err = tx.Exec(ctx,
				`INSERT INTO `+postgres.MoveTable+
					` (id, source_version, target_version, source_clock, source_batch) VALUES (1, $1, $2, $3, $4)`,
				versions[0], versions[1], s.clock, s.batch)
		}
		return err
	})
	return postgres.Advise(ctx, c, err)
}

// begin creates the progress tables, and drops the constraints that would prevent the copy.
func begin(ctx context.Context, c *pgx.Conn, tables []table, counts []int64) error {
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		now, err := readStanding(ctx, tx)
		if err != nil {
			return err
		}
		if now.state != stateEmpty {
			return refuse(now)
		}
		_, err = tx.Exec(ctx, `
CREATE TABLE `+progressTable+` (name TEXT PRIMARY KEY, source_rows BIGINT NOT NULL, copied BIGINT NOT NULL DEFAULT 0,
  last_key TEXT NOT NULL DEFAULT '', done BOOLEAN NOT NULL DEFAULT false);
CREATE TABLE `+keysTable+` (name TEXT, owner TEXT, definition TEXT NOT NULL, PRIMARY KEY (owner, name));
DELETE FROM tenant WHERE id = 'default';`)
		if err != nil {
			return err
		}
		names := make([]string, len(tables))
		for i, t := range tables {
			names[i] = t.name
			if _, err := tx.Exec(ctx, `INSERT INTO `+progressTable+` (name, source_rows) VALUES ($1, $2)`, t.name,
				counts[i]); err != nil {
				return err
			}
		}
		if err := takeKeysOff(ctx, tx, names); err != nil {
			return err
		}
		return walls(ctx, tx, `NO FORCE`)
	})
}

// walls makes the tables' policies apply to their owner (FORCE) or not (NO
// FORCE): the server refuses COPY to a role that policies apply to.
func walls(ctx context.Context, tx pgx.Tx, force string) error {
	_, err := tx.Exec(ctx, `DO $$ DECLARE t regclass; BEGIN
FOR t IN SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relrowsecurity LOOP
  EXECUTE format('ALTER TABLE %s `+force+` ROW LEVEL SECURITY', t);
END LOOP; END $$`)
	return err
}

// takeKeysOff drops the tables' foreign keys and saves their definitions.
func takeKeysOff(ctx context.Context, tx pgx.Tx, names []string) error {
	if _, err := tx.Exec(ctx, `INSERT INTO `+keysTable+` (name, owner, definition)
SELECT k.conname, c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND k.conparentid = 0 AND c.relnamespace = current_schema()::regnamespace
  AND c.relname = ANY($1)`, names); err != nil {
		return err
	}
	keys, err := savedKeys(ctx, tx)
	for _, k := range keys {
		if err == nil {
			_, err = tx.Exec(ctx, `ALTER TABLE `+quoted(k.owner)+` DROP CONSTRAINT `+quoted(k.name))
		}
	}
	return err
}

type savedKey struct{ name, owner, definition string }

func savedKeys(ctx context.Context, db querier) ([]savedKey, error) {
	rows, err := db.Query(ctx, `SELECT name, owner, definition FROM `+keysTable+` ORDER BY owner, name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (k savedKey, err error) {
		return k, r.Scan(&k.name, &k.owner, &k.definition)
	})
}

// putKeysBack recreates the foreign keys, which checks every row.
func putKeysBack(ctx context.Context, c *pgx.Conn, step func(string)) error {
	keys, err := savedKeys(ctx, c)
	if err != nil {
		return err
	}
	for _, k := range keys {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx,
				`ALTER TABLE `+quoted(k.owner)+` ADD CONSTRAINT `+quoted(k.name)+` `+k.definition); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `DELETE FROM `+keysTable+` WHERE owner = $1 AND name = $2`, k.owner, k.name)
			return err
		})
		if err != nil {
			return fmt.Errorf("foreign key %s of %s: %w", k.name, k.owner, explain(err))
		}
		step("key " + k.name)
	}
	return nil
}

// queueLeaves queues the leaves without a number.
func queueLeaves(ctx context.Context, c *pgx.Conn) error {
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM audit_waiting`)
		if err == nil {
			_, err = tx.Exec(ctx,
				`INSERT INTO audit_waiting (first, tenant, leaves) SELECT min(seq), tenant, array_agg(seq ORDER BY seq)
FROM (SELECT l.seq, l.tenant, row_number() OVER (PARTITION BY l.tenant ORDER BY l.seq) - 1 AS place FROM audit_leaf l
  WHERE l.seq > coalesce((SELECT max(b.last) FROM audit_batch b WHERE b.tenant = l.tenant), 0)) x
GROUP BY tenant, place / 256`)
		}
		return err
	})
}

// setSequences sets each identity column's sequence after the highest number.
func setSequences(ctx context.Context, c *pgx.Conn, tables []table) error {
	rows, err := c.Query(ctx,
		`SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
AND a.attnum > 0 AND NOT a.attisdropped
  AND pg_get_serial_sequence(quote_ident(c.relname), a.attname) IS NOT NULL`)
	if err != nil {
		return err
	}
	type place struct{ table, column string }
	places, err := pgx.CollectRows(rows,
		func(r pgx.CollectableRow) (p place, err error) { return p, r.Scan(&p.table, &p.column) })
	if err != nil {
		return err
	}
	for _, p := range places {
		if !slices.ContainsFunc(tables, func(t table) bool { return t.name == p.table }) {
			continue
		}
		_, err := c.Exec(ctx,
			`SELECT setval(pg_get_serial_sequence($1, $2), (SELECT max(`+quoted(p.column)+`) FROM `+quoted(p.table)+`))
WHERE EXISTS (SELECT 1 FROM `+quoted(p.table)+`)`, quoted(p.table), p.column)
		if err != nil {
			return fmt.Errorf("sequence of %s.%s: %w", p.table, p.column, err)
		}
	}
	return nil
}

// refuse explains why nothing can be copied into a database.
func refuse(s standing) error {
	return gatehouse.E(gatehouse.CodeAlreadyExists, "the database holds %s; a folder is copied into an empty one only",
		s.detail)
}

// explain adds the location to a server's error.
func explain(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	more := strings.Join(slices.DeleteFunc([]string{e.Detail, e.Where}, func(s string) bool { return s == "" }), "; ")
	if more == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, more)
}
