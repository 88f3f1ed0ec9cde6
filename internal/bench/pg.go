package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// poolSize is the number of connections of a bare side, the same as the store's.
const poolSize = 16

// How the bare sides commit: pgAlone is one statement per caller; pgBatched is one statement per batch of up to
// groupBatch waiting callers, with pgWriters batches at a time.
const (
	pgAlone   = "one statement each, pool of 16"
	pgBatched = "micro-batched: the rows of up to 64 callers in one statement, 2 at a time"
	pgWriters = 2
)

// insufficientPrivilege is the SQLSTATE of an operation that the role may not do, such as to end the
// session of another role.
const insufficientPrivilege = "42501"

// pgBase is PostgreSQL: the gate and each bare side have a database of their own. Existing databases of
// the server are not touched.
type pgBase struct {
	url    string
	prefix string
	dir    string
	admin  *pgx.Conn
	server string
}

func openPG(ctx context.Context, databaseURL, dir string) (_ base, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the database must be given as a URL: postgres://user@host/database")
	}
	b := &pgBase{url: databaseURL, prefix: fmt.Sprintf("gatehouse_bench_%08x", rand.Uint32())}
	if b.admin, err = pgx.Connect(ctx, databaseURL); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.admin.Close(context.WithoutCancel(ctx)))
		}
	}()
	err = b.admin.QueryRow(ctx,
		`SELECT 'PostgreSQL ' || current_setting('server_version') || ', ' || string_agg(name || '=' ||
  CASE WHEN unit = '8kB' THEN pg_size_pretty(setting::bigint * 8192) ELSE setting || coalesce(unit, '') END, ', '
  ORDER BY name)
FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'shared_buffers', 'synchronous_commit', 'max_wal_size')`).Scan(&b.server)
	if err != nil {
		return nil, err
	}
	b.dir, err = os.MkdirTemp(dir, "gatehouse-bench-")
	return b, err
}

func (b *pgBase) engine() string         { return "PostgreSQL" }
func (b *pgBase) about() string          { return b.server }
func (b *pgBase) how() string            { return pgAlone }
func (b *pgBase) singleBesideRows() bool { return true }
func (b *pgBase) startTarget() float64   { return 500 }

func (b *pgBase) close() error {
	return errors.Join(b.admin.Close(context.Background()), os.RemoveAll(b.dir))
}

// create creates a database and returns its URL.
func (b *pgBase) create(ctx context.Context, name string) (string, error) {
	id := pgx.Identifier{b.prefix + "_" + name}
	if _, err := b.admin.Exec(ctx, `CREATE DATABASE `+id.Sanitize()+` TEMPLATE template0 ENCODING 'UTF8'`); err != nil {
		return "", err
	}
	return b.address(name)
}

func (b *pgBase) address(name string) (string, error) {
	u, err := url.Parse(b.url)
	if err != nil {
		return "", err
	}
	u.Path = "/" + b.prefix + "_" + name
	return u.String(), nil
}

// drop drops a database, even if the run was interrupted.
func (b *pgBase) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if b.admin.IsClosed() { // the run was interrupted during a statement on this connection
		var err error
		if b.admin, err = pgx.Connect(ctx, b.url); err != nil {
			return err
		}
	}
	statement := `DROP DATABASE IF EXISTS ` + pgx.Identifier{b.prefix + "_" + name}.Sanitize()
	_, err := b.admin.Exec(ctx, statement+` WITH (FORCE)`)
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == insufficientPrivilege {
		// An autovacuum worker uses the database. A role without further rights may not end the worker;
		// without FORCE, the server ends the worker by itself.
		_, err = b.admin.Exec(ctx, statement)
	}
	return err
}

func (b *pgBase) databases(ctx context.Context, name string) (databases, error) {
	r := &pgDatabases{base: b, name: name, dir: filepath.Join(b.dir, name)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	r.url, err = b.create(ctx, name)
	return r, err
}

type pgDatabases struct {
	base           *pgBase
	name, dir, url string
	// beside are the names of the bare sides' databases.
	beside []string
}

func (r *pgDatabases) place(s Setup) Setup { s.Dir, s.DatabaseURL = r.dir, r.url; return s }

func (r *pgDatabases) remove() error {
	err := os.RemoveAll(r.dir)
	for _, name := range append(r.beside, r.name) {
		err = errors.Join(err, r.base.drop(name))
	}
	return err
}

func (r *pgDatabases) analyze(ctx context.Context) error {
	for _, name := range append([]string{r.name}, r.beside...) {
		u, err := r.base.address(name)
		if err != nil {
			return err
		}
		pool, err := openPool(ctx, u, `ANALYZE`)
		if err != nil {
			return err
		}
		pool.Close()
	}
	return nil
}

// bare creates a database for a bare side and opens it.
func (r *pgDatabases) bare(ctx context.Context, kind, schema string) (*pgxpool.Pool, error) {
	name := r.name + "_" + kind
	u, err := r.base.create(ctx, name)
	if err != nil {
		return nil, err
	}
	r.beside = append(r.beside, name)
	if schema == "" { // use the gate's own tables
		s, err := postgres.Open(ctx, postgres.Config{URL: u})
		if err != nil {
			return nil, err
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
	return openPool(ctx, u, schema)
}

func (r *pgDatabases) claims(ctx context.Context) (claimer, error) {
	pool, err := r.bare(ctx, "claims", pgClaimSchema)
	c := &pgClaims{pool: pool}
	c.group = newGroup(pgWriters, c.claimMany)
	return c, err
}

func (r *pgDatabases) proposals(ctx context.Context, a *gatehouse.Action) (proposer, error) {
	return r.rows(ctx, a)
}

func (r *pgDatabases) decisions(ctx context.Context, a *gatehouse.Action) (decider, error) {
	rows, err := r.rows(ctx, a)
	return &pgDecisions{rows}, err
}

func (r *pgDatabases) rows(ctx context.Context, a *gatehouse.Action) (*pgRows, error) {
	pool, err := r.bare(ctx, "rows", "")
	b := &pgRows{pool: pool, template: a}
	b.group = newGroup(pgWriters, func(list iter.Seq[*pgProposal]) error { return b.insert(slices.Collect(list)...) })
	return b, err
}

func (r *pgDatabases) walk(ctx context.Context) (walker, error) { return openPGWalk(ctx, r.url) }

// parts vacuums first, as the server does by itself after some time.
func (r *pgDatabases) parts(ctx context.Context) (_ map[string]int64, err error) {
	conn, err := pgx.Connect(ctx, r.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `VACUUM (ANALYZE)`); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `SELECT relname::text, pg_total_relation_size(oid) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	var name string
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&name, &size}, func() error { sizes[name] = size; return nil })
	return sizes, err
}

// openPool opens a bare side's connections and runs a script on one of them.
func openPool(ctx context.Context, databaseURL, script string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	config.ConnConfig.RuntimeParams[postgres.TenantSetting] = postgres.AllTenants
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if script == "" {
		return pool, nil
	}
	if _, err := pool.Exec(ctx, script); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// execPG runs one statement, which must change a row for each of n items.
func execPG(pool *pgxpool.Pool, n int, sql string, args ...any) error {
	tag, err := pool.Exec(context.Background(), sql, args...)
	if err == nil && tag.RowsAffected() != int64(n) {
		err = fmt.Errorf("%d rows, not %d, are changed by %s", tag.RowsAffected(), n, sql)
	}
	return err
}
