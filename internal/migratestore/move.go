package migratestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// Options are the source and target of a copy. Path and URL are required.
type Options struct {
	// Path is the folder's database file; no server may have it open.
	Path string
	// URL is the database, postgres://…: empty, or left by an earlier call.
	URL string
	// DryRun only reads: the folder, which a server may be using, and the
	// database, which is not changed.
	DryRun bool
	// Rows and Bytes bound one batch; 0 means 5,000 rows and 8 MiB. The row
	// that exceeds Bytes is the last of its batch.
	Rows  int
	Bytes int64
	// Progress is called after each batch; may be nil.
	Progress func(table string, copied, total int64)
	// Logger receives the messages of the two stores; nil is slog.Default.
	Logger *slog.Logger

	// step is called after each transaction on the target, for tests.
	step func(name string)
}

// Result counts the rows that were, or would be, copied.
type Result struct {
	DryRun bool `json:"dry_run,omitempty"`
	// State is the earlier state of the database: blank, empty, begun or
	// finished.
	State string `json:"database"`
	// Rows counts the rows of all tables in the folder; Copied counts the rows
	// that this call has copied.
	Rows   int64   `json:"rows"`
	Copied int64   `json:"copied"`
	Tables []Table `json:"tables"`
	Logs   []Log   `json:"logs"`
	// Waiting counts the leaves of all logs without a number, up to maxWaiting.
	Waiting int `json:"unnumbered"`
}

// Table is a table's name with the number of its rows.
type Table struct {
	Name string `json:"table"`
	Rows int64  `json:"rows"`
}

// Log is the head of one tenant's audit log, equal on both sides.
type Log = gatehouse.LogHead

// Run copies a folder into a database, or continues a copy. If it returns nil
// and DryRun is not set, the database holds every row of the folder and may be
// served. A further call changes nothing and returns the same rows, tables and
// logs; it fails if the folder was written to meanwhile.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Rows == 0 {
		o.Rows = 5000
	}
	if o.Bytes == 0 {
		o.Bytes = 8 << 20
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	s, err := openSource(ctx, sqlite.Config{Path: o.Path, Logger: o.Logger, Readers: 2}, o.DryRun)
	if err != nil {
		return nil, err
	}
	r, err := run(ctx, o, s)
	return r, errors.Join(err, s.Close())
}

func run(ctx context.Context, o Options, s *source) (*Result, error) {
	c, err := connect(ctx, o.URL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = hangUp(c) }()
	now, err := readStanding(ctx, c)
	if err != nil {
		return nil, err
	}
	versions := [2]int{sqlite.SchemaVersion(), postgres.SchemaVersion()}
	switch now.state {
	case stateOther:
		return nil, refuse(now)
	case stateBegun, stateFinished:
		if err := same(now, s, versions); err != nil {
			return nil, err
		}
	}
	r := &Result{DryRun: o.DryRun, State: string(now.state)}
	if now.state == stateFinished {
		return r, json.Unmarshal([]byte(now.summary), r)
	}
	// Open would refuse the server, too, but after the database is marked.
	if err := postgres.CheckServer(ctx, c); err != nil {
		return nil, fmt.Errorf("the database: %w", err)
	}
	if o.DryRun {
		return r, dryRun(ctx, s, c, now, r)
	}
	return r, fill(ctx, o, s, c, now, versions, r)
}

// same refuses to continue with another folder, or with a changed one.
func same(now standing, s *source, versions [2]int) error {
	switch {
	case now.clock != s.clock || now.batch != s.batch:
		return gatehouse.E(gatehouse.CodeAlreadyExists,
			"the database holds rows of another folder, or of this one before it was written to again; begin with an empty "+
				"database")
	case now.state == stateBegun && (now.sourceVersion != versions[0] || now.targetVersion != versions[1]):
		return gatehouse.E(gatehouse.CodeAlreadyExists,
			"the copy was begun by another version of this program; continue with that version, or begin with an empty database")
	}
	return nil
}

// dryRun compares the tables, if the database has any, counts the folder's rows, and verifies the folder's
// logs.
func dryRun(ctx context.Context, s *source, c *pgx.Conn, now standing, r *Result) error {
	from, err := sqliteCatalog(ctx, s.db)
	if err != nil {
		return err
	}
	to, order, err := postgresCatalog(ctx, c)
	if err != nil {
		return err
	}
	var tables []table
	if now.state == stateBlank {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if !sqliteOnly[name] {
				tables = append(tables, table{name: name})
			}
		}
	} else if tables, err = match(from, to, order); err != nil {
		return err
	}
	if _, err := r.count(ctx, s, tables); err != nil {
		return err
	}
	r.Logs, r.Waiting, err = readLogs(ctx, s)
	return err
}

// fill completes the copy from its present state.
func fill(ctx context.Context, o Options, s *source, c *pgx.Conn, now standing, versions [2]int, r *Result) error {
	// Find a damaged log before hours of copying.
	var err error
	if r.Logs, r.Waiting, err = readLogs(ctx, s); err != nil {
		return err
	}
	if now.state != stateBegun {
		if err := mark(ctx, c, s, versions); err != nil {
			return err
		}
		o.step("mark")
	}
	// Opening the store creates the tables.
	to, err := postgres.Open(ctx, postgres.Config{URL: o.URL, Logger: o.Logger, MaxConns: 2, Moving: true})
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := sqliteCatalog(ctx, s.db)
	if err != nil {
		return err
	}
	there, order, err := postgresCatalog(ctx, c)
	if err != nil {
		return err
	}
	tables, err := match(from, there, order)
	if err != nil {
		return err
	}
	counts, err := r.count(ctx, s, tables)
	if err != nil {
		return err
	}
	o.step("tables")
	if now.state != stateBegun {
		if err := begin(ctx, c, tables, counts); err != nil {
			return err
		}
		o.step("begin")
	}
	for i, t := range tables {
		n, err := copyTable(ctx, o, s, c, t, counts[i])
		if err != nil {
			return fmt.Errorf("copy %s: %w", t.name, explain(err))
		}
		r.Copied += n
	}
	if err := queueLeaves(ctx, c); err != nil {
		return err
	}
	o.step("queue")
	if err := putKeysBack(ctx, c, o.step); err != nil {
		return err
	}
	if err := setSequences(ctx, c, tables); err != nil {
		return err
	}
	o.step("sequences")
	if err := verify(ctx, s, c, to, tables, counts, r); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `ANALYZE`); err != nil {
		return err
	}
	o.step("verified")
	return finish(ctx, c, r)
}

// finish lets servers start on the database.
func finish(ctx context.Context, c *pgx.Conn, r *Result) error {
	summary, err := json.Marshal(struct {
		Rows    int64   `json:"rows"`
		Tables  []Table `json:"tables"`
		Logs    []Log   `json:"logs"`
		Waiting int     `json:"unnumbered"`
	}{r.Rows, r.Tables, r.Logs, r.Waiting})
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE `+postgres.MoveTable+` SET finished_at = clock_timestamp(), summary = $1`,
			string(summary))
		if err == nil {
			_, err = tx.Exec(ctx, `DROP TABLE `+progressTable+`, `+keysTable)
		}
		if err == nil {
			err = walls(ctx, tx, `FORCE`)
		}
		return err
	})
}

func (r *Result) count(ctx context.Context, s *source, tables []table) ([]int64, error) {
	counts := make([]int64, len(tables))
	for i, t := range tables {
		n, err := s.count(ctx, t)
		if err != nil {
			return nil, err
		}
		counts[i] = n
		r.Rows += n
		r.Tables = append(r.Tables, Table{t.name, n})
	}
	return counts, nil
}

// copyTable copies the missing rows of a table and returns their number.
func copyTable(ctx context.Context, o Options, s *source, c *pgx.Conn, t table, total int64) (int64, error) {
	var copied, began int64
	var last string
	var done bool
	err := c.QueryRow(ctx, `SELECT copied, last_key, done FROM `+progressTable+` WHERE name = $1`, t.name).Scan(&copied,
		&last, &done)
	if err != nil || done {
		return 0, err
	}
	began = copied
	key, err := decodeKey(last)
	if err != nil {
		return 0, err
	}
	quiet, loud, err := triggers(ctx, c, t)
	if err != nil {
		return 0, err
	}
	next := func() error {
		rows, err := s.after(ctx, t, key, o.Rows)
		if err != nil {
			return err
		}
		defer rows.Close()
		b := &batch{t: t, rows: rows, maxBytes: o.Bytes}
		err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, quiet); err != nil {
				return err
			}
			names := make([]string, len(t.columns))
			for i, col := range t.columns {
				names[i] = col.name
			}
			n, err := tx.CopyFrom(ctx, pgx.Identifier{t.name}, names, b)
			if err != nil {
				return err
			}
			if n != b.n {
				return fmt.Errorf("%d rows were sent, %d stored", b.n, n)
			}
			if done = n == 0; !done {
				if last, err = encodeKey(b.key); err != nil {
					return err
				}
				key = b.key
			}
			copied += n
			if _, err := tx.Exec(ctx, loud); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `UPDATE `+progressTable+` SET copied = $2, last_key = $3, done = $4 WHERE name = $1`, t.name,
				copied, last, done)
			return err
		})
		return errors.Join(err, rows.Err())
	}
	for !done {
		if err := next(); err != nil {
			return 0, err
		}
		o.Progress(t.name, copied, total)
		o.step("batch " + t.name)
	}
	return copied - began, nil
}

// triggers returns statements that disable and re-enable the INSERT triggers,
// which would create rows that the folder's triggers have already created.
func triggers(ctx context.Context, c *pgx.Conn, t table) (off, on string, err error) {
	rows, err := c.Query(ctx, `SELECT tgname::text FROM pg_trigger
WHERE tgrelid = to_regclass($1) AND NOT tgisinternal AND tgtype & 4 <> 0 AND tgenabled <> 'D'`, quoted(t.name))
	if err != nil {
		return "", "", err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		off += `ALTER TABLE ` + quoted(t.name) + ` DISABLE TRIGGER ` + quoted(name) + `;`
		on += `ALTER TABLE ` + quoted(t.name) + ` ENABLE TRIGGER ` + quoted(name) + `;`
	}
	return off, on, err
}
