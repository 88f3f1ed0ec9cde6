package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"

	_ "modernc.org/sqlite" // the baseline speaks through database/sql
)

// liteBase is SQLite: each room is a folder.
type liteBase struct{ dir string }

func openLite(dir string) (base, error) {
	dir, err := os.MkdirTemp(dir, "gatehouse-bench-")
	return &liteBase{dir}, err
}

func (b *liteBase) engine() string         { return "SQLite" }
func (b *liteBase) about() string          { return "SQLite, WAL, synchronous=FULL" }
func (b *liteBase) how() string            { return "group commit" }
func (b *liteBase) singleBesideRows() bool { return false }
func (b *liteBase) startTarget() float64   { return 300 }
func (b *liteBase) close() error           { return os.RemoveAll(b.dir) }

func (b *liteBase) room(_ context.Context, name string) (room, error) {
	dir := filepath.Join(b.dir, name)
	return &liteRoom{dir}, os.Mkdir(dir, 0o700)
}

type liteRoom struct{ dir string }

func (r *liteRoom) place(s Setup) Setup { s.Dir = r.dir; return s }
func (r *liteRoom) remove() error       { return os.RemoveAll(r.dir) }

// known does nothing, because SQLite's planner uses the schema alone.
func (r *liteRoom) known(context.Context) error { return nil }

func (r *liteRoom) claims(ctx context.Context) (claimer, error)   { return openClaims(ctx, r.dir) }
func (r *liteRoom) numbers(ctx context.Context) (numberer, error) { return openNumbers(ctx, r.dir) }
func (r *liteRoom) walk(ctx context.Context) (walker, error)      { return openWalk(ctx, r.dir) }

func (r *liteRoom) proposals(ctx context.Context, a *gatehouse.Action) (proposer, error) {
	return openProposals(ctx, r.dir, a)
}

func (r *liteRoom) decisions(ctx context.Context, a *gatehouse.Action) (decider, error) {
	return openDecisions(ctx, r.dir, a)
}

// bareDB is an SQLite file behind database/sql with the store's durability: the simplest durable
// writes from Go.
type bareDB struct {
	*sql.DB
	// writer is the only connection that writes.
	writer *sql.Conn
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
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
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

// whole runs fn in one transaction of the writing connection.
func (b *bareDB) whole(fn func() error) error {
	ctx := context.Background()
	if _, err := b.writer.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := fn(); err != nil {
		_, rollback := b.writer.ExecContext(ctx, `ROLLBACK`)
		return errors.Join(err, rollback)
	}
	_, err := b.writer.ExecContext(ctx, `COMMIT`)
	return err
}

// groupBatch is the maximum number of callers that share a commit, as in the store.
const groupBatch = 64

// group is the simplest group commit: one goroutine runs the waiting functions in one transaction,
// each in a savepoint. None is expected to fail, so a failure ends the whole batch.
type group struct {
	db    *bareDB
	queue chan groupJob
	done  chan struct{}

	begin, commit, rollback, savepoint, release *sql.Stmt
}

type groupJob struct {
	fn   func() error
	done chan error
}

func newGroup(db *bareDB) (*group, error) {
	st, err := db.prepare(context.Background(), `BEGIN IMMEDIATE`, `COMMIT`, `ROLLBACK`, `SAVEPOINT one`, `RELEASE one`)
	if err != nil {
		return nil, err
	}
	g := &group{
		db: db, queue: make(chan groupJob, 4*groupBatch), done: make(chan struct{}),
		begin: st[0], commit: st[1], rollback: st[2], savepoint: st[3], release: st[4],
	}
	go g.loop()
	return g, nil
}

// do runs fn in the next transaction and returns when it is durable.
func (g *group) do(fn func() error) error {
	j := groupJob{fn: fn, done: make(chan error, 1)}
	g.queue <- j
	return <-j.done
}

// close ends the group. No call of do may follow.
func (g *group) close() {
	close(g.queue)
	<-g.done
}

func (g *group) loop() {
	defer close(g.done)
	var batch []groupJob
	for first := range g.queue {
		batch = append(batch[:0], first)
		err := g.run(&batch)
		for _, j := range batch {
			j.done <- err
		}
	}
}

func (g *group) run(batch *[]groupJob) error {
	if err := execStmt(g.begin); err != nil {
		return err
	}
	for n := 0; n < len(*batch); n++ {
		err := execStmt(g.savepoint)
		if err == nil {
			err = (*batch)[n].fn()
		}
		if err == nil {
			err = execStmt(g.release)
		}
		if err != nil {
			return errors.Join(err, execStmt(g.rollback))
		}
		if len(*batch) < groupBatch {
			select {
			case j, open := <-g.queue:
				if open {
					*batch = append(*batch, j)
				}
			default:
			}
		}
	}
	return execStmt(g.commit)
}

func execStmt(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(context.Background(), args...)
	return err
}
