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

// ErrReadOnly says that a store which was opened to look takes no writes.
var ErrReadOnly = errors.New("postgres: the database was opened for reading only")

// Reader is a store that only reads, beside those that serve. The server
// itself refuses its writes, so a standby will do.
type Reader struct{ s *Store }

var _ gatehouse.Store = (*Reader)(nil)

// Inspect opens a database for reading. It makes and migrates nothing: one of
// another version than [SchemaVersion] is refused, and with [ErrMoving] one that
// holds a part of a data folder only: what it lacks would not be missed.
func Inspect(ctx context.Context, config Config) (*Reader, error) {
	config.inspect = true
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Reader{s}, nil
}

// onlyRead has the server refuse a connection's writes. As a parameter of the
// start it would be in the way of an address with target_session_attrs=read-write,
// which refuses servers that say so.
func onlyRead(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SET default_transaction_read_only = on`)
	return err
}

// inspectable refuses databases that cannot be understood.
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
		return fmt.Errorf("the database is of version %d, this program reads version %d: `gatehouse serve` brings it to its own version when it starts",
			version, SchemaVersion())
	}
	return refuseMoving(ctx, c)
}

// View runs fn on one snapshot.
func (r *Reader) View(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	return r.s.View(ctx, fn)
}

// Read is View of one question.
func (r *Reader) Read(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	return r.View(ctx, fn)
}

// Update fails with [ErrReadOnly].
func (r *Reader) Update(context.Context, func(gatehouse.Tx) error) error { return ErrReadOnly }

// Ping reads.
func (r *Reader) Ping(ctx context.Context) error {
	return r.View(ctx, func(tx gatehouse.ReadTx) error { _, err := tx.ListTenants(); return err })
}

// Close closes the connections.
func (r *Reader) Close() error { return r.s.Close() }
