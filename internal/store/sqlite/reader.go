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
	c     *conn
	ctx   context.Context
	at    time.Time
	ended bool
	// tenant is the tenant of the transaction; "" while its statements apply to all tenants.
	tenant string
	// endInterrupts, if not nil, waits until the end of ctx can no longer interrupt a statement.
	endInterrupts func()
	// lastPush is the push that was last read with its action; nil after a write of a push, or once LockPush
	// has returned it.
	lastPush *gatehouse.Push
	// asStored says that actions are returned with their stored status, even when they have expired; see
	// LockAction.
	asStored bool
}

// Now returns the transaction's single clock reading.
func (t *readTx) Now() time.Time { return t.at }

func (t *readTx) exec(sql string, args ...any) (int, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	n, err := t.c.exec(sql, args...)
	return n, t.noteRollback(err)
}

func (t *readTx) each(sql string, row func(*stmt) error, args ...any) error {
	if err := t.open(); err != nil {
		return err
	}
	return t.noteRollback(t.c.each(sql, row, args...))
}

// one reads the first row of the result; ErrNotFound when there is none.
func (t *readTx) one(sql string, row func(*stmt) error, args ...any) error {
	if err := t.open(); err != nil {
		return err
	}
	found, err := t.c.first(sql, row, args...)
	if err == nil && !found {
		return gatehouse.ErrNotFound
	}
	return t.noteRollback(err)
}

func (t *readTx) number(sql string, args ...any) (int64, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	n, err := t.c.number(sql, args...)
	return n, t.noteRollback(err)
}

// noteRollback returns err. If SQLite has rolled the transaction back because of err, noteRollback ends
// the readTx: further statements would each run in a transaction of their own.
func (t *readTx) noteRollback(err error) error {
	if err != nil && t.c.autocommit() {
		t.ended = true
	}
	return err
}

// View runs fn on one snapshot, which its first read takes. When ctx ends, the running statement is
// interrupted.
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

// Read is View: a local database has no round trips to save.
func (s *Store) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return s.View(ctx, tenant, fn)
}

// readQueues is passed to closures that read for all tenants. The methods of gatehouse.ReadQueues name no
// tenant in their statements.
type readQueues struct{ *readTx }

// In limits the transaction to a tenant.
func (q readQueues) In(tenant string) gatehouse.ReadTx {
	q.tenant = tenant
	return q.readTx
}

// ViewQueues is View for all tenants.
func (s *Store) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.view(ctx, "", func(t *readTx) error { return fn(readQueues{t}) })
}

// ReadQueues is ViewQueues, as Read is View.
func (s *Store) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return s.ViewQueues(ctx, fn)
}

// open begins a View's transaction at its first statement. A View that a cache answers needs no
// connection.
func (t *readTx) open() error {
	switch {
	case t.ended:
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
		t.endInterrupts = func() {
			if !stop() {
				<-interrupted
			}
		}
	}
	_, err := c.exec(`BEGIN`)
	t.ended = err != nil // without BEGIN, each statement would read a snapshot of its own
	return err
}

// maxStatements bounds the statements that a reading connection keeps. The store has some hundred; each combination of
// the filters of a list adds one.
const maxStatements = 1000

// close ends a View's transaction and returns its connection.
func (t *readTx) close() {
	t.ended = true
	if t.c == nil {
		return
	}
	if !t.c.autocommit() {
		// COMMIT ends the snapshot. A read-only transaction has nothing to roll back, and SQLite does
		// not refuse its COMMIT.
		if _, err := t.c.exec(`COMMIT`); err != nil {
			_, _ = t.c.exec(`ROLLBACK`)
		}
	}
	if t.endInterrupts != nil {
		t.endInterrupts()
	}
	t.c.trim(maxCached)
	if len(t.c.stmts) > maxStatements {
		t.c.forget()
	}
	t.s.readers <- t.c
}
