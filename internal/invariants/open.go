package invariants

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

// Target is a store opened for reading, as a gatehouse.Store and as SQL rows.
type Target struct {
	Store gatehouse.Store
	DB    *sql.DB
	// snapshot are the options of a transaction that reads one snapshot.
	snapshot *sql.TxOptions
	sqlite   bool
}

// OpenFile opens a SQLite file, which a server may be using.
func OpenFile(ctx context.Context, path string, log *slog.Logger) (*Target, error) {
	s, err := sqlite.Inspect(ctx, sqlite.Config{Path: path, Logger: log, Readers: 2})
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(),
		RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Target{Store: s, DB: db, sqlite: true}, nil
}

// OpenDatabase opens a PostgreSQL database, which servers may be using.
func OpenDatabase(ctx context.Context, dsn string, log *slog.Logger) (*Target, error) {
	s, err := postgres.Inspect(ctx, postgres.Config{URL: dsn, Logger: log, MaxConns: 2})
	if err != nil {
		return nil, err
	}
	config, err := pgurl.Parse(dsn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), s.Close())
	}
	// As in the store: the planner must use the indexes.
	for name, value := range map[string]string{
		"application_name": "gatehouse doctor", "jit": "off",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "max_parallel_workers_per_gather": "0",
	} {
		config.RuntimeParams[name] = value
	}
	// These two are not start-up parameters: poolers refuse the tenant setting, and with
	// target_session_attrs=read-write, pgx refuses a read-only connection.
	settle := stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SELECT set_config('default_transaction_read_only', 'on', false), set_config($1, $2, false)`,
			postgres.TenantSetting, postgres.AllTenants)
		return err
	})
	return &Target{Store: s, DB: stdlib.OpenDB(*config, settle),
		snapshot: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}}, nil
}

// Close closes the connections.
func (t *Target) Close() error { return errors.Join(t.DB.Close(), t.Store.Close()) }
