package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ErrReadOnly says that a store opened by Inspect accepts no writes.
var ErrReadOnly = errors.New("postgres: the database was opened for reading only")

// ReadOnlyStore is a read-only store, for use beside serving processes. The server itself refuses writes
// on the connections of a ReadOnlyStore. A ReadOnlyStore can also read a standby.
type ReadOnlyStore struct{ s *Store }

var _ gatehouse.Store = (*ReadOnlyStore)(nil)

// Inspect opens a database for reading. It creates and migrates nothing, and refuses a database
// of another version than [SchemaVersion]. If the database holds only a part of a data folder,
// the error is [ErrMoving]: an inspection would not notice the missing rows.
func Inspect(ctx context.Context, config Config) (*ReadOnlyStore, error) {
	config.inspect = true
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return &ReadOnlyStore{s}, nil
}

// onlyRead makes the server refuse the writes of a connection. As a startup parameter, the
// setting would conflict with target_session_attrs=read-write, which rejects read-only
// sessions.
func onlyRead(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SET default_transaction_read_only = on`)
	return err
}

// inspectable refuses databases that this program cannot read.
func inspectable(ctx context.Context, config *pgx.ConnConfig) error {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if err := refuseShared(ctx, c); err != nil {
		return err
	}
	var ours bool
	if err := c.QueryRow(ctx, `SELECT to_regclass('gatehouse_schema') IS NOT NULL`).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		return errors.New("this database is not a store of Gatehouse")
	}
	var version int
	if err := c.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM gatehouse_schema`).Scan(&version); err != nil {
		return err
	}
	switch {
	case version > SchemaVersion():
		return newerError(version)
	case version < shared.BaseVersion:
		return olderError(version)
	case version < SchemaVersion():
		return fmt.Errorf(
			"the database has schema version %d, but this program needs version %d: "+
				"`gatehouse serve` migrates it when it starts",
			version, SchemaVersion())
	}
	return refuseMoving(ctx, c)
}

// View runs fn on one snapshot.
func (r *ReadOnlyStore) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return r.s.View(ctx, tenant, fn)
}

// Read is View: it accepts any number of reads.
func (r *ReadOnlyStore) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return r.View(ctx, tenant, fn)
}

// Update fails with [ErrReadOnly].
func (r *ReadOnlyStore) Update(context.Context, string, func(gatehouse.Tx) error) error {
	return ErrReadOnly
}

// ViewQueues runs fn on one snapshot of all tenants.
func (r *ReadOnlyStore) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return r.s.ViewQueues(ctx, fn)
}

// ReadQueues is ViewQueues: it accepts any number of reads.
func (r *ReadOnlyStore) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return r.s.ViewQueues(ctx, fn)
}

// UpdateQueues fails with [ErrReadOnly].
func (r *ReadOnlyStore) UpdateQueues(context.Context, func(gatehouse.Queues) error) error {
	return ErrReadOnly
}

// Ping checks that the database can be read.
func (r *ReadOnlyStore) Ping(ctx context.Context) error {
	return r.ViewQueues(ctx, func(q gatehouse.ReadQueues) error { _, err := q.ListTenants(); return err })
}

// Close closes the connections.
func (r *ReadOnlyStore) Close() error { return r.s.Close() }
