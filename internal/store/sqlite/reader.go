package sqlite

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// readTx implements gatehouse.ReadTx over a connection inside a transaction.
type readTx struct {
	shared.Reads
	s *Store
	// c is nil until a View's first read; see open.
	c   *conn
	ctx context.Context
	at  time.Time
	end bool
	// tenant is the scope of the transaction; "" while it works for all
	// tenants.
	tenant string
	// quiet waits until ctx can no longer cause an interruption.
	quiet func()
	// seen is the push that was last read with its action, until the push is
	// written.
	seen *gatehouse.Push
	// stored is set while rows are read as stored, without show; see
	// LockAction.
	stored bool
}

// Now returns the transaction's single clock reading.
func (t *readTx) Now() time.Time { return t.at }

func (t *readTx) exec(sql string, args ...any) (int, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	n, err := t.c.exec(sql, args...)
	return n, t.after(err)
}

func (t *readTx) each(sql string, row func(*stmt) error, args ...any) error {
	if err := t.open(); err != nil {
		return err
	}
	return t.after(t.c.each(sql, row, args...))
}

// one is first, with ErrNotFound when there is no row.
func (t *readTx) one(sql string, row func(*stmt) error, args ...any) error {
	if err := t.open(); err != nil {
		return err
	}
	found, err := t.c.first(sql, row, args...)
	if err == nil && !found {
		return gatehouse.ErrNotFound
	}
	return t.after(err)
}

func (t *readTx) number(sql string, args ...any) (int64, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	n, err := t.c.number(sql, args...)
	return n, t.after(err)
}

// after checks whether the error made SQLite end the transaction. If so, no
// statement may follow: each would be its own transaction.
func (t *readTx) after(err error) error {
	if err != nil && t.c.autocommit() {
		t.end = true
	}
	return err
}

// View runs fn on one snapshot, taken at its first read. When ctx ends, the
// running statement is interrupted.
func (s *Store) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return s.view(ctx, tenant, func(t *readTx) error { return fn(t) })
}

func (s *Store) view(ctx context.Context, tenant string, fn func(*readTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	t := &readTx{s: s, ctx: ctx, at: s.now(false), tenant: tenant}
	t.Reads = shared.Reads{Reader: t}
	defer t.close()
	err := fn(t)
	if err != nil && isCode(err, codeInterrupt) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Read is View: there is no remote database here.
func (s *Store) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return s.View(ctx, tenant, fn)
}

// readQueues is passed to closures that read for all tenants. It has the methods of readTx whose statements
// name no tenant.
type readQueues struct{ *readTx }

// In scopes the transaction to a tenant.
func (q readQueues) In(tenant string) gatehouse.ReadTx {
	q.tenant = tenant
	return q.readTx
}

// ViewQueues is View for all tenants.
func (s *Store) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", func(t *readTx) error { return fn(readQueues{t}) })
}

// ReadQueues is ViewQueues: there is no remote database here.
func (s *Store) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.ViewQueues(ctx, fn)
}

// open begins a View's transaction at its first statement: a View that the
// cache answers takes no connection.
func (t *readTx) open() error {
	switch {
	case t.end:
		return errEnded
	case t.c != nil:
		return nil
	}
	s := t.s
	var c *conn
	select {
	case c = <-s.readers:
	default:
		select {
		case c = <-s.readers:
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-s.closing:
			return errClosed
		}
	}
	select {
	case <-s.closing:
		s.readers <- c
		return errClosed
	default:
	}
	t.c = c
	if t.ctx.Done() != nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(t.ctx, func() { c.interrupt(); close(interrupted) })
		t.quiet = func() {
			if !stop() {
				<-interrupted
			}
		}
	}
	_, err := c.exec(`BEGIN`)
	t.end = err != nil // without BEGIN each statement would read its own snapshot
	return err
}

// close ends a View's transaction and gives its connection back.
func (t *readTx) close() {
	t.end = true
	if t.c == nil {
		return
	}
	if !t.c.autocommit() {
		// This ends the snapshot. For a read-only transaction COMMIT and
		// ROLLBACK do the same, and COMMIT cannot be refused.
		if _, err := t.c.exec(`COMMIT`); err != nil {
			_, _ = t.c.exec(`ROLLBACK`)
		}
	}
	if t.quiet != nil {
		t.quiet()
	}
	t.c.trim(maxCached)
	t.s.readers <- t.c
}
