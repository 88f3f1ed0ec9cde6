package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"

	_ "modernc.org/sqlite" // the baseline speaks through database/sql
)

// liteHow says how the bare sides commit: see newLiteGroup.
const liteHow = "group commit without savepoints"

// liteBase is SQLite: the databases of a figure are files in one folder.
type liteBase struct{ dir string }

func openLite(dir string) (base, error) {
	dir, err := os.MkdirTemp(dir, "gatehouse-bench-")
	return &liteBase{dir}, err
}

func (b *liteBase) engine() string         { return "SQLite" }
func (b *liteBase) about() string          { return "SQLite, WAL, synchronous=FULL" }
func (b *liteBase) how() string            { return liteHow }
func (b *liteBase) singleBesideRows() bool { return false }
func (b *liteBase) startTarget() float64   { return 300 }
func (b *liteBase) close() error           { return os.RemoveAll(b.dir) }

func (b *liteBase) databases(_ context.Context, name string) (databases, error) {
	dir := filepath.Join(b.dir, name)
	return &liteDatabases{dir}, os.Mkdir(dir, 0o700)
}

type liteDatabases struct{ dir string }

func (r *liteDatabases) place(s Setup) Setup { s.Dir = r.dir; return s }
func (r *liteDatabases) remove() error       { return os.RemoveAll(r.dir) }

// analyze does nothing: the store never runs ANALYZE, so SQLite plans by the schema alone.
func (r *liteDatabases) analyze(context.Context) error { return nil }

func (r *liteDatabases) claims(ctx context.Context) (claimer, error) { return openClaims(ctx, r.dir) }
func (r *liteDatabases) walk(ctx context.Context) (walker, error)    { return openWalk(ctx, r.dir) }

func (r *liteDatabases) proposals(ctx context.Context, a *gatehouse.Action) (proposer, error) {
	return openProposals(ctx, r.dir, a)
}

func (r *liteDatabases) decisions(ctx context.Context, a *gatehouse.Action) (decider, error) {
	return openDecisions(ctx, r.dir, a)
}

func (r *liteDatabases) parts(ctx context.Context) (_ map[string]int64, err error) {
	db, err := openBare(ctx, filepath.Join(r.dir, "gatehouse.db"), "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `SELECT coalesce(tbl_name, name), sum(pgsize)
FROM dbstat LEFT JOIN sqlite_schema USING (name) GROUP BY 1`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sizes := map[string]int64{}
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			return nil, err
		}
		sizes[name] = size
	}
	return sizes, rows.Err()
}

// bareDB is an SQLite file behind database/sql with the store's durability: the simplest durable
// writes from Go.
type bareDB struct {
	*sql.DB
	// writer is the only connection that writes.
	writer                  *sql.Conn
	begin, commit, rollback *sql.Stmt
}

const barePragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)" +
	"&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-16000)&_pragma=temp_store(MEMORY)"

func openBare(ctx context.Context, path, schema string) (*bareDB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+barePragmas)
	if err != nil {
		return nil, err
	}
	b := &bareDB{DB: db}
	if b.writer, err = db.Conn(ctx); err == nil && schema != "" {
		_, err = b.writer.ExecContext(ctx, schema)
	}
	var st []*sql.Stmt
	if err == nil {
		st, err = b.prepare(ctx, `BEGIN IMMEDIATE`, `COMMIT`, `ROLLBACK`)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.begin, b.commit, b.rollback = st[0], st[1], st[2]
	return b, nil
}

func (b *bareDB) Close() error {
	var err error
	if b.writer != nil {
		err = b.writer.Close()
	}
	return errors.Join(err, b.DB.Close())
}

// prepare prepares statements on the writing connection.
func (b *bareDB) prepare(ctx context.Context, texts ...string) ([]*sql.Stmt, error) {
	list := make([]*sql.Stmt, len(texts))
	for i, text := range texts {
		s, err := b.writer.PrepareContext(ctx, text) //nolint:sqlclosecheck // lives as long as the connection
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", text, err)
		}
		list[i] = s
	}
	return list, nil
}

// inTx runs fn in one transaction of the writing connection.
func (b *bareDB) inTx(fn func() error) error {
	if err := execStmt(b.begin); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return errors.Join(err, execStmt(b.rollback))
	}
	return execStmt(b.commit)
}

// newLiteGroup makes group commit on SQLite: the waiting functions run in one transaction, without savepoints.
func newLiteGroup(db *bareDB) *group[func() error] {
	return newGroup(1, func(list iter.Seq[func() error]) error {
		return db.inTx(func() error {
			for fn := range list {
				if err := fn(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func execStmt(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(context.Background(), args...)
	return err
}
